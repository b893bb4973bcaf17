// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/prompt_scores.h"

#include <algorithm>
#include <utility>

namespace hearth {
namespace {

JsonMember Entry(const SpelledLogprob& one, int rank) {
  return {std::to_string(one.token), JsonObject{{"logprob", static_cast<double>(one.logprob)},
                                                {"rank", rank},
                                                {"decoded_token", one.bytes}}};
}

}  // namespace

Json PromptLogprobsAsJson(const std::vector<AnswerLogprob>& prompt, int num_top) {
  JsonArray out{Json()};
  for (const AnswerLogprob& one : prompt) {
    JsonObject entries{Entry(one.chosen, one.rank)};
    for (int i = 0; i < std::min(num_top, static_cast<int>(one.top.size())); ++i) {
      const SpelledLogprob& other = one.top[static_cast<size_t>(i)];
      if (other.token != one.chosen.token) entries.push_back(Entry(other, i + 1));
    }
    out.emplace_back(JsonText{WriteJson(entries)});
  }
  return out;
}

void LogprobLists::AddUnknown(const std::string& bytes, size_t length) {
  tokens_.emplace_back(bytes);
  values_.emplace_back();
  tops_.emplace_back();
  offsets_.emplace_back(static_cast<int64_t>(offset_));
  offset_ += length;
}

void LogprobLists::Add(const AnswerLogprob& one, int num_top, size_t length) {
  tokens_.emplace_back(one.chosen.bytes);
  values_.emplace_back(static_cast<double>(one.chosen.logprob));
  offsets_.emplace_back(static_cast<int64_t>(offset_));
  offset_ += length;
  JsonObject top;
  for (int i = 0; i < std::min(num_top, static_cast<int>(one.top.size())); ++i) {
    const SpelledLogprob& other = one.top[static_cast<size_t>(i)];
    // Two tokens may be spelled alike once made printable; names may not repeat.
    const std::string name = *ParseJson(WriteJson(Json(other.bytes)))->string();
    bool is_new = true;
    for (const JsonMember& member : top) is_new = is_new && member.first != name;
    if (is_new) top.emplace_back(name, static_cast<double>(other.logprob));
  }
  tops_.emplace_back(JsonText{WriteJson(top)});
}

Json LogprobLists::AsJson() const {
  return JsonObject{{"tokens", tokens_},
                    {"token_logprobs", values_},
                    {"top_logprobs", tops_},
                    {"text_offset", offsets_}};
}

}  // namespace hearth
