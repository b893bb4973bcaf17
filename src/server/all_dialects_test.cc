// SPDX-License-Identifier: Apache-2.0
#include "server/all_dialects.h"

#include <gtest/gtest.h>

#include <set>

namespace hearth {
namespace {

class AllDialectsTest : public ::testing::Test {
 protected:
  std::string ErrorAt(const std::string& path) {
    ApiError error;
    error.message = "no";
    return DescribeErrorAt(dialects_, path, error);
  }
  std::unique_ptr<ResponseStore> store_ = *ResponseStore::Open("");
  Dialects dialects_ = AllDialects(*store_);
};

TEST_F(AllDialectsTest, EachHasAName) {
  std::set<std::string> names;
  for (const auto& dialect : dialects_) names.insert(dialect->name());
  EXPECT_EQ(names.size(), dialects_.size());
}

// A 401 or 404 comes before any dialect has seen the request.
TEST_F(AllDialectsTest, RefusalsAreInTheWordsOfThePath) {
  const std::string openai = R"({"error":)", anthropic = R"({"type":"error",)";
  for (const char* path : {"/v1/messages", "/v1/messages/count_tokens", "/v1/messages/batches"}) {
    EXPECT_TRUE(ErrorAt(path).starts_with(anthropic)) << path << ErrorAt(path);
  }
  for (const char* path : {"/api/chat", "/api/embeddings/old", "/api/blobs/sha256:0"}) {
    EXPECT_EQ(ErrorAt(path), R"({"error":"no"})") << path;
  }
  for (const char* path : {"/v1/chat/completions", "/v1/responses/some-id", "/", "", "/v1/mess"}) {
    EXPECT_TRUE(ErrorAt(path).starts_with(openai)) << path << ErrorAt(path);
  }
}

}  // namespace
}  // namespace hearth
