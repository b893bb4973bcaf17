// SPDX-License-Identifier: Apache-2.0
#include "server/access/keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

namespace hearth {
namespace {

TEST(KeyRing, KnowsTheKeysItMade) {
  const auto a = *KeyRing::Make("laptop", false), b = *KeyRing::Make("ops", true);
  auto ring = KeyRing::Parse("{\"keys\": [" + a.entry + "," + b.entry + "]}");
  ASSERT_TRUE(ring.ok()) << ring.status().message();
  ASSERT_NE(ring->Find(a.key), nullptr);
  EXPECT_EQ(ring->Find(a.key)->id, "laptop");
  EXPECT_FALSE(ring->Find(a.key)->is_admin);
  EXPECT_EQ(ring->Find(b.key)->id, "ops");
  EXPECT_TRUE(ring->Find(b.key)->is_admin);
  EXPECT_EQ(ring->Find(""), nullptr);
  EXPECT_EQ(ring->Find(a.key + "0"), nullptr);
  EXPECT_EQ(ring->Find(a.key.substr(0, a.key.size() - 1)), nullptr);
  EXPECT_EQ(ring->Find(std::string(100'000, 'x')), nullptr);
  EXPECT_EQ(a.entry.find(a.key), std::string::npos) << "the file must not hold the key";
}

std::string WithLimits(const std::string& limits) {
  return R"({"keys": [{"id": "a", "salt": ")" + std::string(16, 'b') + R"(", "sha256": ")" +
         std::string(64, 'a') + R"(", "limits": )" + limits + "}]}";
}

TEST(KeyRing, KeepsLimitsAndReadsFilesWithoutThem) {
  const KeyLimits limits{.max_concurrent = 2,
                         .requests_per_minute = 30,
                         .tokens_per_minute = 9000,
                         .max_tokens_per_request = 700,
                         .max_priority = Priority::kLow};
  const auto a = *KeyRing::Make("a", false, limits), b = *KeyRing::Make("b", false);
  EXPECT_EQ(b.entry.find("limits"), std::string::npos);
  auto ring = KeyRing::Parse("{\"keys\": [" + b.entry + "," + a.entry + "]}");
  ASSERT_TRUE(ring.ok()) << ring.status().message();
  const KeyLimits read = ring->LimitsOf("a");
  EXPECT_EQ(read.max_concurrent, 2);
  EXPECT_EQ(read.requests_per_minute, 30);
  EXPECT_EQ(read.tokens_per_minute, 9000);
  EXPECT_EQ(read.max_tokens_per_request, 700);
  EXPECT_EQ(read.max_priority, Priority::kLow);
  EXPECT_EQ(ring->LimitsOf("b").tokens_per_minute, 0);
  EXPECT_EQ(ring->LimitsOf("b").max_priority, Priority::kNormal);
  EXPECT_TRUE(KeyRing::Parse(WithLimits(R"({"max_priority": "urgent"})")).ok());
}

TEST(KeyRing, TakesTheSameTimeForEverybody) {
  std::string entries;
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) {
    const auto made = *KeyRing::Make("key-" + std::to_string(i), false);
    keys.push_back(made.key);
    entries += (i > 0 ? "," : "") + made.entry;
  }
  auto ring = KeyRing::Parse("{\"keys\": [" + entries + "]}");
  ASSERT_TRUE(ring.ok()) << ring.status().message();
  const std::string near = keys.front().substr(0, keys.front().size() - 1) + "!";
  const std::string asked[] = {keys.front(), keys.back(), near, std::string(near.size(), 'x')};
  // The least of many: whatever else the machine does only adds to it. So a busy machine gets more
  // rounds; a search that stops at the first match differs by far more in every one of them.
  std::array<int64_t, 4> least;
  least.fill(INT64_MAX);
  const auto ratio = [&least] {
    const auto [low, high] = std::minmax_element(least.begin(), least.end());
    return static_cast<double>(*high) / static_cast<double>(*low);
  };
  for (int round = 0; round < 200 || (round < 5000 && ratio() >= 1.25); ++round) {
    for (size_t i = 0; i < std::size(asked); ++i) {
      const auto start = std::chrono::steady_clock::now();
      const bool is_known = ring->Find(asked[i]) != nullptr;
      const auto took = std::chrono::steady_clock::now() - start;
      EXPECT_EQ(is_known, i < 2);
      least[i] = std::min<int64_t>(least[i], took.count());
    }
  }
  EXPECT_LT(ratio(), 1.25);
}

// An entry as they were made before salts began with the key's start.
std::string OldEntry(const std::string& id, const std::string& salt) {
  return R"({"id": ")" + id + R"(", "salt": ")" + salt + R"(", "sha256": ")" +
         std::string(64, 'a') + "\"}";
}

