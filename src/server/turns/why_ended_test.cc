// SPDX-License-Identifier: Apache-2.0
#include "server/turns/why_ended.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

RequestRecord Failed(const char* detail) {
  RequestRecord record;
  record.finish = Finish::kError;
  record.detail = detail;
  return record;
}

TEST(WhyItEnded, AStepThatFoundNoMemoryMayBeTriedAgain) {
  RequestRecord record = Failed("out of memory in a step of 512 tokens");
  record.lacked_memory = true;
  const ApiError error = WhyItEnded(record, "");
  EXPECT_EQ(error.status, 503);
  EXPECT_EQ(error.code, "out_of_memory");
  EXPECT_GT(error.retry_after_s, 0);
  EXPECT_THAT(error.message, testing::HasSubstr("a step of 512 tokens"));
}

TEST(WhyItEnded, AnotherFailureIsTheServers) {
  const ApiError error = WhyItEnded(Failed("the device went away"), "");
  EXPECT_EQ(error.status, 500);
  EXPECT_EQ(error.message, "the device went away");
}

TEST(WhyItEnded, WhoLeftAndWhoWasGivenUpAreNotToldTheSame) {
  RequestRecord record;
  record.finish = Finish::kCancelled;
  EXPECT_EQ(WhyItEnded(record, "").status, 499);
  const ApiError cut = CutForMemory();
  EXPECT_EQ(cut.status, 503);
  EXPECT_NE(cut.code, NameOf(Finish::kCancelled));
  EXPECT_GT(cut.retry_after_s, 0);
}

}  // namespace
}  // namespace hearth
