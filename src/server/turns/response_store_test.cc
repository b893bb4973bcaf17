// SPDX-License-Identifier: Apache-2.0
#include "server/turns/response_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;

StoredResponse Some(const std::string& id, const std::string& previous = "", size_t bytes = 10) {
  return {id, previous, "[]", std::string(bytes - 2, 'x')};
}

std::unique_ptr<ResponseStore> Open(const StoreLimits& limits = {}, const std::string& path = "") {
  auto store = ResponseStore::Open(path, limits);
  EXPECT_TRUE(store.ok()) << store.status().message();
  return *std::move(store);
}

bool Has(ResponseStore& store, const std::string& tenant, const std::string& id,
         int64_t now_s = 100) {
  auto got = store.Get(tenant, id, now_s);
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
  EXPECT_FALSE(store->Put("t'", put, 100).ok()) << "an id is taken once";
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
  auto store = Open({.max_count = 3, .max_bytes = 100, .max_age_s = 50});
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

TEST(ResponseStore, OutlivesItsProcess) {
  const testing::TempDir dir;
  const std::string path = dir.Path("responses.db");
  auto first = Open({}, path);
  ASSERT_TRUE(first->Put("t", Some("a"), 1).ok());
  const SealKey key = first->seal_key();
  first.reset();
  auto again = Open({}, path);
  EXPECT_EQ(again->count(), 1);
  EXPECT_EQ(again->seal_key(), key) << "what clients keep can still be opened";
  EXPECT_NE(Open()->seal_key(), key);
  EXPECT_TRUE(Has(*again, "t", "a"));
  EXPECT_FALSE(ResponseStore::Open(dir.Path("no/such")).ok());
}

}  // namespace
}  // namespace hearth
