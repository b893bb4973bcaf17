// SPDX-License-Identifier: Apache-2.0
// How seeds and the ids of events were made before they were secrets, and the attack on that: two
// streams of one's own gave every other request's seed, and with it its reply. Kept so that tests
// of the defence can show that their attack is one.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mix.h"
#include "server/access/keyed_sum.h"
#include "server/access/reply_origin.h"
namespace hearth::testing {

class OldSeeds {
 public:
  explicit OldSeeds(uint64_t nonce) : nonce_(nonce) {}
  uint64_t Next() { return nonce_ ^ (++counter_ * kGoldenRatio); }

 private:
  const uint64_t nonce_;
  uint64_t counter_ = 0;
};

// The bytes behind the base64: authenticated, and readable.
inline std::string OldIdBytes(const CipherKey& key, const ReplyOrigin& origin,
                              const std::string& tenant) {
  const std::string plain = '\1' + AsBytes(origin);
  const KeyedSum tag = SumOf(key, tenant, plain);
  return plain + std::string(tag.begin(), tag.begin() + 16);
}

// Finds two numbers of a counter that were mixed as above.
class SeedAttack {
 public:
  struct Found {
    uint64_t counter = 0;     // of the first
    uint64_t num_others = 0;  // made by others in between
    uint64_t nonce = 0;
    // Of the request that came so many after the first.
    uint64_t SeedAfter(uint64_t steps) const { return nonce ^ ((counter + steps) * kGoldenRatio); }
  };
  // Up to so many requests since the start, and so many of others in between.
  SeedAttack(uint64_t max_counter, uint64_t max_others) {
    for (uint64_t counter = 1; counter <= max_counter; ++counter) {
      for (uint64_t others = 0; others <= max_others; ++others) {
        const uint64_t second = (counter + others + 1) * kGoldenRatio;
        differences_[(counter * kGoldenRatio) ^ second] = {counter, others, 0};
      }
    }
  }
  std::optional<Found> Solve(uint64_t first, uint64_t second) const {
    const auto at = differences_.find(first ^ second);
    if (at == differences_.end()) return std::nullopt;
    Found found = at->second;
    found.nonce = first ^ (found.counter * kGoldenRatio);
    return found;
  }
  // The same where the seed may be anywhere in what a client sees.
  std::vector<Found> SolveAnywhere(const std::string& first, const std::string& second) const {
    std::vector<Found> out;
    for (size_t at = 0; at + 8 <= std::min(first.size(), second.size()); ++at) {
      uint64_t one = 0, two = 0;
      std::memcpy(&one, first.data() + at, 8);
      std::memcpy(&two, second.data() + at, 8);
      if (one == two) continue;
      if (const auto found = Solve(one, two)) out.push_back(*found);
    }
    return out;
  }

 private:
  std::unordered_map<uint64_t, Found> differences_;
};

}  // namespace hearth::testing
