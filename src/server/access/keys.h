// SPDX-License-Identifier: Apache-2.0
// Who may ask: API keys, known here only by their salted hashes.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
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
  // optional, and beside "keys" a "format" of 1. Unknown members, double ids and malformed hashes
  // are refused by their place; kUnsupported: of another format.
  static Result<KeyRing> Parse(std::string_view text);
  // Null when nobody has this key. Takes the same time whichever entry matches, or none, and
  // however many there are: an entry's salt begins with the first characters of its key, so at most
  // one hash is computed and compared in full. Entries of before, whose salts tell nothing, cost a
  // hash each.
  const KeyInfo* Find(std::string_view key) const;
  // By name; none for a name that is not here.
  KeyLimits LimitsOf(std::string_view id) const;
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  // Those that every request has to be compared with.
  size_t num_unindexed() const { return unindexed_.size(); }

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
  Status Add(Entry entry);
  static bool Opens(const Entry& entry, std::string_view key);
  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> by_id_;
  std::unordered_multimap<std::string, size_t> by_start_;  // of the key
  std::vector<size_t> unindexed_;
};

}  // namespace hearth
