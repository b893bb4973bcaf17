// SPDX-License-Identifier: Apache-2.0
#include "app/model_argument.h"

#include <algorithm>
#include <vector>

#include "platform/file.h"
#include "store/folders.h"
#include "store/inventory.h"
#include "store/reference.h"
#include "store/selection.h"

namespace hearth {
namespace {

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// "a.gguf, b.gguf and 3 more"; empty when there are none.
std::string GgufNamesIn(const std::string& folder) {
  constexpr size_t kMaxShown = 8;
  std::string names;
  size_t count = 0;
  for (const std::string& name : NamesIn(folder)) {
    if (!name.ends_with(".gguf") || ++count > kMaxShown) continue;
    names += (names.empty() ? "" : ", ") + name;
  }
  return count > kMaxShown ? names + Printf(" and %zu more", count - kMaxShown) : names;
}

// Safetensors, their parts, or a tokenizer alone: other rooms judge it.
bool LooksLikeDirectoryModel(const std::string& folder) {
  for (const std::string& name : NamesIn(folder)) {
    if (name == "config.json" || name == "tokenizer.json" || name == "original" ||
        name.ends_with(".safetensors")) {
      return true;
    }
  }
  return false;
}

Result<ModelArgument> ModelInFolder(const std::string& folder) {
  if (LooksLikeDirectoryModel(folder)) return ModelArgument{folder, ""};
  std::vector<ListedFile> files;
  for (const std::string& name : NamesIn(folder)) files.push_back({name, 0});
  const std::vector<ModelFiles> models = ModelsAmong(files);
  if (models.size() == 1) {
    return ModelArgument{folder + "/" + files[models[0].files[0]].path, ""};
  }
  const std::string names = GgufNamesIn(folder);
  if (names.empty()) {
    return Error(Code::kNotFound,
                 "%s: this folder has no model: expected a GGUF file, or safetensors with "
                 "config.json",
                 folder.c_str());
  }
  return Error(Code::kInvalid, "%s: this folder has %s: name one of its files: %s", folder.c_str(),
               models.empty() ? "no whole model" : "several models", names.c_str());
}

// What git leaves in place of a large file when it was cloned without the extension for them.
Status CheckIsNoPointer(const std::string& path) {
  constexpr size_t kMaxPointer = 1024;
  Result<std::string> text = ReadTextFile(path, kMaxPointer);
  if (!text.ok() || !text->starts_with("version https://git-lfs")) return Status();
  return Error(Code::kInvalid,
               "%s: a Git LFS pointer, not the file itself: run `git lfs pull` in its folder, or "
               "download the model with `hearth pull`",
               path.c_str());
}

// Something that only a path would be.
bool LooksLikePath(const std::string& given) {
  return given.starts_with('/') || given.starts_with('.') || given.starts_with('~') ||
         given.ends_with('/') || given.ends_with(".gguf") || given.ends_with(".safetensors") ||
         std::count(given.begin(), given.end(), '/') > 1;
}

Status NoSuchPath(const std::string& given) {
  const std::string folder = ParentOf(given);
  const std::string names = IsDirectory(folder) ? GgufNamesIn(folder) : "";
  if (!IsDirectory(folder)) {
    return Error(Code::kNotFound, "%s: no such file, and no folder %s", given.c_str(),
                 folder.c_str());
  }
  return Error(Code::kNotFound, "%s: no such file; %s %s", given.c_str(), folder.c_str(),
               names.empty() ? "has no GGUF files" : ("has: " + names).c_str());
}

}  // namespace

Result<ModelArgument> FindModelArgument(const std::string& given, const Environment& environment) {
  if (given.empty()) {
    return Error(Code::kInvalid, "name a model: a path, or a name that `hearth list` shows");
  }
  if (IsDirectory(given)) return ModelInFolder(given);
  if (FileExists(given)) {
    HEARTH_TRY(CheckIsNoPointer(given));
    return ModelArgument{given, ""};
  }
  if (given.find("://") == std::string::npos && LooksLikePath(given)) return NoSuchPath(given);
  HEARTH_ASSIGN(const ModelReference reference, ParseReference(given));
  HEARTH_ASSIGN(const StorePlaces places, FindPlaces(environment));
  const Inventory inventory = TakeInventory(places);
  if (const StoredModel* model = FindModel(inventory, reference)) {
    return ModelArgument{model->path, given};
  }
  return Error(Code::kNotFound, "%s is neither a file nor a model on this machine: %s",
               Quoted(given).c_str(), HowToGet(inventory, reference, given).c_str());
}

Result<ModelArgument> FindModelArgument(const std::string& given) {
  return FindModelArgument(given, ProcessEnvironment());
}

Result<std::string> ModelPath(const std::string& given) {
  HEARTH_ASSIGN(ModelArgument found, FindModelArgument(given));
  return std::move(found.path);
}

}  // namespace hearth
