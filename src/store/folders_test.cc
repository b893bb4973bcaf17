// SPDX-License-Identifier: Apache-2.0
#include "store/folders.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "testing/temp_dir.h"

namespace hearth {
namespace {

using testing::TempDir;

TEST(Folders, NamesAreSortedBoundedAndWithoutDots) {
  const TempDir dir;
  dir.Write("b", "").Write("a", "").Write(".hidden", "").Write("c/x", "");
  EXPECT_EQ(NamesIn(dir.path()), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(NamesIn(dir.path(), 2).size(), 2u);
  EXPECT_TRUE(NamesIn(dir.Path("absent")).empty());
  EXPECT_TRUE(NamesIn(dir.Path("a")).empty());
}

TEST(Folders, PlainNames) {
  for (const char* name : {"a", "model.gguf", "..a", "-", "Ä"})
    EXPECT_TRUE(IsPlainName(name)) << name;
  for (const char* name : {"", ".", "..", "a/b", "/", "a\nb", "\x7f"}) {
    EXPECT_FALSE(IsPlainName(name)) << name;
  }
  EXPECT_TRUE(IsPlainName(std::string(255, 'x')));
  EXPECT_FALSE(IsPlainName(std::string(256, 'x')));
}

TEST(Folders, FilesAreFoundWithinTheRootOnly) {
  const TempDir dir, other;
  dir.Write("blobs/one", "123");
  other.Write("secret", "1234");
  namespace fs = std::filesystem;
  fs::create_directories(dir.Path("snap"));
  fs::create_symlink("../blobs/one", dir.Path("snap/inside"));
  fs::create_symlink(other.Path("secret"), dir.Path("snap/outside"));
  fs::create_symlink("missing", dir.Path("snap/broken"));
  ::mkfifo(dir.Path("snap/fifo").c_str(), 0600);
  const auto inside = FileWithin(dir.path(), dir.Path("snap"), "inside");
  ASSERT_TRUE(inside);
  EXPECT_EQ(inside->bytes, 3u);
  EXPECT_EQ(inside->path, dir.Path("snap/inside"));
  for (const char* name : {"outside", "broken", "fifo", "../../etc/passwd", "", "absent"}) {
    EXPECT_FALSE(FileWithin(dir.path(), dir.Path("snap"), name)) << name;
  }
  // A folder whose name merely begins like the root's is another folder.
  EXPECT_FALSE(FileWithin(dir.Path("snap"), dir.path(), "snapshots"));
  // The root itself may be a symlink.
  fs::create_directory_symlink(dir.path(), other.Path("link"));
  EXPECT_TRUE(FileWithin(other.Path("link"), other.Path("link/snap"), "inside"));
}

}  // namespace
}  // namespace hearth
