// SPDX-License-Identifier: Apache-2.0
#include "store/inventory.h"

#include <algorithm>

#include "store/model_store.h"
#include "store/selection.h"

namespace hearth {
namespace {

void AddOwn(const ModelStore& store, Inventory& inventory) {
  for (const Manifest& manifest : store.List(&inventory.problems)) {
    StoredModel model{.name = manifest.name,
                      .path = store.PathOf(manifest),
                      .bytes = manifest.bytes(),
                      .repo = manifest.repo,
                      .revision = manifest.revision,
                      .is_complete = manifest.is_complete};
    model.quant = manifest.selector;
    if (!manifest.is_directory) model.file = manifest.files[0].name;
    inventory.models.push_back(std::move(model));
  }
}

bool SameText(std::string_view a, std::string_view b) { return PlainForm(a) == PlainForm(b); }

// Whether it is what the words behind the colon mean.
bool IsSelected(const StoredModel& model, std::string_view selector) {
  if (selector.empty()) return true;
  return SameText(selector, model.quant) || SameText(selector, model.file) ||
         SameText(selector, BaseName(model.file)) ||
         (!model.file.empty() && SameText(std::string(selector) + ".gguf", BaseName(model.file)));
}

// Several quantisations, and nobody said which: as ChooseModel does.
const StoredModel* Usual(const std::vector<const StoredModel*>& candidates) {
  for (const std::string_view quant : UsualQuants()) {
    for (const StoredModel* model : candidates) {
      if (SameText(model->quant, quant)) return model;
    }
  }
  return candidates.empty() ? nullptr : candidates[0];
}

const StoredModel* FindByRepo(const Inventory& inventory, std::string_view repo,
                              std::string_view revision, std::string_view selector) {
  std::vector<const StoredModel*> candidates;
  for (const StoredModel& model : inventory.models) {
    if (!model.is_complete || !SameText(model.repo, repo) || !IsSelected(model, selector)) continue;
    // A branch may have moved since: only a commit is known to be the same.
    if (!revision.empty() && !model.revision.starts_with(revision)) continue;
    candidates.push_back(&model);
  }
  return Usual(candidates);
}

const StoredModel* FindByName(const Inventory& inventory, std::string_view name) {
  for (const bool exactly : {true, false}) {
    for (const StoredModel& model : inventory.models) {
      if (!model.is_complete) continue;
      if (exactly ? model.name == name : SameText(model.name, name)) return &model;
    }
  }
  return nullptr;
}

}  // namespace

Inventory TakeInventory(const StorePlaces& places) {
  Inventory inventory;
  AddOwn(ModelStore(places.own), inventory);
  const auto add = [&](std::vector<StoredModel> found) {
    for (StoredModel& model : found) inventory.models.push_back(std::move(model));
  };
  for (const std::string& root : places.ollama) add(FindOllamaModels(root));
  add(FindHuggingFaceModels(places.hugging_face));
  for (const std::string& root : places.lm_studio) add(FindLmStudioModels(root));
  return inventory;
}

const StoredModel* FindModel(const Inventory& inventory, const ModelReference& reference) {
  if (reference.kind == ModelReference::Kind::kUrl) return nullptr;
  if (reference.kind == ModelReference::Kind::kHub) {
    const StoredModel* model =
        FindByRepo(inventory, reference.repo, reference.revision, reference.selector);
    if (model != nullptr || !reference.revision.empty()) return model;
    // Ollama has such names as well: NAMESPACE/MODEL:TAG.
    const std::string tag = reference.selector.empty() ? "latest" : reference.selector;
    if (const StoredModel* named = FindByName(inventory, reference.repo + ":" + tag)) return named;
    return FindByName(inventory, "hf.co/" + reference.repo + ":" + tag);  // pulled from the Hub
  }
  const auto own =
      std::find_if(inventory.models.begin(), inventory.models.end(), [&](const StoredModel& model) {
        return model.origin == Origin::kOwn && model.is_complete &&
               SameText(model.name, reference.name);
      });
  if (own != inventory.models.end()) return &*own;
  if (const CatalogueEntry* entry = FindInCatalogue(reference.name)) {
    const StoredModel* model = FindByRepo(inventory, entry->repo, "", entry->selector);
    if (model != nullptr) return model;
  }
  return FindByName(inventory, reference.name);
}

std::string NamesOf(const Inventory& inventory, size_t max_names) {
  std::string names;
  size_t count = 0;
  for (const StoredModel& model : inventory.models) {
    if (!model.is_complete || ++count > max_names) continue;
    names += (names.empty() ? "" : ", ") + model.name;
  }
  if (count > max_names) names += Printf(" and %zu more", count - max_names);
  return names;
}

std::string HowToGet(const Inventory& inventory, const ModelReference& reference,
                     std::string_view given) {
  const std::string command(given);
  for (const StoredModel& model : inventory.models) {
    if (model.is_complete || !SameText(model.name, given)) continue;
    return "its download is unfinished; resume it with `hearth pull " + model.name + "`";
  }
  if (reference.kind != ModelReference::Kind::kName) {
    return "download it with `hearth pull " + command + "`";
  }
  if (const CatalogueEntry* entry = FindInCatalogue(reference.name)) {
    const std::string size =
        entry->about_bytes == 0 ? "" : " (" + HumanBytes(entry->about_bytes) + ")";
    return "download it" + size + " with `hearth pull " + std::string(entry->name) + "`";
  }
  std::vector<std::string> known;
  for (const StoredModel& model : inventory.models) known.push_back(model.name);
  for (const CatalogueEntry& entry : Catalogue()) known.emplace_back(entry.name);
  std::string near;
  for (const std::string& name : NearNames(reference.name, known)) {
    near += (near.empty() ? "did you mean " : " or ") + name;
  }
  return (near.empty() ? "" : near + "? ") +
         "`hearth list --all` shows the names that are known; a model of the Hub is OWNER/REPO";
}

std::string HumanBytes(uint64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes >= 100'000'000'000) return Printf("%.0f GB", value / 1e9);
  if (bytes >= 10'000'000'000) return Printf("%.1f GB", value / 1e9);
  if (bytes >= 1'000'000'000) return Printf("%.2f GB", value / 1e9);
  if (bytes >= 1'000'000) return Printf("%.0f MB", value / 1e6);
  if (bytes >= 10'000) return Printf("%.0f kB", value / 1e3);
  return Printf("%d bytes", static_cast<int>(bytes));
}

}  // namespace hearth
