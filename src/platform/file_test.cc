// SPDX-License-Identifier: Apache-2.0
#include "platform/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "testing/temp_dir.h"

namespace hearth {
namespace {

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "hearth-file-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
    return Path(name);
  }
  static std::string Text(std::span<const std::byte> bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  static std::span<const std::byte> Bytes(const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
  }

  std::string folder_;
};

// Pages of files in this process, in bytes.
uint64_t ResidentOfFiles() {
  std::ifstream statm("/proc/self/statm");
  uint64_t size = 0, resident = 0, shared = 0;
  statm >> size >> resident >> shared;
  return shared * 4096;
}

TEST_F(FileTest, ReleasedPagesLeaveAndStayReadable) {
  constexpr size_t kSize = size_t{16} << 20;
  std::string text(kSize, 'x');
  for (size_t i = 0; i < kSize; i += 997) text[i] = static_cast<char>('a' + i % 26);
  const Result<MappedFile> opened = MappedFile::Open(Write("large", text));
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  Result<MappedFile> file = MappedFile::Open(Path("large"));
  for (const bool from_cache : {false, true}) {
    EXPECT_EQ(Text(file->bytes()), text);
    const uint64_t before = ResidentOfFiles();
    file->Release(file->bytes().subspan(5000, kSize - 6000), from_cache);
    EXPECT_LT(ResidentOfFiles() + kSize * 9 / 10, before) << from_cache;
  }
  EXPECT_EQ(Text(file->bytes()), text);
  // Somebody else's memory is left alone, whatever lies around it.
  std::string other(1 << 20, 'o');
  file->Release(Bytes(other), true);
  EXPECT_EQ(other, std::string(1 << 20, 'o'));
}

TEST_F(FileTest, MapsAFile) {
  const std::string path = Write("a", std::string("one\0two", 7));
  const Result<MappedFile> opened = MappedFile::Open(path);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  Result<MappedFile> file = MappedFile::Open(path);
  EXPECT_EQ(Text(file->bytes()), std::string("one\0two", 7));
  EXPECT_EQ(file->path(), path);
}

TEST_F(FileTest, MappingsMove) {
  MappedFile a = *MappedFile::Open(Write("a", "aaaa"));
  MappedFile b = *MappedFile::Open(Write("b", "bb"));
  MappedFile c = std::move(a);
  EXPECT_EQ(Text(c.bytes()), "aaaa");
  c = std::move(b);
  EXPECT_EQ(Text(c.bytes()), "bb");
  EXPECT_EQ(c.path(), Path("b"));
}

TEST_F(FileTest, RefusesWhatIsNoFile) {
  const Status missing = MappedFile::Open(Path("missing")).status();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_EQ(missing.message(), Path("missing") + ": cannot open: No such file or directory");
  EXPECT_EQ(MappedFile::Open(Write("x", "1") + "/below").status().code(), Code::kNotFound);
  EXPECT_EQ(MappedFile::Open(Write("empty", "")).status().code(), Code::kCorrupt);
  EXPECT_EQ(MappedFile::Open(folder_).status().code(), Code::kInvalid);
  EXPECT_EQ(MappedFile::Open("/dev/zero").status().code(), Code::kInvalid);
}

TEST_F(FileTest, AFifoDoesNotBlock) {
  ASSERT_EQ(::mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::Open(Path("fifo")).status().code(), Code::kInvalid);
  EXPECT_EQ(ReadTextFile(Path("fifo"), 10).status().code(), Code::kInvalid);
}

TEST_F(FileTest, ReadsTextUpToItsLimit) {
  const std::string path = Write("a", "12345");
  EXPECT_EQ(*ReadTextFile(path, 5), "12345");
  EXPECT_EQ(ReadTextFile(path, 4).status().message(), path + ": 5 bytes, the limit is 4");
  EXPECT_EQ(*ReadTextFile(Write("empty", ""), 0), "");
  EXPECT_EQ(ReadTextFile(Path("missing"), 10).status().code(), Code::kNotFound);
  const std::string large(100000, 'x');
  EXPECT_EQ(*ReadTextFile(Write("large", large), 100000), large);
}

TEST_F(FileTest, ReadsKernelFilesWhoseSizeIsZero) {
  const Result<std::string> status = ReadTextFile("/proc/self/status", 1 << 20);
  ASSERT_TRUE(status.ok()) << status.status().message();
  EXPECT_NE(ReadTextFile("/proc/self/status", 1 << 20)->find("VmRSS"), std::string::npos);
  EXPECT_EQ(ReadTextFile("/proc/self/status", 10).status().code(), Code::kInvalid);
}

TEST_F(FileTest, ReplacesAtomically) {
  const std::string path = Write("a", "old text");
  MappedFile before = *MappedFile::Open(path);
  ASSERT_TRUE(WriteFileAtomically(path, Bytes("new")).ok());
  EXPECT_EQ(*ReadTextFile(path, 100), "new");
  EXPECT_EQ(Text(before.bytes()), "old text") << "who read the old file still does";
  EXPECT_FALSE(FileExists(path + ".tmp"));
  ASSERT_TRUE(WriteFileAtomically(path, {}).ok());
  EXPECT_EQ(*ReadTextFile(path, 100), "");
}

TEST_F(FileTest, WhatIsForItsOwnerIsReadByNobodyElse) {
  namespace fs = std::filesystem;
  const auto mode = [](const std::string& path) { return fs::status(path).permissions(); };
  const std::string path = Path("secret");
  Write("secret.tmp", "left behind, for all to read");
  ASSERT_TRUE(WriteFileAtomically(path, Bytes("x"), FileReaders::kOwner).ok());
  EXPECT_EQ(mode(path), fs::perms::owner_read | fs::perms::owner_write);
  // Somebody let a group read it: that stays.
  fs::permissions(path, fs::perms::group_read, fs::perm_options::add);
  ASSERT_TRUE(WriteFileAtomically(path, Bytes("y"), FileReaders::kOwner).ok());
  EXPECT_EQ(mode(path), fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
}

TEST_F(FileTest, AFailedReplacementLeavesNothingBehind) {
  EXPECT_EQ(WriteFileAtomically(Path("no/such/folder"), Bytes("x")).code(), Code::kNotFound);
  ASSERT_TRUE(std::filesystem::create_directory(Path("folder")));
  const Status refused = WriteFileAtomically(Path("folder"), Bytes("x"));
  EXPECT_EQ(refused.code(), Code::kIo);
  EXPECT_FALSE(FileExists(Path("folder.tmp")));
  EXPECT_TRUE(IsDirectory(Path("folder")));
}

TEST_F(FileTest, AFullDiskIsAnError) {
  // /dev/full accepts open and refuses every write, as a full disk does.
  std::filesystem::create_symlink("/dev/full", Path("full.tmp"));
  const Status refused = WriteFileAtomically(Path("full"), Bytes("x"));
  EXPECT_EQ(refused.code(), Code::kIo);
  EXPECT_NE(refused.message().find("No space left"), std::string::npos) << refused.message();
}

TEST_F(FileTest, TellsWhatIsThere) {
  EXPECT_TRUE(IsDirectory(folder_));
  EXPECT_TRUE(FileExists(folder_));
  EXPECT_FALSE(IsDirectory(Write("a", "x")));
  EXPECT_TRUE(FileExists(Path("a")));
  EXPECT_FALSE(FileExists(Path("b")));
}

TEST(FolderLock, IsHeldByOneAtATime) {
  const testing::TempDir dir;
  constexpr int kThreads = 4, kRounds = 50;
  std::vector<std::thread> threads;
  std::atomic<int> inside = 0, most = 0;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        auto lock = FolderLock::Take(dir.Path("a"));
        ASSERT_TRUE(lock.ok()) << lock.status().message();
        most = std::max<int>(most, ++inside);
        std::this_thread::yield();
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path())) << "nothing is left behind";
}

TEST(FolderLock, SaysWhatCannotBeLocked) {
  const testing::TempDir dir;
  EXPECT_EQ(FolderLock::Take(dir.Path("no/such")).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace hearth
