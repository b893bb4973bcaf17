// SPDX-License-Identifier: Apache-2.0
#include "http/lane_turns.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth {
namespace {

using std::chrono::microseconds;
using Place = TurnLine::Place;

Place Of(const std::string& client, int cost_us) {
  return {client, microseconds(cost_us), [] {}};
}

struct Line {
  TurnLine line;
  TurnLine::Time now{std::chrono::hours(1)};
  // Whose turns come until nobody waits, the clock going on.
  std::string Order() {
    std::string order;
    while (!line.empty()) {
      now = std::max(now, line.free_at());
      order += line.Next(now)->client;
    }
    return order;
  }
};

TEST(TurnLine, OneAloneGoesOnUntilItsCreditIsUsed) {
  Line l;
  Place place = Of("a", 100);
  int at_once = 0;
  while (l.line.Enter(place, l.now)) ++at_once;
  // 2 ms of credit, and the one that uses it up.
  EXPECT_EQ(at_once, 21);
  EXPECT_TRUE(place.waits);
  l.line.Leave(place);
  EXPECT_TRUE(l.line.empty());
}

TEST(TurnLine, TurnsTakeAQuarterOfTheTime) {
  Line l;
  std::vector<Place> places(1000, Of("a", 100));
  const TurnLine::Time began = l.now;
  for (Place& place : places) l.line.Enter(place, l.now);
  l.Order();
  // The last one's own time comes after it.
  EXPECT_EQ(l.now - began, microseconds(4 * (100'000 - 2'000 - 100)));
}

TEST(TurnLine, NobodysTurnComesEarly) {
  Line l;
  Place first = Of("a", 5'000), second = Of("a", 100);
  EXPECT_TRUE(l.line.Enter(first, l.now));
  EXPECT_FALSE(l.line.Enter(second, l.now));
  EXPECT_EQ(l.line.Next(l.line.free_at() - microseconds(1)), nullptr);
  EXPECT_EQ(l.line.Next(l.line.free_at()), &second);
}

// However many connections one client has.
TEST(TurnLine, ClientsTakeTurns) {
  Line l;
  Place dear = Of("z", 10'000);
  l.line.Enter(dear, l.now);
  std::vector<Place> many(5, Of("a", 10)), few(2, Of("b", 10));
  for (Place& place : many) EXPECT_FALSE(l.line.Enter(place, l.now));
  for (Place& place : few) EXPECT_FALSE(l.line.Enter(place, l.now));
  EXPECT_EQ(l.Order(), "ababaaa");
}

TEST(TurnLine, WhoLeavesIsNotCalled) {
  Line l;
  Place dear = Of("z", 10'000), a = Of("a", 1), b = Of("b", 1), more = Of("a", 1);
  l.line.Enter(dear, l.now);
  for (Place* place : {&a, &b, &more}) l.line.Enter(*place, l.now);
  l.line.Leave(a);
  l.line.Leave(b);
  l.line.Leave(b);
  EXPECT_EQ(l.Order(), "a");
  EXPECT_FALSE(more.waits);
}

}  // namespace
}  // namespace hearth
