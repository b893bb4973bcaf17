// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet_load.h"

#include <gtest/gtest.h>

#include <set>

namespace hearth {
namespace {

TEST(FleetLoad, ContentIsAlikeUpToTheSystemPromptsEnd) {
  FleetContent a{.app = 1, .session = 10, .shared = 100}, b{.app = 1, .session = 11, .shared = 100};
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.At(i, 64), b.At(i, 64));
  int alike = 0;
  for (int i = 100; i < 400; ++i) alike += a.At(i, 64) == b.At(i, 64) ? 1 : 0;
  EXPECT_LT(alike, 30);
  EXPECT_EQ(a.Page(0, 64), b.Page(0, 64));
  EXPECT_NE(a.Page(1, 64), b.Page(1, 64));  // [64, 128) has something of the session in it
  b.app = 2;
  EXPECT_NE(a.Page(0, 64), b.Page(0, 64));
}

TEST(FleetLoad, RecordedNamesNameAllBeforeThem) {
  FleetContent a{.session = 1, .names = std::make_shared<std::vector<uint64_t>>(2, 7), .unit = 512};
  FleetContent b = a;
  b.session = 2;
  EXPECT_EQ(a.Page(15, 64), b.Page(15, 64));
  EXPECT_NE(a.Page(16, 64), b.Page(16, 64));
  EXPECT_NE(a.Page(3, 64), a.Page(4, 64));
  EXPECT_EQ(a.At(1023, 1000), b.At(1023, 1000));
}

TEST(FleetLoad, ChatsComeAtTheirRateAndGoOn) {
  FleetLoad load(FleetChats{.rate = 10, .requests = 4000, .turns = 4});
  int64_t last_us = 0, asked = 0;
  double turns = 0, chats = 0;
  while (std::optional<FleetAsk> ask = load.Next()) {
    EXPECT_GE(ask->at_us, last_us);
    last_us = ask->at_us;
    ++chats;
    while (ask) {
      ++asked;
      ++turns;
      EXPECT_GE(ask->prompt, 1000 + 8);
      const FleetAsk before = *ask;
      ask = load.After(before, before.at_us + 5);
      if (!ask) break;
      EXPECT_EQ(ask->key, before.key);
      EXPECT_GT(ask->prompt, before.prompt + before.reply);
      EXPECT_GE(ask->at_us, before.at_us + 5);
    }
  }
  EXPECT_EQ(asked, 4000);
  EXPECT_NEAR(turns / chats, 4, 0.5);
  EXPECT_NEAR(static_cast<double>(last_us) * 1e-6, 400, 60);
}

TEST(FleetLoad, AChatIsTheSameWheneverItIsAsked) {
  const FleetChats chats{.requests = 100};
  FleetLoad a(chats), b(chats);
  const FleetAsk first = *a.Next();
  b.Next();
  b.Next();  // somebody came between
  const std::optional<FleetAsk> next_a = a.After(first, 100), next_b = b.After(first, 900);
  ASSERT_EQ(next_a.has_value(), next_b.has_value());
  if (next_a) {
    EXPECT_EQ(next_a->prompt, next_b->prompt);
  }
}

TEST(FleetLoad, ReadsMooncakesTrace) {
  auto asks = ReadMooncake(
      R"({"timestamp": 27482, "input_length": 600, "output_length": 52, "hash_ids": [46, 47]})"
      "\n\n"
      R"({"timestamp": 27500, "input_length": 1100, "output_length": 5, "hash_ids": [46, 48, 49]})"
      "\n");
  ASSERT_TRUE(asks.ok()) << asks.status().message();
  ASSERT_EQ(asks->size(), 2u);
  const FleetAsk &a = (*asks)[0], &b = (*asks)[1];
  EXPECT_EQ(a.at_us, 0);
  EXPECT_EQ(b.at_us, 18'000);
  EXPECT_EQ(a.prompt, 600);
  EXPECT_EQ(b.reply, 5);
  EXPECT_EQ(a.content.Page(7, 64), b.content.Page(7, 64));
  EXPECT_NE(a.content.Page(8, 64), b.content.Page(8, 64));
  EXPECT_NE(a.key, b.key);
}

TEST(FleetLoad, MistakesInATraceNameTheirLine) {
  const char* good =
      R"({"timestamp": 1, "input_length": 600, "output_length": 52, "hash_ids": [46]})";
  for (const char* bad :
       {"{", "{}", R"({"timestamp": 1, "input_length": 0, "output_length": 1, "hash_ids": []})",
        R"({"timestamp": 1, "input_length": 5, "output_length": 1, "hash_ids": ["x"]})",
        R"({"timestamp": 1, "input_length": 5, "output_length": 1})"}) {
    auto asks = ReadMooncake(std::string(good) + "\n" + bad);
    ASSERT_FALSE(asks.ok()) << bad;
    EXPECT_EQ(asks.status().message().find("line 2: "), 0u) << asks.status().message();
  }
  EXPECT_FALSE(ReadMooncake("").ok());
}

std::string Logged(const char* time, const char* key, int prompt, int cached, int reply) {
  return Printf(R"({"time":"%s","event":"request","key":"%s","seconds":1.5,"choices":[)"
                R"({"prompt_tokens":%d,"cached_tokens":%d,"generated_tokens":%d}]})"
                "\n",
                time, key, prompt, cached, reply);
}

TEST(FleetLoad, ReadsTheRequestLog) {
  auto asks = ReadRequestLog(Logged("2026-02-28T23:59:59.500Z", "a", 500, 0, 100) +
                             R"({"event":"restart"})" + "\n" +
                             Logged("2026-03-01T00:00:10Z", "a", 700, 592, 50) +
                             Logged("2026-03-01T00:00:11Z", "b", 700, 592, 50) +
                             Logged("2026-03-01T00:00:12Z", "a", 400, 64, 50));
  ASSERT_TRUE(asks.ok()) << asks.status().message();
  ASSERT_EQ(asks->size(), 4u);
  EXPECT_EQ((*asks)[0].at_us, 0);
  EXPECT_EQ((*asks)[1].at_us, 10'500'000);
  EXPECT_EQ((*asks)[1].key, (*asks)[0].key);  // 592 of its 600 tokens were found again
  EXPECT_NE((*asks)[2].key, (*asks)[0].key);  // somebody else's key
  EXPECT_NE((*asks)[3].key, (*asks)[0].key);  // too short to go on with it
  EXPECT_EQ((*asks)[3].content.shared, 64);
  EXPECT_EQ((*asks)[3].content.app, (*asks)[0].content.app);
  EXPECT_FALSE(
      ReadRequestLog(R"({"event":"request","choices":[{}],"time":"2026-03-01T00:00:10Z"})").ok());
  EXPECT_FALSE(ReadRequestLog("").ok());
}

}  // namespace
}  // namespace hearth
