// SPDX-License-Identifier: Apache-2.0
#include "hub/trailing_digest.h"

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace hearth {
namespace {

using testing::TempDir;

TEST(TrailingDigest, FollowsTheWriter) {
  const TempDir dir;
  const std::string content(5'000'000, 'q');
  Result<PartialFile> file =
      PartialFile::Open(dir.Path("m"), {.size = content.size(), .part_bytes = 1 << 20});
  ASSERT_TRUE(file.ok());
  Digester whole(DigestKind::kSha256, content.size());
  whole.Add(std::as_bytes(std::span(content)));
  TrailingDigest digest(*file, DigestKind::kSha256);
  for (size_t at = 0; at < content.size(); at += 700'000) {
    const std::string piece = content.substr(at, 700'000);
    ASSERT_TRUE(file->WriteAt(at, std::as_bytes(std::span(piece))).ok());
    digest.Advance(at + piece.size());
    digest.Advance(at);  // an older bound changes nothing
  }
  Result<Digest> found = digest.Finish();
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->hex, whole.Finish().hex);
}

TEST(TrailingDigest, CanBeGivenUp) {
  const TempDir dir;
  Result<PartialFile> file = PartialFile::Open(dir.Path("m"), {.size = 100, .part_bytes = 10});
  ASSERT_TRUE(file.ok());
  {
    TrailingDigest digest(*file, DigestKind::kSha256);
    digest.Advance(50);
  }
  // Its thread has let go of the file, which can be filled and summed up anew.
  const std::string content(100, 'z');
  ASSERT_TRUE(file->WriteAt(0, std::as_bytes(std::span(content))).ok());
  Digester whole(DigestKind::kSha256, content.size());
  whole.Add(std::as_bytes(std::span(content)));
  EXPECT_EQ(TrailingDigest(*file, DigestKind::kSha256).Finish()->hex, whole.Finish().hex);
}

}  // namespace
}  // namespace hearth
