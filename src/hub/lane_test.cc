// SPDX-License-Identifier: Apache-2.0
#include "hub/lane.h"

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace hearth {
namespace {

using testing::TempDir;

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

HttpHead Part(uint64_t first, uint64_t total) {
  HttpHead head;
  head.status = 206;
  head.range_first = first;
  head.range_total = total;
  return head;
}

HttpHead Whole(std::optional<uint64_t> length) {
  HttpHead head;
  head.status = 200;
  head.length = length;
  return head;
}

// A file of ten bytes in parts of four, and one connection for it.
class LaneTest : public ::testing::Test {
 protected:
  LaneTest()
      : file_(*PartialFile::Open(dir_.Path("m"),
                                 {.size = 10, .part_bytes = 4, .digest = {}, .identity = "v"})),
        lane_(file_) {}
  std::string Read(uint64_t at, size_t length) {
    std::string text(length, '\0');
    EXPECT_TRUE(file_.ReadAt(at, std::as_writable_bytes(std::span(text))).ok());
    return text;
  }
  TempDir dir_;
  PartialFile file_;
  Lane lane_;
};

TEST_F(LaneTest, WritesItsSpanAndNotesThePart) {
  lane_.Start(4, 8, false);
  EXPECT_TRUE(lane_.is_busy() && !lane_.is_done());
  ASSERT_TRUE(lane_.OnHead(Part(4, 10)));
  ASSERT_TRUE(lane_.OnBytes(Bytes("ef")));
  EXPECT_FALSE(file_.is_done(1));
  ASSERT_TRUE(lane_.OnBytes(Bytes("gh")));
  EXPECT_TRUE(lane_.is_done() && file_.is_done(1));
  EXPECT_EQ(lane_.got(), 4u);
  EXPECT_EQ(Read(4, 4), "efgh");
  lane_.Stop();
  EXPECT_FALSE(lane_.is_busy());
}

TEST_F(LaneTest, GoesOnInTheMiddleOfAPart) {
  lane_.Start(4, 8, false);
  ASSERT_TRUE(lane_.OnHead(Part(4, 10)) && lane_.OnBytes(Bytes("efg")));
  lane_.Start(7, 8, false);
  ASSERT_TRUE(lane_.OnHead(Part(7, 10)) && lane_.OnBytes(Bytes("h")));
  EXPECT_TRUE(file_.is_done(1));
  EXPECT_EQ(lane_.got(), 1u) << "since it was started";
  EXPECT_EQ(Read(4, 4), "efgh");
}

TEST_F(LaneTest, BytesBeyondTheSpanAreRefused) {
  lane_.Start(4, 8, false);
  ASSERT_TRUE(lane_.OnHead(Part(4, 10)));
  EXPECT_FALSE(lane_.OnBytes(Bytes("efghij")));
  EXPECT_EQ(lane_.complaint(), "the server sent more bytes than asked for");
  EXPECT_EQ(Read(8, 2), std::string(2, '\0')) << "nothing was written there";
  lane_.Start(8, 10, false);
  EXPECT_EQ(lane_.complaint(), "") << "a new start";
}

TEST_F(LaneTest, AnswersForOtherBytesAreRefused) {
  lane_.Start(4, 8, false);
  EXPECT_FALSE(lane_.OnHead(Part(5, 10)));
  EXPECT_EQ(lane_.complaint(),
            "the server sent other bytes than asked for (from 5 on instead of 4)");
  lane_.Start(4, 8, false);
  EXPECT_FALSE(lane_.OnHead(Part(4, 11)));
  EXPECT_EQ(lane_.complaint(), "the server's file has 11 bytes, expected 10");
  lane_.Start(4, 8, false);
  HttpHead unsure = Part(4, 10);
  unsure.range_total.reset();  // "bytes 4-7/*"
  EXPECT_TRUE(lane_.OnHead(unsure));
  lane_.Start(4, 8, false);
  HttpHead silent = Part(4, 10);
  silent.range_first.reset();
  EXPECT_FALSE(lane_.OnHead(silent));
  lane_.Start(4, 8, false);
  HttpHead busy;
  busy.status = 503;
  EXPECT_FALSE(lane_.OnHead(busy));
  EXPECT_EQ(lane_.complaint(), "") << "its status says enough";
}

TEST_F(LaneTest, AWholeFilePassesOverWhatIsHere) {
  lane_.Start(4, 8, false);
  ASSERT_TRUE(lane_.OnHead(Part(4, 10)) && lane_.OnBytes(Bytes("efgh")));
  lane_.Start(0, 10, true);
  ASSERT_TRUE(lane_.OnHead(Whole(10)));
  EXPECT_TRUE(lane_.saw_whole() && lane_.takes_whole());
  ASSERT_TRUE(lane_.OnBytes(Bytes("abcdEFGHij")));
  EXPECT_EQ(lane_.got(), 6u);
  EXPECT_EQ(Read(0, 10), "abcdefghij");
  EXPECT_EQ(file_.Frontier(), 10u);
}

TEST_F(LaneTest, AWholeFileIsTakenFromWhereItBroke) {
  lane_.Start(6, 10, true);
  ASSERT_TRUE(lane_.OnHead(Whole({})));
  ASSERT_TRUE(lane_.OnBytes(Bytes("abcde")));  // passed over: it is below 6
  EXPECT_EQ(lane_.got(), 0u);
  ASSERT_TRUE(lane_.OnBytes(Bytes("fghij")));
  EXPECT_EQ(lane_.got(), 4u);
  EXPECT_EQ(Read(6, 4), "ghij");
}

TEST_F(LaneTest, AWholeFileMayBeSomebodyElsesToTake) {
  lane_.Start(4, 8, false);
  EXPECT_FALSE(lane_.OnHead(Whole(10)));
  EXPECT_TRUE(lane_.saw_whole());
  EXPECT_EQ(lane_.complaint(), "");
  lane_.Start(0, 10, true);
  EXPECT_FALSE(lane_.OnHead(Whole(11)));
  EXPECT_EQ(lane_.complaint(), "the server's file has 11 bytes, expected 10");
  EXPECT_FALSE(lane_.saw_whole()) << "of an earlier request";
}

}  // namespace
}  // namespace hearth
