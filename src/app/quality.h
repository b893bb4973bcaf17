// SPDX-License-Identifier: Apache-2.0
// What a model lost against another of the same vocabulary, or one arithmetic against another, on a
// text.
#pragma once
#include <string>

#include "app/divergence.h"
#include "app/open_backend.h"
#include "base/result.h"
namespace hearth {

struct Quality {
  Divergence divergence;
  double perplexity_before = 0, perplexity_after = 0;
};
// One is loaded after the other, so that memory for one of them is enough, and for the predictions
// of the first: 4 bytes for each of `num_tokens` and each word of the vocabulary.
struct Compared {
  std::string path;
  BackendFlags hardware;
};
Result<Quality> CompareQuality(const Compared& before, const Compared& after,
                               const std::string& text, int num_tokens);
// Lines for people; `against` says what was compared with: "the source".
void PrintQuality(const Quality& quality, const std::string& against);

}  // namespace hearth
