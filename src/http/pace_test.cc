// SPDX-License-Identifier: Apache-2.0
#include "http/pace.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Pace::Time kStart{};

TEST(Pace, BytesBuyTime) {
  Pace pace(kStart, seconds(5), seconds(15), 1000);
  EXPECT_EQ(pace.deadline(), kStart + seconds(5));
  pace.Add(2000, kStart + seconds(1));
  EXPECT_EQ(pace.deadline(), kStart + seconds(7));
  pace.Add(1, kStart + seconds(2));
  EXPECT_EQ(pace.deadline(), kStart + milliseconds(7001));
}

TEST(Pace, WhatCameFastBuysABoundedTime) {
  Pace pace(kStart, seconds(5), seconds(15), 1000);
  pace.Add(size_t{4} << 20, kStart + seconds(1));
  EXPECT_EQ(pace.deadline(), kStart + seconds(16)) << "not the 4,194 seconds that it was worth";
  pace.Add(1, kStart + seconds(15));
  EXPECT_EQ(pace.deadline(), kStart + milliseconds(16'001)) << "one byte late buys a byte's time";
}

TEST(Pace, TheFirstTimeIsNeverShortened) {
  Pace pace(kStart, seconds(30), seconds(15), 1000);
  pace.Add(5, kStart + seconds(1));
  EXPECT_EQ(pace.deadline(), kStart + seconds(30));
}

TEST(Pace, ATrickleEnds) {
  Pace pace(kStart, seconds(30), seconds(30), 1024);
  Pace::Time now = kStart;
  int taken = 0;
  while (now < pace.deadline() && taken < 1000) {
    now += seconds(29);
    pace.Add(1, now);
    ++taken;
  }
  EXPECT_EQ(taken, 2);
}

TEST(Pace, WaitingForAnotherReasonCostsNothing) {
  Pace pace(kStart, seconds(5), seconds(15), 1000);
  pace.Forgive(seconds(60));
  EXPECT_EQ(pace.deadline(), kStart + seconds(65));
}

}  // namespace
}  // namespace hearth
