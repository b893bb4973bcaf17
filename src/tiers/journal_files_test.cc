// SPDX-License-Identifier: Apache-2.0
#include "tiers/journal_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

namespace hearth {
namespace {

namespace fs = std::filesystem;

class JournalFilesTest : public ::testing::Test {
 protected:
  JournalFilesTest() : directory_(::testing::TempDir() + "journal-" + std::to_string(::getpid())) {
    fs::remove_all(directory_);
  }
  ~JournalFilesTest() override { fs::remove_all(directory_); }
  std::unique_ptr<JournalFiles> Open(const std::string& secret = "a secret",
                                     const JournalFilesOptions& options = {}) {
    return *JournalFiles::Open(directory_, RecordSeal(secret), options);
  }
  std::string PathOf(const std::string& name) const { return directory_ + "/" + name; }

  const std::string directory_;
  const std::string name_ = "0123456789abcdef0123456789abcdef";
};

TEST_F(JournalFilesTest, ARecordSurvivesTheProcess) {
  Open()->Put(name_, "the first");
  {
    const auto files = Open();
    EXPECT_EQ(files->Get(name_), "the first");
    files->Put(name_, "a longer second one");
    EXPECT_EQ(files->Get(name_), "a longer second one");  // at once
    files->Put(name_, "short");
  }
  EXPECT_EQ(Open()->Get(name_), "short");
  EXPECT_EQ(fs::status(PathOf(name_)).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(JournalFilesTest, WhatWasCutOrChangedIsNone) {
  const std::string text(100, 'x');
  Open()->Put(name_, text);
  const auto size = fs::file_size(PathOf(name_));
  std::string whole(size, '\0');
  std::ifstream(PathOf(name_), std::ios::binary).read(whole.data(), static_cast<long>(size));
  EXPECT_EQ(whole.find(text.substr(0, 8)), std::string::npos);  // encrypted
  for (size_t i = 0; i < size; ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    std::ofstream(PathOf(name_), std::ios::binary) << changed;
    EXPECT_FALSE(Open()->Get(name_)) << i;
    std::ofstream(PathOf(name_), std::ios::binary) << whole.substr(0, i);
    EXPECT_FALSE(Open()->Get(name_)) << i;
  }
  std::ofstream(PathOf(name_), std::ios::binary) << whole;
  EXPECT_EQ(Open()->Get(name_), text);
  EXPECT_FALSE(Open("another secret")->Get(name_));
}

TEST_F(JournalFilesTest, ARecordIsOfItsName) {
  const std::string other(32, 'a');
  Open()->Put(name_, "mine");
  fs::copy_file(PathOf(name_), PathOf(other));
  EXPECT_FALSE(Open()->Get(other));
  const auto files = Open();
  for (const char* bad : {"", "../key", "0123456789ABCDEF0123456789ABCDEF", "zz"}) {
    files->Put(bad, "x");
    EXPECT_FALSE(files->Get(bad)) << bad;
  }
}

TEST_F(JournalFilesTest, TheOldGoAndTheOthersFilesStay) {
  Open()->Put(name_, "old");
  const std::string newer(32, 'b');
  Open()->Put(newer, "new");
  std::ofstream(PathOf("notes.txt")) << "somebody's";
  fs::last_write_time(PathOf(name_), fs::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_FALSE(Open()->Get(name_));  // and tidied by then, or soon
  Open();
  EXPECT_FALSE(fs::exists(PathOf(name_)));
  EXPECT_TRUE(fs::exists(PathOf(newer)));
  EXPECT_TRUE(fs::exists(PathOf("notes.txt")));
  Open("a secret", {.max_age_s = 3600, .max_files = 0, .max_waiting_bytes = 0});
  EXPECT_FALSE(fs::exists(PathOf(newer)));
}

TEST_F(JournalFilesTest, AClockThatJumpsMakesNothingOld) {
  constexpr int64_t kDay = 24 * 3600, kYear = 365 * kDay;
  for (const int64_t jump : {3 * kDay, -3 * kDay, 12 * kYear, -12 * kYear}) {
    fs::remove_all(directory_);
    std::atomic<int64_t> wall_s = 1'800'000'000, boot_s = 5000;
    JournalFilesOptions options;
    options.clocks = [&] { return ClockReading{wall_s, boot_s, "boot"}; };
    const auto pass = [&](int64_t seconds, int64_t jumps) {
      boot_s += seconds;
      wall_s += seconds + jumps;
    };
    Open("a secret", options)->Put(name_, "kept");
    pass(1000, jump);
    EXPECT_EQ(Open("a secret", options)->Get(name_), "kept") << "after a start: " << jump;
    {
      const auto files = Open("a secret", options);
      pass(1000, -jump);
      EXPECT_EQ(files->Get(name_), "kept") << "while it runs: " << jump;
      pass(1600, jump);
      EXPECT_EQ(files->Get(name_), "kept") << jump;
      pass(1, 0);
      EXPECT_FALSE(files->Get(name_)) << "nor later: " << jump;
    }
    Open("a secret", options);
    EXPECT_FALSE(fs::exists(PathOf(name_)));
  }
}

TEST_F(JournalFilesTest, ADirectoryThatCannotBeIsAnError) {
  EXPECT_FALSE(JournalFiles::Open("/proc/nowhere/journal", RecordSeal("s")).ok());
}

}  // namespace
}  // namespace hearth
