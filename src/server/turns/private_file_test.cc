// SPDX-License-Identifier: Apache-2.0
#include "server/turns/private_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing/temp_dir.h"

namespace hearth {
namespace {

int ModeOf(const std::string& path) {
  struct stat info{};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return static_cast<int>(info.st_mode & 0777);
}

TEST(PrivateFile, IsItsOwnersAlone) {
  const testing::TempDir dir;
  const mode_t before = ::umask(0);  // the most generous: what is made must not rely on it
  EXPECT_TRUE(MakePrivate(dir.Path("new")).ok());
  Result<int> log = OpenPrivateForAppend(dir.Path("log"));
  ::umask(before);
  EXPECT_EQ(ModeOf(dir.Path("new")), 0600);
  ASSERT_TRUE(log.ok());
  ::close(*log);
  EXPECT_EQ(ModeOf(dir.Path("log")), 0600);
}

TEST(PrivateFile, ClosesWhatWasOpen) {
  const testing::TempDir dir;
  dir.Write("old", "kept");
  ASSERT_EQ(::chmod(dir.Path("old").c_str(), 0644), 0);
  EXPECT_TRUE(MakePrivate(dir.Path("old")).ok());
  EXPECT_EQ(ModeOf(dir.Path("old")), 0600);
  struct stat info{};
  ASSERT_EQ(::stat(dir.Path("old").c_str(), &info), 0);
  EXPECT_EQ(info.st_size, 4) << "nothing is cut";
}

TEST(PrivateFile, ALogKeepsTheModeThatSomebodyGaveIt) {
  const testing::TempDir dir;
  dir.Write("log", "a line\n");
  ASSERT_EQ(::chmod(dir.Path("log").c_str(), 0640), 0);
  Result<int> log = OpenPrivateForAppend(dir.Path("log"));
  ASSERT_TRUE(log.ok());
  EXPECT_EQ(::write(*log, "b\n", 2), 2);
  ::close(*log);
  EXPECT_EQ(ModeOf(dir.Path("log")), 0640);
  struct stat info{};
  ASSERT_EQ(::stat(dir.Path("log").c_str(), &info), 0);
  EXPECT_EQ(info.st_size, 9);
}

TEST(PrivateFile, SaysWhatCannotBe) {
  const testing::TempDir dir;
  EXPECT_NE(MakePrivate(dir.Path("no/such")).message().find("no/such"), std::string::npos);
  EXPECT_EQ(OpenPrivateForAppend(dir.path()).status().code(), Code::kIo);
}

}  // namespace
}  // namespace hearth
