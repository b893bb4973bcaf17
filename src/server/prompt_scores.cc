// SPDX-License-Identifier: Apache-2.0
#include "server/prompt_scores.h"

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

std::optional<ApiError> CheckPromptScores(const TurnRequest& request, int64_t num_tokens) {
  const int num_top = request.sampling.num_prompt_logprobs;
  const int64_t scores = num_tokens * (num_top + 1) * request.num_choices;
  if (num_top < 0 || scores <= kMaxPromptScores) return std::nullopt;
  return BadField(request.scores_field,
                  Printf("%lld tokens in the prompt with %d others each, for %d choices, are %lld "
                         "log-probabilities; the limit is %lld",
                         static_cast<long long>(num_tokens), num_top, request.num_choices,
                         static_cast<long long>(scores), static_cast<long long>(kMaxPromptScores)));
}

Json PromptLogprobsAsJson(const std::vector<AnswerLogprob>& prompt, int num_top) {
  JsonArray out{Json()};
  for (const AnswerLogprob& one : prompt) {
    JsonObject entries{Entry(one.chosen, one.rank)};
    for (int i = 0; i < std::min(num_top, static_cast<int>(one.top.size())); ++i) {
      const SpelledLogprob& other = one.top[static_cast<size_t>(i)];
      if (other.token != one.chosen.token) entries.push_back(Entry(other, i + 1));
    }
    out.push_back(std::move(entries));
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
  tops_.emplace_back(std::move(top));
}

Json LogprobLists::AsJson() const {
  return JsonObject{{"tokens", tokens_},
                    {"token_logprobs", values_},
                    {"top_logprobs", tops_},
                    {"text_offset", offsets_}};
}

}  // namespace hearth
