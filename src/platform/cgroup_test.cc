// SPDX-License-Identifier: Apache-2.0
#include "platform/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using ::testing::ElementsAre;

// Texts as real systems show them.
constexpr char kV2Mounts[] =
    "22 28 0:20 / /proc rw,nosuid - proc proc rw\n"
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 "
    "rw,nsdelegate,memory_recursiveprot\n";
constexpr char kHybridSelf[] =
    "9:name=systemd:/\n8:pids:/\n4:memory:/box/b491\n3:cpuset:/sets\n2:cpuacct:/accounts\n1:cpu:/"
    "\n0::/\n";
constexpr char kHybridMounts[] =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
    "33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

TEST(FindCgroup, Version2WalksToTheRoot) {
  const auto place =
      FindCgroup("0::/user.slice/user-1000.slice/session-2.scope\n", kV2Mounts, "memory");
  ASSERT_TRUE(place.has_value());
  EXPECT_TRUE(place->unified);
  EXPECT_THAT(place->folders,
              ElementsAre("/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope",
                          "/sys/fs/cgroup/user.slice/user-1000.slice", "/sys/fs/cgroup/user.slice",
                          "/sys/fs/cgroup"));
}

TEST(FindCgroup, Version2InsideAContainer) {
  const auto place = FindCgroup("0::/\n", kV2Mounts, "cpu");
  ASSERT_TRUE(place.has_value());
  EXPECT_THAT(place->folders, ElementsAre("/sys/fs/cgroup"));
}

TEST(FindCgroup, HybridPrefersTheHierarchyThatHoldsTheController) {
  const auto memory = FindCgroup(kHybridSelf, kHybridMounts, "memory");
  ASSERT_TRUE(memory.has_value());
  EXPECT_FALSE(memory->unified);
  EXPECT_THAT(memory->folders, ElementsAre("/sys/fs/cgroup/memory/box/b491",
                                           "/sys/fs/cgroup/memory/box", "/sys/fs/cgroup/memory"));
  const auto cpu = FindCgroup(kHybridSelf, kHybridMounts, "cpu");
  ASSERT_TRUE(cpu.has_value());
  EXPECT_THAT(cpu->folders, ElementsAre("/sys/fs/cgroup/cpu"))
      << "cpu is neither cpuset nor cpuacct";
  const auto io = FindCgroup(kHybridSelf, kHybridMounts, "io");
  ASSERT_TRUE(io.has_value());
  EXPECT_TRUE(io->unified);
}

TEST(FindCgroup, Version1WithSharedControllersInsideADockerContainer) {
  // No cgroup namespace: the full path is shown, but only our own part of the tree is mounted.
  const char self[] =
      "11:cpu,cpuacct:/docker/4f2a\n10:memory:/docker/4f2a\n1:name=systemd:/docker/4f2a\n";
  const char mounts[] =
      "700 690 0:30 /docker/4f2a /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
      "701 690 0:31 /docker/4f2a /sys/fs/cgroup/memory ro master:15 - cgroup cgroup rw,memory\n";
  const auto cpu = FindCgroup(self, mounts, "cpu");
  ASSERT_TRUE(cpu.has_value());
  EXPECT_THAT(cpu->folders, ElementsAre("/sys/fs/cgroup/cpu,cpuacct"));
  const auto memory = FindCgroup(self, mounts, "memory");
  ASSERT_TRUE(memory.has_value());
  EXPECT_THAT(memory->folders, ElementsAre("/sys/fs/cgroup/memory"));
}

TEST(FindCgroup, OddPaths) {
  const auto moved = FindCgroup("0::/../other\n", kV2Mounts, "cpu");
  ASSERT_TRUE(moved.has_value());
  EXPECT_THAT(moved->folders, ElementsAre("/sys/fs/cgroup"));
  const auto colon = FindCgroup("0::/a:b\n", "1 2 0:3 / /mnt/a\\040b rw - cgroup2 c rw\n", "cpu");
  ASSERT_TRUE(colon.has_value());
  EXPECT_THAT(colon->folders, ElementsAre("/mnt/a b/a:b", "/mnt/a b"));
}

TEST(FindCgroup, NothingToFind) {
  EXPECT_FALSE(FindCgroup("", "", "cpu").has_value());
  EXPECT_FALSE(FindCgroup("0::/\n", "", "cpu").has_value());
  EXPECT_FALSE(FindCgroup("", kV2Mounts, "cpu").has_value());
  EXPECT_FALSE(FindCgroup("garbage\n:::\n\n", "- - -\n - \n", "cpu").has_value());
  EXPECT_FALSE(FindCgroup("4:memory:/\n", kV2Mounts, "memory").has_value());
}

TEST(CpuQuota, Version2) {
  EXPECT_EQ(CpuQuotaV2("150000 100000\n"), 1.5);
  EXPECT_EQ(CpuQuotaV2("400000 100000"), 4.0);
  EXPECT_EQ(CpuQuotaV2("max 100000\n"), std::nullopt);
  EXPECT_EQ(CpuQuotaV2(""), std::nullopt);
  EXPECT_EQ(CpuQuotaV2("150000"), std::nullopt);
  EXPECT_EQ(CpuQuotaV2("150000 0"), std::nullopt);
  EXPECT_EQ(CpuQuotaV2("1x 100000"), std::nullopt);
  EXPECT_EQ(CpuQuotaV2("99999999999999999999 100000"), std::nullopt);
}

TEST(CpuQuota, Version1) {
  EXPECT_EQ(CpuQuotaV1("50000\n", "100000\n"), 0.5);
  EXPECT_EQ(CpuQuotaV1("-1\n", "100000\n"), std::nullopt);
  EXPECT_EQ(CpuQuotaV1("", ""), std::nullopt);
  EXPECT_EQ(CpuQuotaV1("50000", "-5"), std::nullopt);
}

TEST(MemoryLimit, FilesOfBothVersions) {
  EXPECT_EQ(MemoryLimitFiles({true, {"/cg/a", "/cg"}}),
            (std::vector<std::string>{"/cg/a/memory.max", "/cg/a/memory.high", "/cg/memory.max",
                                      "/cg/memory.high"}));
  EXPECT_EQ(MemoryLimitFiles({false, {"/m/a", "/m"}}),
            (std::vector<std::string>{"/m/a/memory.limit_in_bytes", "/m/memory.limit_in_bytes"}));
}

TEST(MemoryLimit, BothVersions) {
  EXPECT_EQ(MemoryLimit("max\n"), std::nullopt);
  EXPECT_EQ(MemoryLimit("8589934592\n"), 8589934592u);
  EXPECT_EQ(MemoryLimit("0\n"), 0u);
  EXPECT_EQ(MemoryLimit("9223372036854771712\n"), std::nullopt) << "version 1's way to say none";
  EXPECT_EQ(MemoryLimit("18446744073709551615"), std::nullopt);
  EXPECT_EQ(MemoryLimit(""), std::nullopt);
  EXPECT_EQ(MemoryLimit("12 34"), std::nullopt);
}

}  // namespace
}  // namespace hearth
