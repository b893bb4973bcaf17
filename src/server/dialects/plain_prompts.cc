// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/plain_prompts.h"

#include <utility>

namespace hearth {
namespace {

std::optional<std::vector<Token>> TokensOf(const JsonArray& ids) {
  std::vector<Token> tokens;
  for (const Json& id : ids) {
    const std::optional<int64_t> number = id.integer();
    if (!number || *number < 0 || *number > 1 << 29) return std::nullopt;
    tokens.push_back(static_cast<Token>(*number));
  }
  return tokens;
}

}  // namespace

ApiStatus ReadPlainPrompts(const Json& prompt, const std::string& field, size_t max_prompts,
                           std::vector<PlainPrompt>& out) {
  const ApiError wrong = BadField(field, "must be a string, token ids, or a list of either");
  if (prompt.string() != nullptr) {
    out.emplace_back(*prompt.string());
    return {};
  }
  const JsonArray* list = prompt.array();
  if (list == nullptr || list->empty()) return wrong;
  if (list->front().number()) {
    std::optional<std::vector<Token>> tokens = TokensOf(*list);
    if (!tokens) return wrong;
    out.emplace_back(*std::move(tokens));
    return {};
  }
  if (list->size() > max_prompts) {
    return BadField(field,
                    Printf("must have at most %zu entries, found %zu", max_prompts, list->size()));
  }
  for (const Json& each : *list) {
    if (each.string() != nullptr) {
      out.emplace_back(*each.string());
      continue;
    }
    auto tokens = each.array() == nullptr ? std::nullopt : TokensOf(*each.array());
    if (!tokens) return wrong;
    out.emplace_back(*std::move(tokens));
  }
  return {};
}

}  // namespace hearth
