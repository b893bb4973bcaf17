// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/logprob_json.h"

#include <utility>

namespace hearth {
namespace {

using WriteOne = JsonObject (*)(const SpelledLogprob& one);

JsonObject Brief(const SpelledLogprob& one) {
  return {{"token", one.bytes}, {"logprob", static_cast<double>(one.logprob)}};
}

JsonObject WithBytes(const SpelledLogprob& one) {
  JsonArray bytes;
  for (const char byte : one.bytes) {
    bytes.emplace_back(static_cast<int>(static_cast<unsigned char>(byte)));
  }
  JsonObject out = Brief(one);
  out.push_back({"bytes", std::move(bytes)});
  return out;
}

JsonArray Write(const std::vector<AnswerLogprob>& logprobs, WriteOne write) {
  JsonArray out;
  for (const AnswerLogprob& one : logprobs) {
    JsonArray top;
    for (const SpelledLogprob& other : one.top) top.push_back(write(other));
    JsonObject entry = write(one.chosen);
    entry.push_back({"top_logprobs", std::move(top)});
    out.emplace_back(JsonText{WriteJson(entry)});
  }
  return out;
}

}  // namespace

JsonArray LogprobsAsJson(const std::vector<AnswerLogprob>& logprobs) {
  return Write(logprobs, WithBytes);
}

JsonArray BriefLogprobsAsJson(const std::vector<AnswerLogprob>& logprobs) {
  return Write(logprobs, Brief);
}

}  // namespace hearth
