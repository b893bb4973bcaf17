// SPDX-License-Identifier: Apache-2.0
// hearth list, show and rm: the models on this machine, Hearth's own and other programs'.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "app/catalogue_table.h"
#include "app/commands.h"
#include "app/open_backend.h"
#include "app/open_sampling.h"
#include "app/print.h"
#include "base/json.h"
#include "base/mask_secrets.h"
#include "base/terminal.h"
#include "store/inventory.h"
#include "store/model_store.h"

namespace hearth {
namespace {

struct StoreFlags {
  std::string name;
  bool shows_all = false, json = false;
};

Json JsonOf(const StoredModel& model) {
  return JsonObject{{"name", model.name},          {"origin", NameOf(model.origin)},
                    {"path", model.path},          {"bytes", model.bytes},
                    {"repo", model.repo},          {"revision", model.revision},
                    {"quantisation", model.quant}, {"complete", model.is_complete}};
}

Status List(const StoreFlags& flags) {
  HEARTH_ASSIGN(const StorePlaces places, FindPlaces(ProcessEnvironment()));
  const Inventory inventory = TakeInventory(places);
  for (const std::string& problem : inventory.problems) {
    PrintError("warning: %s\n", problem.c_str());
  }
  if (flags.json) {
    JsonArray models;
    for (const StoredModel& model : inventory.models) models.push_back(JsonOf(model));
    PrintJson(models);
    return Status();
  }
  size_t width = 4;
  for (const StoredModel& model : inventory.models) width = std::max(width, model.name.size());
  if (inventory.models.empty()) {
    PrintOut("No models on this machine yet: `hearth pull` lists names to download.\n");
  } else {
    PrintOut("{:<{}}  {:>10}  {}\n", "NAME", width, "SIZE", "STORE");
  }
  for (const StoredModel& model : inventory.models) {
    PrintOut("{:<{}}  {:>10}  {}{}\n", model.name, width, HumanBytes(model.bytes),
             NameOf(model.origin),
             model.is_complete ? "" : ", unfinished: `hearth pull` resumes it");
  }
  if (!flags.shows_all) return Status();
  PrintOut("\n");
  PrintCatalogue(UsableMemoryBytes());
  return Status();
}

// The model and, when it is our own, its manifest.
struct Shown {
  StoredModel model;
  std::optional<Manifest> manifest;
};

Result<Shown> FindShown(const StorePlaces& places, const std::string& name) {
  const Inventory inventory = TakeInventory(places);
  HEARTH_ASSIGN(const ModelReference reference, ParseReference(name));
  const StoredModel* found = FindModel(inventory, reference);
  if (found == nullptr) {
    // One that is half here can be looked at and removed, too.
    const auto begun = std::find_if(
        inventory.models.begin(), inventory.models.end(),
        [&](const StoredModel& model) { return PlainForm(model.name) == PlainForm(name); });
    if (begun == inventory.models.end()) {
      return Error(Code::kNotFound, "%s is not on this machine: %s", Quoted(name).c_str(),
                   HowToGet(inventory, reference, name).c_str());
    }
    found = &*begun;
  }
  Shown shown{*found, std::nullopt};
  if (found->origin == Origin::kOwn) {
    HEARTH_ASSIGN(shown.manifest, ModelStore(places.own).Read(found->name));
  }
  return shown;
}

void PrintLine(const char* label, const std::string& value) {
  if (!value.empty()) PrintOut("{:<10} {}\n", label, value);
}

// What requests are sampled with that do not say; empty where nobody recommends anything, and where
// the model cannot be read, about which `hearth inspect` says more.
std::string SamplingOf(const StoredModel& model) {
  if (!model.is_complete) return "";
  Result<TextSource> source = TextSource::Open(model.path);
  if (!source.ok()) return "";
  Result<SamplingDefaults> sampling = OpenSamplingDefaults(*source);
  return sampling.ok() ? DescribeSampling(*sampling) : "";
}

Status Show(const StoreFlags& flags) {
  HEARTH_ASSIGN(const StorePlaces places, FindPlaces(ProcessEnvironment()));
  HEARTH_ASSIGN(const Shown shown, FindShown(places, flags.name));
  const StoredModel& model = shown.model;
  JsonArray files;
  if (shown.manifest) {
    for (const ManifestFile& file : shown.manifest->files) {
      files.push_back(
          JsonObject{{"name", file.name}, {"bytes", file.bytes}, {"digest", file.digest}});
    }
  }
  if (flags.json) {
    Json json = JsonOf(model);
    json.object()->emplace_back("licence", shown.manifest ? shown.manifest->licence : "");
    json.object()->emplace_back("sampling", SamplingOf(model));
    json.object()->emplace_back("files", std::move(files));
    PrintJson(json);
    return Status();
  }
  PrintLine("name", model.name);
  PrintLine("store", NameOf(model.origin));
  PrintLine("path", model.path);
  PrintLine("size", HumanBytes(model.bytes));
  PrintLine("repository", model.repo);
  PrintLine("revision", model.revision);
  PrintLine("format", model.quant);
  PrintLine("sampling", SamplingOf(model));
  if (shown.manifest) {
    PrintLine("URL", MaskSecretValue(shown.manifest->url));
    PrintLine("licence", shown.manifest->licence);
    for (const ManifestFile& file : shown.manifest->files) {
      PrintLine("file", file.name + "  " + HumanBytes(file.bytes) + "  " + file.digest);
    }
  }
  if (!model.is_complete) {
    PrintOut("unfinished: `hearth pull {}` resumes the download\n", model.name);
    return Status();
  }
  PrintOut("`hearth inspect {}` shows what is inside\n", flags.name);
  return Status();
}

Status Rm(const StoreFlags& flags) {
  HEARTH_ASSIGN(const StorePlaces places, FindPlaces(ProcessEnvironment()));
  const ModelStore store(places.own);
  HEARTH_ASSIGN(const Shown shown, FindShown(places, flags.name));
  if (shown.model.origin != Origin::kOwn) {
    return Error(Code::kInvalid,
                 "%s belongs to %s, and Hearth removes only what it downloaded itself: remove it "
                 "there",
                 Quoted(shown.model.name).c_str(), NameOf(shown.model.origin));
  }
  HEARTH_TRY(store.Remove(shown.model.name));
  PrintOut("removed {}, {}\n", shown.model.name, HumanBytes(shown.model.bytes));
  return Status();
}

}  // namespace

void AddStore(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<StoreFlags>();
  CLI::App* list = app.add_subcommand(
      "list",
      "List the models on this machine: Hearth's own, and those of Ollama, the Hugging Face "
      "cache and LM Studio");
  list->add_flag("--all", flags->shows_all, "List the known models that can be downloaded as well");
  list->add_flag("--json", flags->json, "Print JSON");
  list->callback([&chosen, flags] { chosen = [flags] { return List(*flags); }; });
  CLI::App* show = app.add_subcommand("show", "Show where a model is, its source and checksums");
  show->add_option("model", flags->name, "Name that `hearth list` shows")->required();
  show->add_flag("--json", flags->json, "Print JSON");
  show->callback([&chosen, flags] { chosen = [flags] { return Show(*flags); }; });
  CLI::App* rm = app.add_subcommand(
      "rm", "Remove a model that Hearth downloaded; models of other programs are not touched");
  rm->add_option("model", flags->name, "Name that `hearth list` shows")->required();
  rm->callback([&chosen, flags] { chosen = [flags] { return Rm(*flags); }; });
}

}  // namespace hearth
