// SPDX-License-Identifier: Apache-2.0
#include "store/selection.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

namespace hearth {
namespace {

constexpr std::string_view kGguf = ".gguf", kSafetensors = ".safetensors";

char Upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

std::string Uppercase(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), Upper);
  return out;
}

bool SameIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return Upper(x) == Upper(y); });
}

std::optional<int> NumberOf(std::string_view digits) {
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// x-00002-of-00003 is shard 2 of 3 of x.
struct Shard {
  std::string_view stem;
  int number = 1, count = 1;
};

Shard ShardOf(std::string_view stem) {
  constexpr size_t kSuffix = 15;  // "-00002-of-00003"
  if (stem.size() <= kSuffix) return {stem};
  const std::string_view suffix = stem.substr(stem.size() - kSuffix);
  const auto number = NumberOf(suffix.substr(1, 5)), count = NumberOf(suffix.substr(10, 5));
  if (suffix[0] != '-' || suffix.substr(6, 4) != "-of-" || !number || !count) return {stem};
  if (*number < 1 || *number > *count) return {stem};
  return {stem.substr(0, stem.size() - kSuffix), *number, *count};
}

bool IsQuant(std::string_view word) {
  for (const std::string_view whole : {"BF16", "F16", "F32", "FP16", "MXFP4"}) {
    if (word == whole) return true;
  }
  if (word.starts_with("MXFP4_")) return true;
  std::string_view rest = word;
  if (rest.starts_with("I") || rest.starts_with("T")) rest.remove_prefix(1);
  return rest.size() >= 2 && rest[0] == 'Q' && rest[1] >= '0' && rest[1] <= '9';
}

// The last word of the stem that names a quantisation; words end at '-' and '.'.
std::string QuantOf(std::string_view stem) {
  const std::string upper = Uppercase(stem);
  size_t end = upper.size();
  while (true) {
    const size_t start = end == 0 ? std::string::npos : upper.find_last_of("-.", end - 1);
    const size_t from = start == std::string::npos ? 0 : start + 1;
    const std::string word = upper.substr(from, end - from);
    if (IsQuant(word)) return word;
    if (start == std::string::npos) return "";
    end = start;
  }
}

bool IsModelGguf(std::string_view path) {
  const std::string name = Uppercase(BaseName(path));
  return name.size() > kGguf.size() && name.ends_with(".GGUF") && !name.starts_with("MMPROJ") &&
         name.find("IMATRIX") == std::string::npos;
}

// What a model of safetensors consists of, beside them.
bool IsDirectoryText(std::string_view path) {
  constexpr std::array<std::string_view, 10> kNames = {
      "config.json",           "generation_config.json",      "tokenizer.json", "tokenizer.model",
      "tokenizer_config.json", "special_tokens_map.json",     "vocab.json",     "merges.txt",
      "chat_template.jinja",   "model.safetensors.index.json"};
  return std::find(kNames.begin(), kNames.end(), path) != kNames.end();
}

void AddGgufModels(std::span<const ListedFile> files, std::vector<ModelFiles>& models) {
  struct Set {
    std::map<int, size_t> shards;  // number -> index
    int count = 1;
  };
  std::map<std::string, Set> sets;  // by the path without shard number and end
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string_view path = files[i].path;
    if (!IsModelGguf(path)) continue;
    const Shard shard = ShardOf(path.substr(0, path.size() - kGguf.size()));
    // The count is part of the key: the same model may be there in two and in three files.
    Set& set = sets[std::string(shard.stem) + Printf("/%d", shard.count)];
    set.count = shard.count;
    set.shards.emplace(shard.number, i);
  }
  for (const auto& [key, set] : sets) {
    if (set.shards.size() != static_cast<size_t>(set.count)) continue;
    ModelFiles model;
    const std::string_view path = files[set.shards.begin()->second].path;
    model.stem = BaseName(ShardOf(path.substr(0, path.size() - kGguf.size())).stem);
    model.quant = QuantOf(model.stem);
    for (const auto& [number, index] : set.shards) {
      model.files.push_back(index);
      model.bytes += files[index].bytes;
    }
    models.push_back(std::move(model));
  }
}

