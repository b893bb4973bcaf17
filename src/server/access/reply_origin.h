// SPDX-License-Identifier: Apache-2.0
// What a reply came from, small enough for the id of a server-sent event: who has it can ask for
// the same reply again. Not for anybody's eyes: it leaves the server encrypted (event_ids.h).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
namespace hearth {

struct ReplyOrigin {
  std::string id;  // 24 hexadecimal digits, as NewId makes them
  int64_t created_s = 0;
  uint64_t seed = 0;
  std::array<uint64_t, 2> request{};  // of path and body (request_digest.h)
  uint64_t basis = 0;                 // of what else the reply follows from
  bool operator==(const ReplyOrigin&) const = default;
};

inline constexpr size_t kOriginBytes = 12 + 8 + 8 + 16 + 8;
std::string AsBytes(const ReplyOrigin& origin);
// Of what AsBytes made; nothing for another length.
std::optional<ReplyOrigin> ReplyOriginFrom(std::string_view bytes);

// A number for all that a reply follows from beside its request: the prompt as tokens, and the
// words in which the model, the program and its settings are known.
uint64_t BasisOf(std::span<const std::string> words, std::span<const Token> prompt,
                 uint64_t before = 0);

}  // namespace hearth