int64_t LeastTime(const KeyRing& ring, const std::string& key) {
  int64_t least = INT64_MAX;
  for (int i = 0; i < 300; ++i) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(ring.Find(key), nullptr);
    least = std::min<int64_t>(least, (std::chrono::steady_clock::now() - start).count());
  }
  return least;
}

TEST(KeyRing, ARefusalCostsAsMuchWithTenThousandKeysAsWithTen) {
  const std::string wrong = "hearth-" + std::string(64, '0');
  std::array<int64_t, 2> times{};
  for (const int count : {10, 10'000}) {
    std::string entries;
    for (int i = 0; i < count; ++i) {
      // Every start twice, and one of them that of the key that is asked for.
      entries += (i > 0 ? "," : "") +
                 OldEntry("k" + std::to_string(i),
                          Printf("hearth-%08x-0123456789abcdef", static_cast<unsigned>(i / 2)));
    }
    auto ring = KeyRing::Parse("{\"keys\": [" + entries + "]}");
    ASSERT_TRUE(ring.ok()) << ring.status().message();
    EXPECT_EQ(ring->size(), static_cast<size_t>(count));
    EXPECT_EQ(ring->num_unindexed(), 0u);
    times[count > 10 ? 1 : 0] = LeastTime(*ring, wrong);
  }
  EXPECT_LT(times[1], 4 * times[0] + 1000);
}

TEST(KeyRing, KnowsEntriesOfBefore) {
  // sha256("0123456789abcdef" "old-key")
  const std::string entry = R"({"id": "old", "salt": "0123456789abcdef", "sha256": ")"
                            "06317880e519acd4b2720cac75ae80cdddcc335b6160019865a7f20349487cc2"
                            R"("})";
  const auto fresh = *KeyRing::Make("new", false);
  auto ring = KeyRing::Parse("{\"keys\": [" + entry + "," + fresh.entry + "]}");
  ASSERT_TRUE(ring.ok()) << ring.status().message();
  EXPECT_EQ(ring->num_unindexed(), 1u);
  ASSERT_NE(ring->Find("old-key"), nullptr);
  EXPECT_EQ(ring->Find("old-key")->id, "old");
  EXPECT_EQ(ring->Find("old-kez"), nullptr);
  EXPECT_EQ(ring->Find(fresh.key)->id, "new");
  EXPECT_NE(fresh.entry.find("\"" + fresh.key.substr(0, 15) + "-"), std::string::npos);
}

TEST(KeyRing, RefusesMalformedFiles) {
  const std::string good = (*KeyRing::Make("a", false)).entry;
  const std::string hash(64, 'a'), salt(16, 'b');
  const std::string bad[] = {
      "",
      "[]",
      "{}",
      "{\"keys\": {}}",
      "{\"keys\": [], \"more\": 1}",
      "{\"keys\": [1]}",
      "{\"keys\": [" + good + "," + good + "]}",
      "{\"keys\": [{\"id\": \"\", \"salt\": \"" + salt + "\", \"sha256\": \"" + hash + "\"}]}",
      "{\"keys\": [{\"id\": \"a b\", \"salt\": \"" + salt + "\", \"sha256\": \"" + hash + "\"}]}",
      "{\"keys\": [{\"id\": \"a\", \"salt\": \"short\", \"sha256\": \"" + hash + "\"}]}",
      "{\"keys\": [{\"id\": \"a\", \"salt\": \"" + salt + "\", \"sha256\": \"abc\"}]}",
      "{\"keys\": [{\"id\": \"a\", \"salt\": \"" + salt + "\", \"sha256\": \"" + hash.substr(1) +
          "g\"}]}",
      "{\"keys\": [{\"id\": \"a\", \"salt\": \"" + salt + "\", \"sha256\": \"" + hash +
          "\", \"x\": \"y\"}]}",
      "{\"keys\": [{\"id\": \"a\", \"salt\": \"" + salt + "\", \"sha256\": \"" + hash +
          "\", \"admin\": 1}]}",
      WithLimits("[]"),
      WithLimits("{\"max_concurrent\": 0}"),
      WithLimits("{\"tokens_per_minute\": 1.5}"),
      WithLimits("{\"requests_per_minute\": \"3\"}"),
      WithLimits("{\"max_priority\": \"high\"}"),
      WithLimits("{\"requests_per_hour\": 3}"),
  };
  for (const std::string& text : bad) EXPECT_FALSE(KeyRing::Parse(text).ok()) << text;
  EXPECT_FALSE(KeyRing::Make("no blanks", false).ok());
}

}  // namespace
}  // namespace hearth
