// SPDX-License-Identifier: Apache-2.0
#include "server/turns/response_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "testing/temp_dir.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;

StoredResponse Some(const std::string& id, const std::string& previous = "", size_t bytes = 10) {
  return {id, previous, "[]", std::string(bytes - 2, 'x')};
}

// A store, and what its machine's clocks say.
struct Clocked {
  Status Put(const std::string& tenant, const StoredResponse& response, int64_t at_s) {
    SetTo(at_s);
    return store->Put(tenant, response);
  }
  Result<std::optional<StoredResponse>> Get(const std::string& tenant, const std::string& id,
                                            int64_t at_s) {
    SetTo(at_s);
    return store->Get(tenant, id);
  }
  Result<std::vector<StoredResponse>> Chain(const std::string& tenant, const std::string& id,
                                            int64_t at_s) {
    SetTo(at_s);
    return store->Chain(tenant, id);
  }
  Result<bool> Delete(const std::string& tenant, const std::string& id) {
    return store->Delete(tenant, id);
  }
  StoreCounts counts() const { return store->counts(); }
  int64_t count() const { return store->count(); }
  int64_t bytes() const { return store->bytes(); }
  const CipherKey& cipher_key() const { return store->cipher_key(); }
  // Time that passed, and the date with it.
  void SetTo(int64_t at_s) {
    now->wall_s += at_s - now->boot_s;
    now->boot_s = at_s;
  }
  std::shared_ptr<ClockReading> now;
  std::unique_ptr<ResponseStore> store;
};

constexpr int64_t kToday = 1'800'000'000, kDay = 24 * 3600, kYear = 365 * kDay;

std::unique_ptr<Clocked> Open(const StoreLimits& limits = {}, const std::string& path = "",
                              int64_t wall_s = kToday) {
  auto now = std::make_shared<ClockReading>(ClockReading{wall_s, 0, "boot"});
  auto store = ResponseStore::Open(path, limits, [now] { return *now; });
  EXPECT_TRUE(store.ok()) << store.status().message();
  return std::make_unique<Clocked>(Clocked{now, *std::move(store)});
}

bool Has(Clocked& store, const std::string& tenant, const std::string& id, int64_t at_s = 100) {
  auto got = store.Get(tenant, id, at_s);
  EXPECT_TRUE(got.ok()) << got.status().message();
  return got->has_value();
}

TEST(ResponseStore, GivesBackWhatItTook) {
  auto store = Open();
  const StoredResponse put{"resp_1", "resp_0", "[{\"a\": \"\\u0000\"}]", "{\"b\": \"ä'; DROP\"}"};
  ASSERT_TRUE(store->Put("t'", put, 100).ok());
  auto got = store->Get("t'", "resp_1", 100);
  ASSERT_TRUE(got.ok() && got->has_value());
  EXPECT_EQ((*got)->previous_id, "resp_0");
  EXPECT_EQ((*got)->input, put.input);
  EXPECT_EQ((*got)->response, put.response);
  EXPECT_EQ(store->counts().failures, 0);
  EXPECT_TRUE(store->Put("t'", put, 100).ok()) << "a reply that was computed again";
  EXPECT_EQ(store->counts().failures, 0);
  StoredResponse other = put;
  other.response = "{}";
  EXPECT_FALSE(store->Put("t'", other, 100).ok()) << "an id is taken once";
  EXPECT_EQ(store->counts().failures, 1) << "and nobody can miss that";
  EXPECT_EQ(store->count(), 1);
}

TEST(ResponseStore, ShowsNobodyWhatIsAnothers) {
  auto store = Open();
  ASSERT_TRUE(store->Put("anna", Some("r1"), 100).ok());
  ASSERT_TRUE(store->Put("bert", Some("r2", "r1"), 100).ok());
  EXPECT_TRUE(Has(*store, "anna", "r1"));
  EXPECT_FALSE(Has(*store, "bert", "r1"));
  EXPECT_FALSE(Has(*store, "", "r1"));
  EXPECT_EQ(store->Chain("bert", "r1", 100).status().code(), Code::kNotFound);
  EXPECT_EQ(store->Chain("bert", "r2", 100).status().code(), Code::kNotFound)
      << "a chain does not lead into another tenant's responses";
  EXPECT_FALSE(*store->Delete("bert", "r1"));
  EXPECT_TRUE(Has(*store, "anna", "r1"));
}

TEST(ResponseStore, FollowsChains) {
  auto store = Open({.max_chain = 3});
  ASSERT_TRUE(store->Put("t", Some("a"), 1).ok());
  ASSERT_TRUE(store->Put("t", Some("b", "a"), 2).ok());
  ASSERT_TRUE(store->Put("t", Some("c", "b"), 3).ok());
  auto chain = store->Chain("t", "c", 4);
  ASSERT_TRUE(chain.ok()) << chain.status().message();
  ASSERT_EQ(chain->size(), 3u);
  EXPECT_EQ((*chain)[0].id, "a");
  EXPECT_EQ((*chain)[2].id, "c");
  ASSERT_TRUE(store->Put("t", Some("d", "c"), 4).ok());
  EXPECT_EQ(store->Chain("t", "d", 5).status().code(), Code::kExhausted);
  EXPECT_TRUE(*store->Delete("t", "b"));
  EXPECT_THAT(store->Chain("t", "c", 5).status().message(), HasSubstr("b"));
}

