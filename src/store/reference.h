// SPDX-License-Identifier: Apache-2.0
// What people write for a model: a short name, OWNER/REPO with a revision and a file, or a URL.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
namespace hearth {

struct ModelReference {
  enum class Kind : unsigned char { kName, kHub, kUrl };
  Kind kind = Kind::kName;
  std::string name{};      // kName: as given
  std::string repo{};      // kHub: "OWNER/REPO"
  std::string revision{};  // kHub: empty means the default branch
  std::string selector{};  // kHub: a file or a quantisation; empty means the usual choice
  std::string url{};       // kUrl
};

// "qwen3-8b", "OWNER/REPO", "OWNER/REPO@REV:QUANT", "hf.co/OWNER/REPO:FILE", "https://...".
// kInvalid says what is wrong with it.
Result<ModelReference> ParseReference(std::string_view text);

// A name that Hearth gives to a model in its store: letters, digits, '.', '_' and '-', at most 128,
// starting with a letter or digit. So it is also the name of a folder that cannot lead elsewhere.
bool IsModelName(std::string_view name);

// Letters in lower case, ':' as '-', and without the tag "latest": "Qwen3:8B" and "qwen3-8b" are
// the same.
std::string PlainForm(std::string_view name);

// The known names most like `name`, best first: at most `max_names`, each within a third of its
// length in insertions, deletions and substitutions, or containing it.
std::vector<std::string> NearNames(std::string_view name, std::span<const std::string> known,
                                   size_t max_names = 3);

}  // namespace hearth
