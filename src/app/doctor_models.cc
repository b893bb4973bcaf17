// SPDX-License-Identifier: Apache-2.0
// Doctor: the models on this machine, and one that is asked about.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>

#include "app/doctor_checks.h"
#include "app/model_argument.h"
#include "app/open_backend.h"
#include "app/open_model.h"
#include "app/open_text.h"
#include "hub/digest.h"
#include "platform/file.h"
#include "store/inventory.h"
#include "store/model_store.h"

namespace hearth {
namespace {

Finding StoreFolder(const Environment& environment) {
  Result<StorePlaces> places = FindPlaces(environment);
  if (!places.ok()) {
    return Fault("no folder for models: " + places.status().message(),
                 "set HOME or XDG_DATA_HOME to a folder that can be written");
  }
  // The nearest part of the path that exists decides whether the rest can be made.
  std::string folder = places->own;
  while (!FileExists(folder) && !IsDirectory(folder) && folder.find('/') != std::string::npos &&
         folder.size() > 1) {
    folder.resize(std::max<size_t>(folder.rfind('/'), 1));
  }
  if (IsDirectory(folder) && ::access(folder.c_str(), W_OK | X_OK) == 0) {
    return Good("models are kept in " + places->own);
  }
  return Fault(Quoted(folder) + " cannot be written",
               "`hearth pull` will fail: change its owner, or set XDG_DATA_HOME to a folder of "
               "yours");
}

Finding StoreSpace(const Environment& environment) {
  Result<StorePlaces> places = FindPlaces(environment);
  if (!places.ok()) return Unknown("no folder for models");
  Result<uint64_t> bytes = FreeDiskBytes(places->own);
  if (!bytes.ok()) return Unknown(bytes.status().message());
  const std::string found = HumanBytes(*bytes) + " free for models";
  if (*bytes >= uint64_t{15} << 30) return Good(found);
  return Note(found,
              "gpt-oss-20b takes 12 GiB: `hearth list` shows what could be removed with "
              "`hearth rm`");
}

Finding StoreModels(const Environment& environment) {
  Result<StorePlaces> places = FindPlaces(environment);
  if (!places.ok()) return Unknown("no folder for models");
  const Inventory inventory = TakeInventory(*places);
  if (!inventory.problems.empty()) {
    return Warning(inventory.problems.front(), "remove that folder and pull the model again");
  }
  for (const StoredModel& model : inventory.models) {
    if (model.is_complete) continue;
    return Note("the download of " + model.name + " is unfinished",
                "resume it with `hearth pull " + model.name + "`, or remove it with `hearth rm " +
                    model.name + "`");
  }
  if (inventory.models.empty()) {
    return Note("no models on this machine", "run: hearth pull smollm2-135m");
  }
  return Good(Printf("%zu models", inventory.models.size()));
}

Finding StoreFilesystem(const SystemFiles& files, const Environment& environment) {
  Result<StorePlaces> places = FindPlaces(environment);
  if (!places.ok()) return Unknown("no folder for models");
  const std::string type = FilesystemOf(files, places->own);
  if (type.empty()) return Unknown("the file system of the models is not known");
  for (const char* slow : {"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "virtiofs"}) {
    if (type != slow) continue;
    return Note("models are on a network or shared file system (" + type + ")",
                "a model loads as fast as that delivers it; a local disk is usually faster");
  }
  if (type == "tmpfs" || type == "ramfs") {
    return Warning("models are in memory (" + type + ")",
                   "each takes its size twice, and a reboot removes them: keep models on a disk");
  }
  return Good(type);
}

// The model that was asked about, opened by the first check that looks at it.
class GivenModel {
 public:
  GivenModel(std::string given, const Environment& environment)
      : given_(std::move(given)), environment_(environment) {}

  // Null: it does not open, and Opens() says why.
  const Model* Open() {
    if (is_tried_) return model_ ? &*model_ : nullptr;
    is_tried_ = true;
    Result<ModelArgument> argument = FindModelArgument(given_, environment_);
    if (!argument.ok()) {
      problem_ = Fault(argument.status().message(), "run: hearth list");
      return nullptr;
    }
    path_ = argument->path;
    Result<Model> model = OpenModel(path_);
    if (!model.ok()) {
      problem_ = Fault(model.status().message(),
                       "the file is damaged, unfinished or of a kind that Hearth does not run: "
                       "get it again with `hearth pull`");
      return nullptr;
    }
    model_ = std::move(*model);
    return &*model_;
  }

  Finding Opens() {
    const Model* model = Open();
    if (model == nullptr) return problem_;
    return Good(Printf("%s, %s", model->spec.family.c_str(),
                       HumanBytes(static_cast<uint64_t>(model->file->file_bytes())).c_str()));
  }
  Finding Fits(uint64_t memory_bytes);
  Finding Talks();

 private:
  std::string given_, path_;
  Environment environment_;
  std::optional<Model> model_;
  Finding problem_;
  bool is_tried_ = false;
};

Finding GivenModel::Fits(uint64_t memory_bytes) {
  const Model* model = Open();
  if (model == nullptr) return Unknown("the model does not open");
  Result<BackendPlan> plan = PlanBackend(*model, BackendOptions{});
  if (!plan.ok()) return Fault(plan.status().message(), "run: hearth inspect " + given_);
  const auto needed = static_cast<uint64_t>(plan->weight_bytes + plan->step_bytes);
  const std::string found =
      HumanBytes(needed) + " needed of " + HumanBytes(memory_bytes) + ", before any context";
  if (needed > memory_bytes) {
    return Fault(found,
                 "use a smaller model or a smaller quantisation: `hearth list --all` shows "
                 "what fits");
  }
  if (!plan->warning.empty()) return Note(found, plan->warning);
  if (needed > memory_bytes / 10 * 9) {
    return Warning(found,
                   "little is left for conversations: use a smaller model, or --context to "
                   "bound them");
  }
  return Good(found);
}

Finding GivenModel::Talks() {
  const Model* model = Open();
  if (model == nullptr) return Unknown("the model does not open");
  Result<ModelText> text = OpenModelText(*model, path_);
  if (text.ok()) return Good("tokenizer and chat template are there");
  return Fault(text.status().message(),
               "get the model with its tokenizer and chat template: `hearth pull`");
}

Finding Sums(const std::string& given, const Environment& environment) {
  Result<StorePlaces> places = FindPlaces(environment);
  Result<ModelReference> reference = ParseReference(given);
  if (!places.ok() || !reference.ok()) return Unknown("no checksum is known for this file");
  const Inventory inventory = TakeInventory(*places);
  const StoredModel* found = FindModel(inventory, *reference);
  if (found == nullptr || found->origin != Origin::kOwn) {
    return Unknown("no checksum is known: Hearth did not download this model");
  }
  const ModelStore store(places->own);
  Result<Manifest> manifest = store.Read(found->name);
  if (!manifest.ok()) return Unknown(manifest.status().message());
  for (const ManifestFile& file : manifest->files) {
    const bool is_sha = file.digest.starts_with("sha256:");
    if (!is_sha && !file.digest.starts_with("git:")) continue;
    Digester digester(is_sha ? DigestKind::kSha256 : DigestKind::kGitBlob, file.bytes);
    std::ifstream in(store.FolderOf(found->name) + "/" + file.name, std::ios::binary);
    std::vector<char> piece(size_t{4} << 20);
    while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0) {
      digester.Add(std::as_bytes(std::span(piece.data(), static_cast<size_t>(in.gcount()))));
    }
    if (digester.Finish().text() == file.digest) continue;
    return Fault(file.name + " does not have the checksum that it was downloaded with",
                 "the disk or somebody changed it: run `hearth rm " + found->name +
                     "` and `hearth pull " + found->name + "`");
  }
  return Good("all files have the checksums that they were downloaded with");
}

}  // namespace

std::string FilesystemOf(const SystemFiles& files, const std::string& path) {
  // 36 35 98:0 /root /mount/point options - type source options
  const std::string text = files.Text("/proc/self/mountinfo");
  std::string type;
  size_t longest = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    std::vector<std::string> words;
    for (size_t from = 0; from <= line.size();) {
      const size_t space = std::min(line.find(' ', from), line.size());
      words.push_back(line.substr(from, space - from));
      from = space + 1;
    }
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 5 || words.end() - dash < 2) continue;
    const std::string& point = words[4];
    const bool holds = point == "/" || path == point || path.starts_with(point + "/");
    if (!holds || point.size() < longest) continue;
    longest = point.size();
    type = dash[1];
  }
  return type;
}

void AddStoreChecks(const SystemFiles& files, const Environment& environment,
                    std::vector<Check>& checks) {
  checks.push_back({"store.folder", [environment] { return StoreFolder(environment); }});
  checks.push_back({"store.space", [environment] { return StoreSpace(environment); }});
  checks.push_back({"store.models", [environment] { return StoreModels(environment); }});
  checks.push_back(
      {"store.file-system", [&files, environment] { return StoreFilesystem(files, environment); }});
}

void AddModelChecks(const std::string& model, const Environment& environment, uint64_t memory_bytes,
                    bool hashes, std::vector<Check>& checks) {
  const auto given = std::make_shared<GivenModel>(model, environment);
  checks.push_back({"model.opens", [=] { return given->Opens(); }});
  checks.push_back({"model.fits", [=] { return given->Fits(memory_bytes); }});
  checks.push_back({"model.talks", [=] { return given->Talks(); }});
  if (hashes) checks.push_back({"model.checksums", [=] { return Sums(model, environment); }});
}

}  // namespace hearth
