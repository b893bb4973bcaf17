// SPDX-License-Identifier: Apache-2.0
#include "sampling/published_sampling.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/ascii.h"

namespace hearth {
namespace {

struct Row {
  std::string_view family;   // words that the name begins with, after the publisher's
  std::string_view variant;  // all other words of the name but its size
  std::string_view sizes;    // those it holds for; empty: all
  SamplingDefaults documented;
};

SamplingDefaults Documented(double temperature, double top_p, std::optional<int> top_k,
                            std::optional<double> repetition_penalty, const char* source) {
  SamplingDefaults out;
  out.temperature = temperature;
  out.top_p = top_p;
  out.top_k = top_k;
  out.repetition_penalty = repetition_penalty;
  out.source = source;
  return out;
}

// The first row that fits. Only values that the publisher states are here: where its sizes differ
// and we have not seen all of them, the setting stays open.
// Checked again in November 2026, where the publishers' own pages could not be reached, against
// public copies: Qwen3-0.6B's generation_config.json (0.6, 0.95, 20); the model cards of
// Qwen3-4B-Thinking-2507 (0.6, 0.95, 20) and Qwen3-30B-A3B-Instruct-2507 (0.7, 0.8, 20); for Llama
// the examples of chats in Meta's own repositories, llama3 and llama-models, whose one script is
// for 3, 3.1, 3.2 and 3.3 (0.6, 0.9), and Llama 3.1 8B's generation_config.json, which agrees.
const std::vector<Row>& Rows() {
  static const auto* rows = [] {
    const auto smol = Documented(0.2, 0.9, {}, {}, "SmolLM2's model card");
    const auto qwen2 = Documented(0.7, 0.8, 20, {}, "Qwen2.5's generation_config.json");
    const auto large = Documented(0.7, 0.8, 20, 1.05, "Qwen2.5's generation_config.json");
    const auto thinks = Documented(0.6, 0.95, 20, {}, "Qwen3's generation_config.json");
    const auto thinks_2507 = Documented(0.6, 0.95, 20, {}, "Qwen3-2507's model card");
    const auto answers_2507 = Documented(0.7, 0.8, 20, {}, "Qwen3-2507's model card");
    const auto llama = Documented(0.6, 0.9, {}, {}, "Meta's example of a chat with Llama 3");
    const auto oss = Documented(1.0, 1.0, {}, {}, "gpt-oss's README");
    return new std::vector<Row>{
        {"smollm2", "instruct", "", smol},
        // What the files of the published instruct models call themselves: their last training.
        {"smollm2", "8k lc100k mix1 ep2", "135m 360m", smol},
        {"smollm2", "8k mix7 ep2 v2", "1.7b", smol},
        {"qwen2.5", "instruct", "7b 14b 32b 72b", large},
        {"qwen2.5", "instruct", "", qwen2},
        {"qwen2.5 coder", "instruct", "", qwen2},
        {"qwen3", "", "", thinks},
        {"qwen3", "thinking 2507", "", thinks_2507},
        {"qwen3", "instruct 2507", "", answers_2507},
        {"llama 3", "instruct", "", llama},
        {"llama 3.1", "instruct", "", llama},
        {"llama 3.2", "instruct", "", llama},
        {"llama 3.3", "instruct", "", llama},
        {"gpt oss", "", "", oss},
    };
  }();
  return *rows;
}

using Words = std::vector<std::string>;

Words WordsOf(std::string_view text) {
  Words words(1);
  for (const char letter : text) {
    const char c = LowerAscii(letter);
    const bool is_part = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
    if (is_part) {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// "7b", "1.7b", "135m", and "a3b" of models of experts.
bool IsSize(std::string_view word) {
  if (word.starts_with('a')) word.remove_prefix(1);
  if (word.size() < 2 || (word.back() != 'b' && word.back() != 'm')) return false;
  word.remove_suffix(1);
  return word.find_first_not_of("0123456789.") == std::string_view::npos && word.front() != '.';
}

bool Fits(const Row& row, const Words& name) {
  const Words family = WordsOf(row.family), sizes = WordsOf(row.sizes);
  if (name.size() < family.size() || !std::equal(family.begin(), family.end(), name.begin())) {
    return false;
  }
  Words variant;
  bool has_size = false;
  for (size_t i = family.size(); i < name.size(); ++i) {
    if (!IsSize(name[i])) {
      variant.push_back(name[i]);
      continue;
    }
    const bool is_listed = std::find(sizes.begin(), sizes.end(), name[i]) != sizes.end();
    if (!sizes.empty() && !is_listed) return false;
    has_size = true;
  }
  return has_size && variant == WordsOf(row.variant);
}

}  // namespace

SamplingDefaults PublishedSampling(std::string_view model_name) {
  constexpr size_t kLongest = 128;  // no published name has half as many letters
  if (model_name.size() > kLongest) return {};
  Words name = WordsOf(model_name);
  const bool has_publisher =
      !name.empty() && (name[0] == "meta" || name[0] == "openai" || name[0] == "qwen");
  if (has_publisher) name.erase(name.begin());
  for (const Row& row : Rows()) {
    if (Fits(row, name)) return row.documented;
  }
  return {};
}

}  // namespace hearth