// The shards that are there are all there are.
bool AreWhole(std::span<const ListedFile> files, const std::vector<size_t>& weights) {
  std::map<std::string_view, std::pair<int, int>> sets;  // stem -> how many, of how many
  for (const size_t i : weights) {
    const std::string_view path = files[i].path;
    const Shard shard = ShardOf(path.substr(0, path.size() - kSafetensors.size()));
    sets[shard.stem].first += 1;
    sets[shard.stem].second = shard.count;
  }
  return std::all_of(sets.begin(), sets.end(),
                     [](const auto& set) { return set.second.first == set.second.second; });
}

void AddDirectory(std::span<const ListedFile> files, std::vector<ModelFiles>& models) {
  ModelFiles model{.is_directory = true};
  std::vector<size_t> weights;
  bool has_config = false;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string_view path = files[i].path;
    if (path.find('/') != path.npos) continue;  // other forms of the same model
    const bool is_weight = path.ends_with(kSafetensors) && path.size() > kSafetensors.size();
    if (!is_weight && !IsDirectoryText(path)) continue;
    if (is_weight) weights.push_back(i);
    has_config |= path == "config.json";
    model.files.push_back(i);
    model.bytes += files[i].bytes;
  }
  if (has_config && !weights.empty() && AreWhole(files, weights))
    models.push_back(std::move(model));
}

// What can be written behind the colon for it.
std::string LabelOf(std::span<const ListedFile> files, std::span<const ModelFiles> models,
                    const ModelFiles& model) {
  if (model.is_directory) return "safetensors";
  const auto same = std::count_if(models.begin(), models.end(), [&](const ModelFiles& other) {
    return other.quant == model.quant;
  });
  return model.quant.empty() || same > 1 ? files[model.files[0]].path : model.quant;
}

bool IsMeant(std::span<const ListedFile> files, const ModelFiles& model,
             std::string_view selector) {
  if (model.is_directory) return SameIgnoringCase(selector, "safetensors");
  if (SameIgnoringCase(selector, model.quant) || SameIgnoringCase(selector, model.stem))
    return true;
  return std::any_of(model.files.begin(), model.files.end(), [&](size_t i) {
    return SameIgnoringCase(selector, files[i].path) ||
           SameIgnoringCase(selector, BaseName(files[i].path));
  });
}

}  // namespace

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

std::span<const std::string_view> UsualQuants() {
  static constexpr std::array<std::string_view, 8> kQuants = {
      "Q4_K_M", "MXFP4", "MXFP4_MOE", "Q8_0", "Q4_K_S", "Q5_K_M", "Q6_K", "Q4_0"};
  return kQuants;
}

std::vector<ModelFiles> ModelsAmong(std::span<const ListedFile> files) {
  std::vector<ModelFiles> models;
  AddGgufModels(files, models);
  AddDirectory(files, models);
  return models;
}

Result<ModelFiles> ChooseModel(std::span<const ListedFile> files,
                               std::span<const ModelFiles> models, std::string_view selector,
                               std::string_view where) {
  if (models.empty()) {
    return Error(Code::kNotFound, "%s has neither GGUF files nor safetensors with a config.json",
                 Quoted(where).c_str());
  }
  std::vector<const ModelFiles*> meant;
  for (const ModelFiles& model : models) {
    if (selector.empty() || IsMeant(files, model, selector)) meant.push_back(&model);
  }
  if (meant.size() == 1) return *meant[0];
  if (selector.empty()) {
    for (const std::string_view quant : UsualQuants()) {
      for (const ModelFiles* model : meant) {
        if (model->quant == quant) return *model;
      }
    }
    if (meant.back()->is_directory) return *meant.back();
  }
  std::string labels;
  constexpr size_t kMaxLabels = 24;
  for (size_t i = 0; i < std::min(models.size(), kMaxLabels); ++i) {
    labels += (i == 0 ? "" : ", ") + LabelOf(files, models, models[i]);
  }
  if (models.size() > kMaxLabels) labels += Printf(" and %zu more", models.size() - kMaxLabels);
  const char* why = meant.empty() ? "has no model" : "has several models";
  return Error(Code::kNotFound, "%s %s%s%s; write one of these behind a colon: %s",
               Quoted(where).c_str(), why, selector.empty() ? "" : " for ",
               selector.empty() ? "" : Quoted(selector).c_str(), labels.c_str());
}

}  // namespace hearth
