// SPDX-License-Identifier: Apache-2.0
// What two keys can see of each other in the names that they are given: nothing in 100,000 of each.
// Every look is shown to find what there was to see before ids were encrypted and seeds drawn.
#include <gtest/gtest.h>

#include <set>

#include "base/fresh_random.h"
#include "server/access/base64.h"
#include "server/access/secrets.h"
#include "server/turns/event_ids.h"
#include "server/turns/request_names.h"
#include "testing/distinguisher.h"
#include "testing/old_seeds.h"

namespace hearth {
namespace {

using testing::SuspicionBetween;
using testing::SuspicionOf;

constexpr int kCount = 100'000;

std::string BytesOf(uint64_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}
std::string FromText(const std::string& id) {
  const auto bytes = *FromBase64(id);
  return {bytes.begin(), bytes.end()};
}

// What a key sees of its requests, and the seeds that it must not see.
struct Collected {
  std::vector<std::string> ids, names, seeds;
};
struct TwoKeys {
  Collected anna, bert;
};

// All that a client can hold still is held still: the request, the time, the place in the stream.
ReplyOrigin OriginWith(std::string id, uint64_t seed) {
  return {std::move(id), 1'800'000'000, seed, {1, 2}, 77};
}

TwoKeys CollectNow(int count) {
  const SivSeal seal(Secrets::Fresh().For<64>(Purpose::kEventIds));
  TwoKeys out;
  EventCursor first;
  first.num_whole = 1;
  for (int i = 0; i < count; ++i) {
    for (Collected* key : {&out.anna, &out.bert}) {
      const ReplyOrigin origin = OriginWith(NewId(), FreshNumber());
      const char* tenant = key == &out.anna ? "anna" : "bert";
      key->ids.push_back(FromText(EventNames(seal, origin, tenant).At(first)));
      key->names.push_back(AsBytes(origin).substr(0, 12));
      key->seeds.push_back(BytesOf(origin.seed));
    }
  }
  return out;
}

TwoKeys CollectThen(int count) {
  const CipherKey key{7};
  testing::OldSeeds seeds(0x0123456789abcdefu);
  TwoKeys out;
  for (int i = 0; i < count; ++i) {
    for (Collected* each : {&out.anna, &out.bert}) {
      const ReplyOrigin origin = OriginWith(NewId(), seeds.Next());
      each->ids.push_back(testing::OldIdBytes(key, origin, each == &out.anna ? "anna" : "bert"));
      each->seeds.push_back(BytesOf(origin.seed));
    }
  }
  return out;
}

TEST(IdsTellNothing, OfTheKeysOwnRequestsOrAnothers) {
  const TwoKeys now = CollectNow(kCount);
  for (const auto* samples : {&now.anna.ids, &now.bert.ids, &now.anna.names, &now.bert.names,
                              &now.anna.seeds, &now.bert.seeds}) {
    const auto found = SuspicionOf(*samples);
    EXPECT_FALSE(found.is_sure()) << found.what;
    EXPECT_EQ(std::set(samples->begin(), samples->end()).size(), samples->size());
  }
  const std::pair<const std::vector<std::string>*, const std::vector<std::string>*> pairs[] = {
      {&now.anna.ids, &now.bert.ids},     {&now.anna.names, &now.bert.names},
      {&now.anna.seeds, &now.bert.seeds}, {&now.anna.ids, &now.anna.seeds},
      {&now.anna.ids, &now.bert.seeds},   {&now.anna.names, &now.anna.seeds}};
  for (const auto& [one, other] : pairs) {
    const auto found = SuspicionBetween(*one, *other);
    EXPECT_FALSE(found.is_sure()) << found.what;
  }
}

// The same looks at how it was, with a tenth of the samples.
TEST(IdsTellNothing, AndThisIsSeenWhereTheyDo) {
  const TwoKeys then = CollectThen(kCount / 10);
  EXPECT_TRUE(SuspicionOf(then.anna.ids).is_sure());
  EXPECT_TRUE(SuspicionOf(then.anna.seeds).is_sure());
  EXPECT_TRUE(SuspicionBetween(then.anna.ids, then.bert.ids).is_sure());
  EXPECT_TRUE(SuspicionBetween(then.anna.seeds, then.bert.seeds).is_sure());
  EXPECT_TRUE(SuspicionBetween(then.anna.ids, then.anna.seeds).is_sure());
}

// Of one stream, where nothing differs but a count.
TEST(IdsTellNothing, NotWhichEventsOfAStreamTheyAre) {
  const SivSeal seal(Secrets::Fresh().For<64>(Purpose::kEventIds));
  const EventNames names(seal, OriginWith(NewId(), 5), "anna");
  std::vector<std::string> ids;
  EventCursor cursor;
  for (cursor.num_whole = 1; cursor.num_whole <= kCount; ++cursor.num_whole) {
    ids.push_back(FromText(names.At(cursor)));
  }
  const auto found = SuspicionOf(ids);
  EXPECT_FALSE(found.is_sure()) << found.what;
}

// The published attack: of two streams of one's own, the seeds of everybody.
TEST(IdsTellNothing, TheSeedsOfOthersDoNotFollow) {
  const testing::SeedAttack attack(20'000, 4);
  const TwoKeys then = CollectThen(100), now = CollectNow(1000);
  const auto found = attack.SolveAnywhere(then.anna.ids[40], then.anna.ids[41]);
  ASSERT_EQ(found.size(), 1u) << "the attack is one";
  EXPECT_EQ(found[0].counter, 81u) << "and tells how many requests there were";
  EXPECT_EQ(found[0].num_others, 1u);
  EXPECT_EQ(BytesOf(found[0].SeedAfter(1)), then.bert.seeds[40]) << "and their seeds";
  EXPECT_EQ(BytesOf(found[0].SeedAfter(101)), then.bert.seeds[90]) << "of the future too";
  for (size_t i = 1; i < now.anna.ids.size(); ++i) {
    EXPECT_TRUE(attack.SolveAnywhere(now.anna.ids[i - 1], now.anna.ids[i]).empty());
    EXPECT_TRUE(attack.SolveAnywhere(now.anna.seeds[i - 1], now.anna.seeds[i]).empty())
        << "nor from seeds that were told";
    EXPECT_TRUE(attack.SolveAnywhere(now.anna.names[i - 1], now.anna.names[i]).empty());
  }
}

}  // namespace
}  // namespace hearth
