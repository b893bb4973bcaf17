// SPDX-License-Identifier: Apache-2.0
#include "store/discovery.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "base/json.h"
#include "platform/file.h"
#include "store/folders.h"
#include "store/selection.h"

namespace hearth {
namespace {

constexpr size_t kMaxManifestBytes = size_t{1} << 20;
constexpr size_t kMaxFilesPerModel = 2000;

bool IsLowerHex(std::string_view text, size_t length) {
  return text.size() == length && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// "sha256:<64 hex>" of the layer that is the model; what else a manifest may say is not ours.
std::optional<std::string> ModelDigest(const std::string& manifest_path) {
  Result<std::string> text = ReadTextFile(manifest_path, kMaxManifestBytes);
  if (!text.ok()) return std::nullopt;
  Result<Json> json = ParseJson(*text, {.max_bytes = kMaxManifestBytes, .max_depth = 16});
  if (!json.ok()) return std::nullopt;
  const Json* layers = json->Find("layers");
  if (layers == nullptr || layers->array() == nullptr) return std::nullopt;
  for (const Json& layer : *layers->array()) {
    const Json* type = layer.Find("mediaType");
    const Json* digest = layer.Find("digest");
    if (type == nullptr || type->string() == nullptr || digest == nullptr ||
        digest->string() == nullptr || *type->string() != "application/vnd.ollama.image.model") {
      continue;
    }
    const std::string& text_of = *digest->string();
    if (text_of.starts_with("sha256:") && IsLowerHex(std::string_view(text_of).substr(7), 64)) {
      return text_of;
    }
  }
  return std::nullopt;
}

std::string OllamaName(const std::string& host, const std::string& space, const std::string& model,
                       const std::string& tag) {
  std::string name = model + ":" + tag;
  if (space != "library") name = space + "/" + name;
  return host == "registry.ollama.ai" ? name : host + "/" + name;
}

// The tags of one model.
void AddOllamaTags(const std::string& root, const std::string& host, const std::string& space,
                   const std::string& model, std::vector<StoredModel>& out) {
  const std::string folder = root + "/manifests/" + host + "/" + space + "/" + model;
  for (const std::string& tag : NamesIn(folder, kMaxFilesPerModel)) {
    if (!FileWithin(root, folder, tag)) continue;
    const auto digest = ModelDigest(folder + "/" + tag);
    if (!digest) continue;
    const auto blob = FileWithin(root, root + "/blobs", "sha256-" + digest->substr(7));
    if (!blob) continue;
    out.push_back({.name = OllamaName(host, space, model, tag),
                   .origin = Origin::kOllama,
                   .path = blob->path,
                   .bytes = blob->bytes});
  }
}

// Files below `folder` and one folder deeper (some repositories keep each quantisation in its own),
// with paths relative to it.
std::vector<ListedFile> FilesBelow(const std::string& root, const std::string& folder) {
  std::vector<ListedFile> files;
  for (const std::string& name : NamesIn(folder, kMaxFilesPerModel)) {
    if (const auto file = FileWithin(root, folder, name)) {
      files.push_back({name, file->bytes});
      continue;
    }
    const std::string inner = folder + "/" + name;
    if (!IsDirectory(inner)) continue;
    for (const std::string& deeper : NamesIn(inner, kMaxFilesPerModel)) {
      if (files.size() >= kMaxFilesPerModel) break;
      if (const auto file = FileWithin(root, inner, deeper)) {
        files.push_back({name + "/" + deeper, file->bytes});
      }
    }
  }
  return files;
}

// Every model among the files of a repository, each by a name that means no other of them.
void AddModelsOfRepo(const std::string& root, const std::string& folder, const StoredModel& like,
                     std::vector<StoredModel>& out) {
  const std::vector<ListedFile> files = FilesBelow(root, folder);
  const std::vector<ModelFiles> models = ModelsAmong(files);
  for (const ModelFiles& model : models) {
    StoredModel found = like;
    const std::string& first = files[model.files[0]].path;
    const auto same = std::count_if(models.begin(), models.end(), [&](const ModelFiles& other) {
      return other.quant == model.quant;
    });
    found.path = model.is_directory ? folder : folder + "/" + first;
    found.bytes = model.bytes;
    found.quant = model.quant;
    found.file = model.is_directory ? "" : first;
    const std::string label = model.quant.empty() || same > 1 ? first : model.quant;
    found.name = model.is_directory ? like.repo : like.repo + ":" + label;
    out.push_back(std::move(found));
  }
}

// "models--OWNER--REPO" as "OWNER/REPO"; empty for anything else, datasets among it.
std::string RepoOfCacheFolder(std::string_view name) {
  constexpr std::string_view kPrefix = "models--";
  if (!name.starts_with(kPrefix)) return "";
  name.remove_prefix(kPrefix.size());
  const size_t dashes = name.find("--");
  if (dashes == name.npos || dashes == 0 || dashes + 2 == name.size()) return "";
  return std::string(name.substr(0, dashes)) + "/" + std::string(name.substr(dashes + 2));
}

// The commit that stands for the repository: main's, else the one that came last.
std::string CommitOf(const std::string& root, const std::string& folder) {
  if (FileWithin(root, folder, "refs/main")) {
    Result<std::string> text = ReadTextFile(folder + "/refs/main", 256);
    if (text.ok()) {
      const std::string commit = text->substr(0, text->find_first_of(" \r\n"));
      if (IsLowerHex(commit, 40) && IsDirectory(folder + "/snapshots/" + commit)) return commit;
    }
  }
  std::string latest;
  time_t latest_time = 0;
  for (const std::string& name : NamesIn(folder + "/snapshots", kMaxFilesPerModel)) {
    struct stat info;
    if (!IsLowerHex(name, 40)) continue;
    if (::stat((folder + "/snapshots/" + name).c_str(), &info) != 0) continue;
    if (!latest.empty() && info.st_mtime <= latest_time) continue;
    latest = name;
    latest_time = info.st_mtime;
  }
  return latest;
}

}  // namespace

const char* NameOf(Origin origin) {
  switch (origin) {
    case Origin::kOwn:
      return "Hearth";
    case Origin::kOllama:
      return "Ollama";
    case Origin::kHuggingFace:
      return "Hugging Face";
    case Origin::kLmStudio:
      return "LM Studio";
  }
  return "?";
}

std::vector<StoredModel> FindOllamaModels(const std::string& root) {
  std::vector<StoredModel> found;
  const std::string manifests = root + "/manifests";
  for (const std::string& host : NamesIn(manifests, 100)) {
    for (const std::string& space : NamesIn(manifests + "/" + host, 1000)) {
      for (const std::string& model : NamesIn(manifests + "/" + host + "/" + space)) {
        AddOllamaTags(root, host, space, model, found);
      }
    }
  }
  return found;
}

std::vector<StoredModel> FindHuggingFaceModels(const std::string& root) {
  std::vector<StoredModel> found;
  if (root.empty()) return found;
  for (const std::string& name : NamesIn(root)) {
    const std::string repo = RepoOfCacheFolder(name);
    const std::string folder = root + "/" + name;
    if (repo.empty()) continue;
    const std::string commit = CommitOf(root, folder);
    if (commit.empty()) continue;
    const StoredModel like{.origin = Origin::kHuggingFace, .repo = repo, .revision = commit};
    AddModelsOfRepo(root, folder + "/snapshots/" + commit, like, found);
  }
  return found;
}

std::vector<StoredModel> FindLmStudioModels(const std::string& root) {
  std::vector<StoredModel> found;
  for (const std::string& owner : NamesIn(root)) {
    for (const std::string& repo : NamesIn(root + "/" + owner)) {
      const StoredModel like{.origin = Origin::kLmStudio, .repo = owner + "/" + repo};
      AddModelsOfRepo(root, root + "/" + owner + "/" + repo, like, found);
    }
  }
  return found;
}

}  // namespace hearth
