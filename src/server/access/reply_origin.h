// SPDX-License-Identifier: Apache-2.0
// What a reply came from, small enough for the id of a server-sent event: who has it can ask for
// the same reply again. Authenticated, and each for one tenant: nobody can make one up.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "server/access/encrypted_text.h"
namespace hearth {

struct ReplyOrigin {
  std::string id;  // 24 hexadecimal digits, as NewId makes them
  int64_t created_s = 0;
  uint64_t seed = 0;
  std::array<uint64_t, 2> request{};  // of path and body (request_digest.h)
  uint64_t basis = 0;                 // of what else the reply follows from
  bool operator==(const ReplyOrigin&) const = default;
};

// A number for all that a reply follows from beside its request: the prompt as tokens, and the
// words in which the model, the program and its settings are known.
uint64_t BasisOf(std::span<const std::string> words, std::span<const Token> prompt,
                 uint64_t before = 0);

// Thread: any.
class OriginSeal {
 public:
  static constexpr size_t kSealedBytes = 92;
  explicit OriginSeal(const CipherKey& key) : key_(key) {}
  // kSealedBytes letters of base64.
  std::string Seal(const ReplyOrigin& origin, const std::string& tenant) const;
  // Nothing unless Seal made it with this key for this tenant.
  std::optional<ReplyOrigin> Open(std::string_view sealed, const std::string& tenant) const;

 private:
  const CipherKey key_;
};

// A key for one purpose out of a secret of any length, the same for everybody who has it.
CipherKey KeyFrom(std::string_view secret, std::string_view purpose);

}  // namespace hearth
