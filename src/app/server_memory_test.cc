// SPDX-License-Identifier: Apache-2.0
#include "app/server_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "platform/memory.h"

namespace hearth {
namespace {

constexpr int64_t kMib = 1 << 20;

TEST(ServerMemory, CountsWhatRequestsMayHold) {
  EXPECT_EQ(ServerMemoryBytes(200 * kMib, 2) - ServerMemoryBytes(100 * kMib, 2), 100 * kMib);
  EXPECT_GT(ServerMemoryBytes(0, 2), 32 * kMib);
}

TEST(ServerMemory, CountsStacksWhereAddressSpaceIsLimited) {
  if (HasAddressLimit()) GTEST_SKIP() << "it is limited already";
  const int64_t free = ServerMemoryBytes(100 * kMib, 3);
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = uint64_t{1} << 46;  // more than sanitizers take
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
  const int64_t three = ServerMemoryBytes(100 * kMib, 3), five = ServerMemoryBytes(100 * kMib, 5);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_GT(three, free + 20 * ThreadStackBytes());
  EXPECT_EQ(five - three, 2 * ThreadStackBytes());
}

TEST(ServerMemory, IsRefusedWithItsNumbers) {
  EXPECT_TRUE(CheckServerFits(200 * kMib, 300 * kMib).ok());
  const Status refused = CheckServerFits(200 * kMib, 100 * kMib);
  EXPECT_EQ(refused.code(), Code::kExhausted);
  EXPECT_THAT(refused.message(), testing::HasSubstr("100 MiB are usable"));
  EXPECT_THAT(refused.message(), testing::HasSubstr("needs 200 MiB"));
}

}  // namespace
}  // namespace hearth
