// SPDX-License-Identifier: Apache-2.0
#include "platform/usage.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hearth {
namespace {

TEST(Usage, ReadsResidentMemory) {
  const Resident resident = ResidentFrom(
      "Name:\tx VmRSS: 9 kB\nVmPeak:\t  999 kB\nVmHWM:\t  300 kB\nVmRSS:\t  200 kB\n"
      "RssAnon:\t     150 kB\n");
  EXPECT_EQ(resident.peak, 300 * 1024);
  EXPECT_EQ(resident.now, 200 * 1024);
  EXPECT_EQ(resident.anonymous, 150 * 1024);
  EXPECT_EQ(ResidentFrom("").peak, 0);
}

TEST(Usage, SeesItsOwnMemoryGrow) {
  const Resident before = ReadResident();
  ASSERT_GT(before.now, 0);
  std::vector<char> bytes(64 << 20, 'x');
  const Resident after = ReadResident();
  EXPECT_GE(after.anonymous - before.anonymous, static_cast<int64_t>(bytes.size()) / 2);
  EXPECT_GE(after.peak, after.now - (1 << 20));
}

TEST(Usage, RaisesTheFileLimitToWhatIsAllowed) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 100);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  const int64_t raised = RaiseFileLimit();
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, limit.rlim_max);
  EXPECT_EQ(raised, static_cast<int64_t>(std::min<rlim_t>(limit.rlim_max, INT32_MAX)));
}

TEST(Usage, CountsBusyAndStolenTime) {
  const CpuTime time = MachineTimeFrom(
      "cpu  100 10 20 5000 600 1 2 30 77 7\ncpu0 1 1 1 1 1 1 1 1 1 1\ncpu1 1 1 1 1 1 1 1 1 1 1\n"
      "intr 5\n",
      100);
  EXPECT_DOUBLE_EQ(time.machine, 1.63);
  EXPECT_EQ(time.num_cpus, 2);
  EXPECT_EQ(MachineTimeFrom("nonsense", 100).num_cpus, 1);
}

TEST(Usage, SharesAreOfAllProcessors) {
  CpuTime from, to;
  from = {.wall = 10, .own = 1, .machine = 100, .num_cpus = 2};
  to = {.wall = 20, .own = 11, .machine = 115, .num_cpus = 2};
  EXPECT_DOUBLE_EQ(OthersShare(from, to), 0.25);
  to.own = 40;  // the clocks disagree by a tick
  EXPECT_DOUBLE_EQ(OthersShare(from, to), 0.0);
  EXPECT_DOUBLE_EQ(OthersShare(from, from), 0.0);
}

TEST(Usage, NamesTheProcessor) { EXPECT_THAT(ProcessorName(), testing::Not(testing::IsEmpty())); }

}  // namespace
}  // namespace hearth
