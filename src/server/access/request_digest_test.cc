// SPDX-License-Identifier: Apache-2.0
#include "server/access/request_digest.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace hearth {
namespace {

TEST(RequestDigest, IsTheSameForTheSameAndForNothingElse) {
  std::set<std::array<uint64_t, 2>> seen;
  const std::string_view parts[] = {"", "a", "b", "ab", std::string_view("\0", 1)};
  for (const std::string_view path : {"/v1/x", "/v1/xa", "/v1/y"}) {
    for (const std::string_view body : parts) {
      EXPECT_TRUE(seen.insert(DigestOfRequest(path, body)).second) << path << " " << body;
      EXPECT_EQ(DigestOfRequest(path, body), DigestOfRequest(path, std::string(body)));
    }
  }
  EXPECT_EQ(seen.size(), 15u);
}

}  // namespace
}  // namespace hearth
