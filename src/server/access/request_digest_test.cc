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

TEST(RequestDigest, IsAnotherForEachOwner) {
  std::set<std::array<uint64_t, 2>> seen;
  for (const std::string_view owner : {"", "a", "ada", "ad", "1:", "ada/v1"}) {
    for (const std::string_view path : {"/v1/x", "a/v1/x", "/x", ""}) {
      EXPECT_TRUE(seen.insert(DigestOfRequest(owner, path, "{}")).second) << owner << " " << path;
      EXPECT_EQ(DigestOfRequest(owner, path, "{}"),
                DigestOfRequest(std::string(owner), std::string(path), "{}"));
    }
  }
  EXPECT_NE(DigestOfRequest("ada", "/v1/x", "{}"), DigestOfRequest("/v1/x", "{}"));
}

std::array<uint64_t, 2> DigestOf(std::string_view body) {
  auto parsed = ParseJson(body);
  EXPECT_TRUE(parsed.ok()) << body;
  return DigestOfJsonRequest("/v1/x", *parsed);
}

TEST(RequestDigest, IsOfWhatABodySaysNotOfHowItIsWritten) {
  const auto digest =
      DigestOf(R"({"model": "m", "n": [1, 2.0, 0.5], "at": {"a": "<é", "b": null}})");
  EXPECT_EQ(DigestOf(R"({"at":{"b":null,"a":"\u003c\u00e9"},"n":[1.0,2,5e-1],"model":"m"})"),
            digest);
  for (const char* other : {R"({"model": "m", "n": [2, 1, 0.5], "at": {"a": "<é", "b": null}})",
                            R"({"model": "m", "n": [1, 2, 0.5], "at": {"a": "<é", "b": false}})",
                            R"({"model": "m", "n": [1, 2, "0.5"], "at": {"a": "<é", "b": null}})",
                            R"({"model": "m", "n": [1, 2, 0.5], "at": {"a": "<é"}, "b": null})"}) {
    EXPECT_NE(DigestOf(other), digest) << other;
  }
  // What would run together without marks between values.
  EXPECT_NE(DigestOf("[1,23]"), DigestOf("[12,3]"));
  EXPECT_NE(DigestOf(R"(["a","bc"])"), DigestOf(R"(["ab","c"])"));
  EXPECT_NE(DigestOf(R"([["a"],"b"])"), DigestOf(R"(["a",["b"]])"));
  EXPECT_NE(DigestOf("[9007199254740993]"), DigestOf("[9007199254740992]"));
}

}  // namespace
}  // namespace hearth
