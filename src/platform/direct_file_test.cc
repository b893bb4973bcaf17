// SPDX-License-Identifier: Apache-2.0
#include "platform/direct_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "platform/memory.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

constexpr size_t kBlock = DirectFile::kAlignment;

class DirectFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string text(3 * kBlock + 100, '\0');
    for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 + i / kBlock);
    std::ofstream(path_, std::ios::binary) << text;
    text_ = text;
  }
  testing::TempDir dir_;
  std::string path_ = dir_.Path("file"), text_;
  LargeBuffer buffer_ = *LargeBuffer::Make(8 * kBlock);
};

TEST_F(DirectFileTest, ReadsTheBytesThatAreThere) {
  Result<DirectFile> file = DirectFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->num_bytes(), text_.size());
  ASSERT_TRUE(file->ReadAt(kBlock, buffer_.bytes().first(kBlock), kBlock).ok());
  EXPECT_EQ(std::memcmp(buffer_.bytes().data(), text_.data() + kBlock, kBlock), 0);
  // The last block is not whole; what is needed of it is there.
  const Status end = file->ReadAt(2 * kBlock, buffer_.bytes().first(2 * kBlock), kBlock + 100);
  ASSERT_TRUE(end.ok()) << end.message();
  EXPECT_EQ(std::memcmp(buffer_.bytes().data(), text_.data() + 2 * kBlock, kBlock + 100), 0);
}

TEST_F(DirectFileTest, AFileThatEndsBeforeIsAnError) {
  Result<DirectFile> file = DirectFile::Open(path_);
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(path_, kBlock + 10);
  const Status cut = file->ReadAt(kBlock, buffer_.bytes().first(2 * kBlock), kBlock);
  EXPECT_EQ(cut.code(), Code::kCorrupt);
  EXPECT_THAT(cut.message(), ::testing::HasSubstr("the file ends at byte 4106"));
  EXPECT_EQ(file->ReadAt(2 * kBlock, buffer_.bytes().first(kBlock), 1).code(), Code::kCorrupt);
}

TEST_F(DirectFileTest, WhatIsNoFileIsRefused) {
  EXPECT_EQ(DirectFile::Open(dir_.Path("absent")).status().code(), Code::kIo);
  EXPECT_FALSE(DirectFile::Open("/tmp").ok());
}

TEST_F(DirectFileTest, ARateIsMeasured) {
  Result<double> rate = MeasureReadRate(path_, kBlock);
  ASSERT_TRUE(rate.ok()) << rate.status().message();
  EXPECT_GT(*rate, 0);
  EXPECT_EQ(MeasureReadRate(path_, 1 << 20).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hearth
