// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet_ring.h"

#include <algorithm>

#include "fleet/haproxy.h"

namespace hearth {
namespace {

// HAProxy keeps a weight in sixteenths and gives a server as many places as that, each by the hash
// of its id and the place's number.
constexpr int kScale = 16;
constexpr uint32_t kPlacesPerId = 256 * kScale;

uint32_t Avalanche(uint32_t a) {
  a = (a + 0x7ed55d16) + (a << 12);
  a = (a ^ 0xc761c23c) ^ (a >> 19);
  a = (a + 0x165667b1) + (a << 5);
  a = (a + 0xd3a2646c) ^ (a << 9);
  a = (a + 0xfd7046c5) + (a << 3);
  a = (a ^ 0xb55a4f09) ^ (a >> 16);
  return a * 3221225473u;  // spreads them over the ring: a prime near 3/4 of it
}

}  // namespace

FleetRing::FleetRing(std::span<const std::string> addresses, std::span<const int> weights,
                     int bounded_load)
    : weights_(weights.begin(), weights.end()), bounded_load_(bounded_load) {
  for (size_t i = 0; i < addresses.size(); ++i) {
    const auto id = static_cast<uint32_t>(RingId(addresses[i]));
    for (int place = 0; place < kScale * weights_[i]; ++place) {
      nodes_.push_back(
          {Avalanche(id * kPlacesPerId + static_cast<uint32_t>(place)), static_cast<int>(i)});
    }
  }
  std::sort(nodes_.begin(), nodes_.end(), [](const Node& a, const Node& b) {
    return a.at != b.at ? a.at < b.at : a.replica < b.replica;
  });
}

uint32_t FleetRing::HashOf(std::string_view key) {
  uint32_t hash = 0;
  for (const char c : key) {
    hash = static_cast<unsigned char>(c) + (hash << 6) + (hash << 16) - hash;
  }
  return Avalanche(hash);
}

int FleetRing::Pick(std::string_view key, const Load& load) const {
  return Pick(HashOf(key), load);
}

int FleetRing::Pick(uint32_t hash, const Load& load) const {
  int64_t requests = 1, weight = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (load.is_up[i] == 0) continue;
    requests += load.served[i];
    weight += weights_[i];
  }
  if (weight == 0) return -1;
  const int64_t slots = (requests * bounded_load_ + 99) / 100;
  const auto is_eligible = [&](int replica) {
    const auto i = static_cast<size_t>(replica);
    if (load.is_up[i] == 0) return false;
    if (bounded_load_ == 0) return true;
    return load.served[i] < std::max<int64_t>(1, slots * weights_[i] / weight);
  };
  // Of the two places around the hash the nearer one, as HAProxy does; then onwards.
  const auto after = std::lower_bound(nodes_.begin(), nodes_.end(), hash,
                                      [](const Node& node, uint32_t at) { return node.at < at; });
  auto start = static_cast<size_t>(after - nodes_.begin());
  const size_t next = start == nodes_.size() ? 0 : start;
  const size_t before = start == 0 ? nodes_.size() - 1 : start - 1;
  const bool is_nearer = hash - nodes_[before].at <= nodes_[next].at - hash;
  start = is_nearer ? before : next;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[(start + i) % nodes_.size()];
    if (is_eligible(node.replica)) return node.replica;
  }
  for (size_t i = 0; i < weights_.size(); ++i) {  // all are at the bound
    if (load.is_up[i] != 0) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace hearth