TEST(ResponseStore, KeepsItsBounds) {
  auto store = Open({.max_count = 3, .max_bytes = 100, .max_age_s = 50, .use_precision_s = 1});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(store->Put("t", Some(std::to_string(i)), 100 + i).ok());
  }
  EXPECT_TRUE(Has(*store, "t", "0", 103)) << "which also makes it recently used";
  ASSERT_TRUE(store->Put("t", Some("3"), 104).ok());
  EXPECT_EQ(store->count(), 3);
  EXPECT_FALSE(Has(*store, "t", "1", 104));
  EXPECT_TRUE(Has(*store, "t", "0", 104));
  ASSERT_TRUE(store->Put("t", Some("large", "", 90), 105).ok());
  EXPECT_LE(store->bytes(), 100);
  EXPECT_TRUE(Has(*store, "t", "large", 105));
  EXPECT_EQ(store->Put("t", Some("larger", "", 101), 105).code(), Code::kExhausted);
  EXPECT_FALSE(Has(*store, "t", "large", 156)) << "too old";
  ASSERT_TRUE(store->Put("t", Some("new"), 200).ok());
  EXPECT_EQ(store->count(), 1);
  EXPECT_EQ(store->bytes(), 10);
}

TEST(ResponseStore, TakesFromWhoHoldsMost) {
  auto store = Open({.max_count = 100, .max_bytes = 100});
  ASSERT_TRUE(store->Put("anna", Some("a"), 1).ok());
  for (int i = 0; i < 70; ++i) {
    ASSERT_TRUE(store->Put("bert", Some("b" + std::to_string(i)), 2 + i).ok());
  }
  EXPECT_TRUE(Has(*store, "anna", "a", 99)) << "the oldest of all, and not hers to lose";
  EXPECT_EQ(store->count(), 10);
  EXPECT_TRUE(Has(*store, "bert", "b69", 99));
  // Who comes later gets room as well, until all hold the same.
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(store->Put("carl", Some("c" + std::to_string(i)), 100).ok());
  }
  int carls = 0, berts = 0;
  for (int i = 0; i < 70; ++i) {
    berts += Has(*store, "bert", "b" + std::to_string(i)) ? 1 : 0;
    carls += Has(*store, "carl", "c" + std::to_string(i)) ? 1 : 0;
  }
  EXPECT_TRUE(Has(*store, "anna", "a"));
  EXPECT_GE(berts, 4);
  EXPECT_GE(carls, 4);
}

TEST(ResponseStore, TakesByCountAsWell) {
  auto store = Open({.max_count = 4, .max_bytes = 1000});
  ASSERT_TRUE(store->Put("anna", Some("a"), 1).ok());
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(store->Put("bert", Some(std::to_string(i)), 2).ok());
  EXPECT_EQ(store->count(), 4);
  EXPECT_TRUE(Has(*store, "anna", "a"));
  ASSERT_TRUE(*store->Delete("bert", "8"));
  EXPECT_EQ(store->count(), 3) << "what is deleted is counted off its key";
  ASSERT_TRUE(store->Put("bert", Some("x"), 3).ok());
  EXPECT_EQ(store->count(), 4);
}

