// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet_ring.h"

#include <gtest/gtest.h>

#include "base/result.h"

namespace hearth {
namespace {

std::vector<std::string> Addresses(int count) {
  std::vector<std::string> out;
  for (int i = 0; i < count; ++i) out.push_back(Printf("127.0.0.%d:28080", 21 + i));
  return out;
}

// What HAProxy 2.6.12 did with the configuration that `hearth fleet haproxy` prints for these
// addresses, asked for "key-0" to "key-59" one after the other.
constexpr int kChosen[] = {0, 1, 1, 3, 1, 1, 4, 0, 0, 4, 4, 2, 2, 1, 2, 2, 3, 3, 2, 2,
                           4, 2, 4, 4, 3, 3, 0, 2, 1, 2, 3, 0, 3, 4, 4, 1, 4, 0, 4, 0,
                           1, 4, 3, 1, 0, 3, 3, 3, 0, 1, 2, 2, 3, 1, 3, 2, 4, 2, 4, 4};

TEST(FleetRing, ChoosesAsHaproxyDoes) {
  const FleetRing ring(Addresses(5), std::vector<int>(5, 100), 200);
  const std::vector<int> served(5, 0);
  const std::vector<uint8_t> up(5, 1);
  for (size_t i = 0; i < std::size(kChosen); ++i) {
    EXPECT_EQ(ring.Pick("key-" + std::to_string(i), {served, up}), kChosen[i]) << i;
  }
}

TEST(FleetRing, AReplicaLessMovesOnlyItsOwn) {
  const FleetRing ring(Addresses(5), std::vector<int>(5, 100), 0);
  const std::vector<int> served(5, 0);
  const std::vector<uint8_t> all(5, 1), fewer{1, 1, 0, 1, 1};
  int moved = 0;
  for (int i = 0; i < 500; ++i) {
    const std::string key = "k" + std::to_string(i);
    const int before = ring.Pick(key, {served, all}), after = ring.Pick(key, {served, fewer});
    EXPECT_NE(after, 2);
    if (before != 2) {
      EXPECT_EQ(after, before);
    }
    moved += before == 2 ? 1 : 0;
  }
  EXPECT_NEAR(moved, 100, 40);
}

TEST(FleetRing, TheBoundPassesOn) {
  const std::vector<int> weights(4, 100);
  const FleetRing ring(Addresses(4), weights, 150), loose(Addresses(4), weights, 0);
  const std::vector<uint8_t> up(4, 1);
  std::vector<int> served(4, 10);
  const int home = ring.Pick("a", {served, up});
  served[static_cast<size_t>(home)] = 40;  // of 70: more than 1.5 times 17.5
  EXPECT_NE(ring.Pick("a", {served, up}), home);
  EXPECT_EQ(loose.Pick("a", {served, up}), home);
  EXPECT_EQ(ring.Pick("a", {served, std::vector<uint8_t>(4, 0)}), -1);
}

TEST(FleetRing, WeightsShare) {
  const FleetRing ring(Addresses(2), std::vector<int>{100, 25}, 0);
  const std::vector<int> served(2, 0);
  const std::vector<uint8_t> up(2, 1);
  int first = 0;
  for (int i = 0; i < 1000; ++i) first += ring.Pick(std::to_string(i), {served, up}) == 0 ? 1 : 0;
  EXPECT_NEAR(first, 800, 60);
}

}  // namespace
}  // namespace hearth
