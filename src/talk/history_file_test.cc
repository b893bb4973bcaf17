// SPDX-License-Identifier: Apache-2.0
#include "talk/history_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "platform/file.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using testing::TempDir;

TEST(HistoryFile, KeepsWhatWasTypedForItsOwner) {
  const TempDir dir;
  const std::string path = dir.Path("state/hearth/history");
  HistoryFile first = HistoryFile::Open(path);
  ASSERT_TRUE(first.Add("one").ok());
  ASSERT_TRUE(first.Add("two\nlines \"quoted\" 世界").ok());
  ASSERT_TRUE(first.Add("two\nlines \"quoted\" 世界").ok()) << "again: not kept twice";
  const HistoryFile second = HistoryFile::Open(path);
  EXPECT_EQ(second.entries(), (std::vector<std::string>{"one", "two\nlines \"quoted\" 世界"}));
  struct stat about{};
  ASSERT_EQ(stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST(HistoryFile, TightensAFileThatOthersCouldRead) {
  const TempDir dir;
  dir.Write("history", "\"old\"\n");
  chmod(dir.Path("history").c_str(), 0644);
  ASSERT_TRUE(HistoryFile::Open(dir.Path("history")).Add("new").ok());
  struct stat about{};
  ASSERT_EQ(stat(dir.Path("history").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST(HistoryFile, TwoChatsAtOnceLoseNothing) {
  const TempDir dir;
  HistoryFile a = HistoryFile::Open(dir.Path("h")), b = HistoryFile::Open(dir.Path("h"));
  ASSERT_TRUE(a.Add("of a").ok());
  ASSERT_TRUE(b.Add("of b").ok());
  ASSERT_TRUE(a.Add("of a again").ok());
  EXPECT_EQ(HistoryFile::Open(dir.Path("h")).entries(),
            (std::vector<std::string>{"of a", "of b", "of a again"}));
}

TEST(HistoryFile, StaysSmall) {
  const TempDir dir;
  HistoryFile history = HistoryFile::Open(dir.Path("h"), 3);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(history.Add(std::to_string(i)).ok());
  const HistoryFile again = HistoryFile::Open(dir.Path("h"), 3);
  EXPECT_EQ(again.entries(), (std::vector<std::string>{"7", "8", "9"}));
  EXPECT_EQ(*ReadTextFile(dir.Path("h"), 1000), "\"7\"\n\"8\"\n\"9\"\n");
  ASSERT_TRUE(history.Add(std::string(HistoryFile::kMaxEntryBytes + 1, 'x')).ok());
  EXPECT_EQ(HistoryFile::Open(dir.Path("h"), 3).entries().back(), "9");
}

TEST(HistoryFile, PassesOverWhatItDidNotWrite) {
  const TempDir dir;
  dir.Write("h", "junk\n\"good\"\n{\"a\": 1}\n\"cut");
  EXPECT_EQ(HistoryFile::Open(dir.Path("h")).entries(), std::vector<std::string>{"good"});
}

TEST(HistoryFile, SaysOnceThatItCannotBeKept) {
  const TempDir dir;
  dir.Write("file", "");
  HistoryFile history = HistoryFile::Open(dir.Path("file/below"));
  EXPECT_FALSE(history.Add("one").ok());
  EXPECT_TRUE(history.Add("two").ok());
  EXPECT_EQ(history.entries().size(), 2u) << "this chat still has them";
  EXPECT_TRUE(HistoryFile::Open("").Add("nowhere").ok());
}

TEST(HistoryFile, UsualPath) {
  setenv("XDG_STATE_HOME", "/s", 1);
  EXPECT_EQ(UsualHistoryPath(), "/s/hearth/history");
  unsetenv("XDG_STATE_HOME");
  setenv("HOME", "/h", 1);
  EXPECT_EQ(UsualHistoryPath(), "/h/.local/state/hearth/history");
  unsetenv("HOME");
  EXPECT_EQ(UsualHistoryPath(), "");
}

}  // namespace
}  // namespace hearth
