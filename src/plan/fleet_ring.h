// SPDX-License-Identifier: Apache-2.0
// Which replica HAProxy chooses for a session key with what `hearth fleet haproxy` prints: a
// consistent ring, and a bound on any one's load.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>
namespace hearth {

class FleetRing {
 public:
  // Weights as HAProxy's `weight`, from 1 to 256.
  FleetRing(std::span<const std::string> addresses, std::span<const int> weights, int bounded_load);

  struct Load {
    std::span<const int> served;  // by replica: requests it has now
    std::span<const uint8_t> is_up;
  };
  // -1: none is up.
  int Pick(std::string_view key, const Load& load) const;
  int Pick(uint32_t hash, const Load& load) const;

  // HAProxy's `sdbm avalanche`.
  static uint32_t HashOf(std::string_view key);

 private:
  struct Node {
    uint32_t at = 0;
    int replica = 0;
  };
  std::vector<Node> nodes_;
  std::vector<int> weights_;
  int bounded_load_;
};

}  // namespace hearth
