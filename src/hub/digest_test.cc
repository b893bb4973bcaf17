// SPDX-License-Identifier: Apache-2.0
#include "hub/digest.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

Digest SumOf(DigestKind kind, std::string_view text, size_t piece) {
  Digester digester(kind, text.size());
  for (size_t at = 0; at < text.size(); at += piece) {
    const std::string_view part = text.substr(at, piece);
    digester.Add(std::as_bytes(std::span(part.data(), part.size())));
  }
  return digester.Finish();
}

TEST(Digest, KnownSums) {
  // sha256sum and git hash-object say so.
  EXPECT_EQ(SumOf(DigestKind::kSha256, "hello\n", 1).text(),
            "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
  EXPECT_EQ(SumOf(DigestKind::kGitBlob, "hello\n", 4).text(),
            "git:ce013625030ba8dba906f756967f9e9ca394464a");
  EXPECT_EQ(SumOf(DigestKind::kGitBlob, "", 1).text(),
            "git:e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(SumOf(DigestKind::kNone, "hello", 1), Digest());
}

TEST(Digest, Parsing) {
  const std::string hex(64, 'A');
  ASSERT_TRUE(ParseDigest(DigestKind::kSha256, hex));
  EXPECT_EQ(ParseDigest(DigestKind::kSha256, hex)->text(), "sha256:" + std::string(64, 'a'));
  EXPECT_FALSE(ParseDigest(DigestKind::kSha256, std::string(63, 'a')));
  EXPECT_FALSE(ParseDigest(DigestKind::kSha256, std::string(63, 'a') + "g"));
  EXPECT_FALSE(ParseDigest(DigestKind::kGitBlob, hex));
  EXPECT_FALSE(ParseDigest(DigestKind::kNone, ""));
}

}  // namespace
}  // namespace hearth
