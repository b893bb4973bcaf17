// SPDX-License-Identifier: Apache-2.0
#include "app/model_files.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>

namespace hearth {
namespace {

namespace fs = std::filesystem;

// Beside safetensors: what weights/safetensors_dir.cc, open_tokenizer.cc, open_format.cc and
// open_sampling.cc read.
constexpr std::string_view kTexts[] = {"config.json",         "generation_config.json",
                                       "tokenizer.json",      "tokenizer_config.json",
                                       "chat_template.jinja", "model.safetensors.index.json"};
constexpr std::string_view kWeights = ".safetensors";

constexpr size_t kMostNames = 20'000;  // a folder of shards has thousands

bool IsOfFolderModel(const fs::path& path) {
  const std::string name = path.filename().string();
  return std::find(std::begin(kTexts), std::end(kTexts), name) != std::end(kTexts) ||
         name.ends_with(kWeights);
}

void AddFolder(const fs::path& folder, ModelFiles& out) {
  std::error_code error;
  out.folders.push_back(folder.string());
  size_t count = 0;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (++count > kMostNames) return;
    if (IsOfFolderModel(at->path())) out.files.push_back(at->path().string());
  }
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// "x-00001-of-00003.gguf" without its number: "x-" and "-of-00003.gguf".
struct SplitName {
  std::string before, after;
};
std::optional<SplitName> SplitNameOf(const std::string& name) {
  constexpr std::string_view kPattern = "-NNNNN-of-NNNNN.gguf";
  if (name.size() < kPattern.size()) return std::nullopt;
  const size_t begin = name.size() - kPattern.size();
  for (size_t i = 0; i < kPattern.size(); ++i) {
    const char c = name[begin + i];
    if (kPattern[i] == 'N' ? !IsDigit(c) : c != kPattern[i]) return std::nullopt;
  }
  return SplitName{name.substr(0, begin + 1), name.substr(begin + 6)};
}

bool IsPartOf(const SplitName& set, const std::string& name) {
  const size_t size = set.before.size() + 5 + set.after.size();
  return name.size() == size && name.starts_with(set.before) && name.ends_with(set.after) &&
         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(set.before.size()),
                     name.end() - static_cast<std::ptrdiff_t>(set.after.size()), IsDigit);
}

void AddParts(const fs::path& model, const fs::path& folder, ModelFiles& out) {
  const std::optional<SplitName> set = SplitNameOf(model.filename().string());
  if (!set) return;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename() != model.filename() &&
        IsPartOf(*set, at->path().filename().string())) {
      out.files.push_back(at->path().string());
    }
  }
}

}  // namespace

ModelFiles ModelFilesOf(const std::string& model) {
  ModelFiles out;
  std::error_code error;
  const fs::path path(model);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (fs::is_directory(path, error)) {
    AddFolder(path, out);
    // OpenAI's layout keeps the weights one folder below.
    const bool has_weights = std::ranges::any_of(
        out.files, [](const std::string& file) { return file.ends_with(kWeights); });
    if (!has_weights && fs::is_directory(path / "original", error)) {
      AddFolder(path / "original", out);
    }
  } else if (model.ends_with(kWeights)) {
    AddFolder(folder, out);
  } else {
    out.files.push_back(model);
    AddParts(path, folder, out);
  }
  std::ranges::sort(out.files);
  std::ranges::sort(out.folders);
  return out;
}

}  // namespace hearth
