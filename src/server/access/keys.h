// SPDX-License-Identifier: Apache-2.0
// Who may ask: API keys, known here only by their salted hashes.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/access/rate_limiter.h"
namespace hearth {

struct KeyInfo {
  std::string id;  // shown in logs and metrics; the key itself never is
  bool is_admin = false;
  KeyLimits limits;
};

// Thread: immutable once made; a reload makes another one.
class KeyRing {
 public:
  // The text of a keys file: {"keys": [{"id", "salt", "sha256", "admin", "limits"}]}, the last two
  // optional. Unknown members, double ids and malformed hashes are refused by their place.
  static Result<KeyRing> Parse(std::string_view text);
  // Null when nobody has this key. Takes the same time whichever entry matches, or none: every
  // entry is hashed and compared in full.
  const KeyInfo* Find(std::string_view key) const;
  // By name; none for a name that is not here.
  KeyLimits LimitsOf(std::string_view id) const;
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }

  // A fresh key with 256 bits of randomness, and its entry for the file.
  struct Fresh {
    std::string key, entry;
  };
  static Result<Fresh> Make(std::string_view id, bool is_admin, const KeyLimits& limits = {});

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Entry {
    KeyInfo info;
    std::string salt;
    Digest digest{};
  };
  static Digest HashOf(std::string_view salt, std::string_view key);
  static Result<Entry> ParseEntry(const class Json& json);
  std::vector<Entry> entries_;
};

}  // namespace hearth