TEST(ResponseStore, KnowsWhoHoldsWhatAfterARestart) {
  const testing::TempDir dir;
  const std::string path = dir.Path("responses.db");
  auto first = Open({}, path);
  ASSERT_TRUE(first->Put("anna", Some("a"), 1).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(first->Put("bert", Some(std::to_string(i)), 2).ok());
  first.reset();
  auto again = Open({.max_count = 4}, path);
  ASSERT_TRUE(again->Put("bert", Some("b"), 3).ok());
  EXPECT_TRUE(Has(*again, "anna", "a"));
  EXPECT_EQ(again->count(), 4);
}

TEST(ResponseStore, RefusesChainsThatAreTooLongToHold) {
  auto store = Open({.max_chain_bytes = 25});
  ASSERT_TRUE(store->Put("t", Some("a"), 1).ok());
  ASSERT_TRUE(store->Put("t", Some("b", "a"), 2).ok());
  EXPECT_TRUE(store->Chain("t", "b", 3).ok());
  ASSERT_TRUE(store->Put("t", Some("c", "b"), 3).ok());
  const Status status = store->Chain("t", "c", 4).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_THAT(status.message(), HasSubstr("30 bytes; the limit is 25"));
}

TEST(ResponseStore, OutlivesItsProcess) {
  const testing::TempDir dir;
  const std::string path = dir.Path("responses.db");
  auto first = Open({}, path);
  ASSERT_TRUE(first->Put("t", Some("a"), 1).ok());
  const CipherKey key = first->cipher_key();
  first.reset();
  auto again = Open({}, path);
  EXPECT_EQ(again->count(), 1);
  EXPECT_EQ(again->cipher_key(), key) << "what clients keep can still be opened";
  EXPECT_NE(Open()->cipher_key(), key);
  EXPECT_TRUE(Has(*again, "t", "a"));
  EXPECT_FALSE(ResponseStore::Open(dir.Path("no/such")).ok());
}

TEST(ResponseStore, AClockThatJumpsNeitherDeletesNorHides) {
  for (const int64_t jump : {3 * kDay, -3 * kDay, 12 * kYear, -12 * kYear, -kToday, 60 * kYear}) {
    auto store = Open({.max_age_s = kDay});
    ASSERT_TRUE(store->Put("t", Some("a"), 10).ok());
    store->now->wall_s += jump;
    EXPECT_TRUE(Has(*store, "t", "a", 20)) << jump;
    ASSERT_TRUE(store->Put("t", Some("b"), 30).ok()) << "which looks for what is too old";
    // Long enough to believe that date.
    for (int64_t at = 100; at < 10'000; at += 100) {
      ASSERT_TRUE(store->Put("t", Some(std::to_string(at)), at).ok());
    }
    store->now->wall_s -= jump;
    EXPECT_TRUE(Has(*store, "t", "a", 10 + kDay)) << jump;
    EXPECT_TRUE(Has(*store, "t", "b", 10 + kDay)) << jump;
    EXPECT_FALSE(Has(*store, "t", "a", 11 + kDay)) << "and not later: " << jump;
  }
}

TEST(ResponseStore, AJumpBetweenTwoProcessesIsNoTimeEither) {
  const testing::TempDir dir;
  for (const int64_t jump : {3 * kDay, -3 * kDay, 12 * kYear, -12 * kYear}) {
    const std::string path = dir.Path("responses" + std::to_string(jump));
    auto first = Open({.max_age_s = kDay}, path);
    ASSERT_TRUE(first->Put("t", Some("a"), 10).ok());
    first.reset();
    auto again = Open({.max_age_s = kDay}, path, kToday + jump);
    for (int64_t at = 100; at < 10'000; at += 100) {
      ASSERT_TRUE(again->Put("t", Some(std::to_string(at)), at).ok());
    }
    EXPECT_TRUE(Has(*again, "t", "a", 10 + kDay)) << jump;
    EXPECT_FALSE(Has(*again, "t", "a", 11 + kDay)) << jump;
  }
}

// A file of a version that had dates for ages, one of them yet to come.
TEST(ResponseStore, TakesOverDates) {
  const testing::TempDir dir;
  const std::string path = dir.Path("old.db");
  Open({}, path);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  const auto row = [](const char* id, int64_t at_s) {
    return Printf("INSERT INTO responses VALUES ('t', '%s', '', '[]', '{}', 4, %lld, %lld);", id,
                  static_cast<long long>(at_s), static_cast<long long>(at_s));
  };
  const std::string sql = row("forgotten", kToday - 31 * kDay) + row("old", kToday - 29 * kDay) +
                          row("future", kToday + 12 * kYear) + "DELETE FROM clock";
  ASSERT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(db);
  sqlite3_close(db);
  // The first start of this version has a wrong date, which is mended soon.
  auto store = Open({}, path, kToday + 12 * kYear);
  ASSERT_TRUE(store->Put("t", Some("new"), 100).ok());
  for (const char* id : {"old", "future", "new"}) EXPECT_TRUE(Has(*store, "t", id, 1000)) << id;
  store->now->wall_s = kToday;
  for (int64_t at = 1000; at < 6000; at += 100) Has(*store, "t", "new", at);
  ASSERT_TRUE(store->Put("t", Some("last"), 6000).ok());
  EXPECT_FALSE(Has(*store, "t", "forgotten", 6000));
  EXPECT_TRUE(Has(*store, "t", "old", 6000));
  EXPECT_FALSE(Has(*store, "t", "old", 2 * kDay));
  EXPECT_TRUE(Has(*store, "t", "future", 29 * kDay));
  EXPECT_FALSE(Has(*store, "t", "future", 31 * kDay));
}

TEST(ResponseStore, IsItsOwnersAlone) {
  const testing::TempDir dir;
  dir.Write("old.db", "");  // as it was made before: readable by all
  ASSERT_EQ(::chmod(dir.Path("old.db").c_str(), 0644), 0);
  for (const char* name : {"new.db", "old.db"}) {
    const mode_t before = ::umask(022);
    auto store = Open({}, dir.Path(name));
    ASSERT_TRUE(store->Put("t", Some("a"), 1).ok());
    ::umask(before);
    for (const char* end : {"", "-wal", "-shm"}) {
      struct stat info{};
      ASSERT_EQ(::stat((dir.Path(name) + end).c_str(), &info), 0) << name << end;
      EXPECT_EQ(info.st_mode & 0777, 0600u) << name << end;
    }
  }
}

}  // namespace
}  // namespace hearth
