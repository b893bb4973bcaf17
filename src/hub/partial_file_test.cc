// SPDX-License-Identifier: Apache-2.0
#include "hub/partial_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "platform/file.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

const PartialPlan kPlan{.size = 10, .part_bytes = 4, .digest = {}, .identity = "v1"};

// "abcd" and the last part are there, the middle is not.
void Begin(const TempDir& dir) {
  Result<PartialFile> file = PartialFile::Open(dir.Path("m"), kPlan);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->num_parts(), 3);
  ASSERT_TRUE(file->WriteAt(0, Bytes("abcd")).ok() && file->Complete(0).ok());
  ASSERT_TRUE(file->WriteAt(8, Bytes("ij")).ok() && file->Complete(2).ok());
  EXPECT_EQ(file->Frontier(), 4u);
  EXPECT_EQ(file->DoneBytes(), 6u);
}

TEST(PartialFile, GoesOnWhereItWas) {
  const TempDir dir;
  Begin(dir);
  EXPECT_FALSE(fs::exists(dir.Path("m")));
  Result<PartialFile> file = PartialFile::Open(dir.Path("m"), kPlan);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->is_done(0) && !file->is_done(1) && file->is_done(2));
  ASSERT_TRUE(file->WriteAt(4, Bytes("efgh")).ok() && file->Complete(1).ok());
  EXPECT_EQ(file->Frontier(), 10u);
  ASSERT_TRUE(file->Place().ok());
  EXPECT_EQ(*ReadTextFile(dir.Path("m"), 100), "abcdefghij");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 1);
}

TEST(PartialFile, AnotherCutOfTheSameFileIsKept) {
  const TempDir dir;
  Begin(dir);
  PartialPlan plan = kPlan;
  plan.part_bytes = 7;
  Result<PartialFile> file = PartialFile::Open(dir.Path("m"), plan);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->DoneBytes(), 6u);
}

TEST(PartialFile, AnotherFileBeginsAnew) {
  for (const auto change : {0, 1, 2, 3}) {
    const TempDir dir;
    Begin(dir);
    PartialPlan plan = kPlan;
    if (change == 0) plan.identity = "v2";
    if (change == 1) plan.size = 11;
    if (change == 2) plan.digest = {DigestKind::kSha256, std::string(64, 'a')};
    if (change == 3) plan.identity = "";
    Result<PartialFile> file = PartialFile::Open(dir.Path("m"), plan);
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(file->DoneBytes(), 0u) << change;
  }
}

TEST(PartialFile, TornBytesAndStatesAreNotBelieved) {
  const TempDir dir;
  Begin(dir);
  {
    std::fstream part(dir.Path(".m.part"), std::ios::in | std::ios::out | std::ios::binary);
    part.seekp(1);
    part.put('X');
  }
  Result<PartialFile> file = PartialFile::Open(dir.Path("m"), kPlan);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(!file->is_done(0) && file->is_done(2));
  for (const char* state : {"", "junk", "{}", R"({"file": 3, "parts": {"0": 1}})",
                            R"({"file": {"part_bytes": 0}, "parts": {}})"}) {
    dir.Write(".m.state", state);
    Result<PartialFile> again = PartialFile::Open(dir.Path("m"), kPlan);
    ASSERT_TRUE(again.ok()) << state;
    EXPECT_EQ(again->DoneBytes(), 0u) << state;
  }
}

// However a part's bytes were written, its hash is that of what is on the disk.
TEST(PartialFile, PartsAreNotedAsTheyAre) {
  using Writes = std::vector<std::pair<uint64_t, std::string>>;
  for (const Writes& writes :
       {Writes{{4, "efgh"}}, Writes{{4, "e"}, {5, "fg"}, {7, "h"}}, Writes{{6, "gh"}, {4, "ef"}},
        Writes{{4, "xx"}, {4, "ef"}, {6, "gh"}}, Writes{{4, "ef"}, {5, "fgh"}}, Writes{{5, "fgh"}},
        Writes{{4, "efghi"}}}) {
    const TempDir dir;
    Begin(dir);
    std::string hash;
    {
      Result<PartialFile> file = PartialFile::Open(dir.Path("m"), kPlan);
      ASSERT_TRUE(file.ok());
      for (const auto& [at, text] : writes) ASSERT_TRUE(file->WriteAt(at, Bytes(text)).ok());
      ASSERT_TRUE(file->Complete(1).ok());
      hash = HexOf(file->hash(1));
      std::string found(4, '\0');
      ASSERT_TRUE(file->ReadAt(4, std::as_writable_bytes(std::span(found))).ok());
      EXPECT_EQ(hash, HexOf(HashOf(Bytes(found)))) << found;
    }
    Result<PartialFile> again = PartialFile::Open(dir.Path("m"), kPlan);
    ASSERT_TRUE(again.ok());
    EXPECT_TRUE(again->is_done(1)) << "it is believed when it is read again";
  }
}

TEST(PartialFile, APartThatIsFetchedAgainIsHashedAgain) {
  const TempDir dir;
  Begin(dir);
  Result<PartialFile> file = PartialFile::Open(dir.Path("m"), kPlan);
  ASSERT_TRUE(file.ok());
  const ChunkHash before = file->hash(0);
  file->Forget(0);
  ASSERT_TRUE(file->WriteAt(0, Bytes("ab")).ok() && file->WriteAt(2, Bytes("cX")).ok());
  ASSERT_TRUE(file->Complete(0).ok());
  EXPECT_NE(file->hash(0), before);
  EXPECT_EQ(file->hash(0), HashOf(Bytes("abcX")));
}

TEST(PartialFile, SymlinksAreNotFollowed) {
  const TempDir dir;
  dir.Write("victim", "precious");
  fs::create_symlink(dir.Path("victim"), dir.Path(".m.part"));
  EXPECT_FALSE(PartialFile::Open(dir.Path("m"), kPlan).ok());
  EXPECT_EQ(*ReadTextFile(dir.Path("victim"), 100), "precious");
}

TEST(PartialFile, DiscardLeavesNothing) {
  const TempDir dir;
  Begin(dir);
  Result<PartialFile> file = PartialFile::Open(dir.Path("m"), kPlan);
  ASSERT_TRUE(file.ok());
  file->Discard();
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(PartialFile, MoreThanTheDiskHasIsToldAtOnce) {
  const TempDir dir;
  PartialPlan plan = kPlan;
  plan.size = uint64_t{1} << 44;
  plan.part_bytes = uint64_t{1} << 40;
  Result<PartialFile> file = PartialFile::Open(dir.Path("m"), plan);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find("HEARTH_MODELS"), std::string::npos)
      << file.status().message();
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

}  // namespace
}  // namespace hearth
