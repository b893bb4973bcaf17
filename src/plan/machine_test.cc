// SPDX-License-Identifier: Apache-2.0
#include "plan/machine.h"

#include <gmock/gmock.h>

namespace hearth {
namespace {

using ::testing::HasSubstr;

MachineText Parsed(std::string_view text) {
  Result<MachineText> machine = ParseMachine(text);
  EXPECT_TRUE(machine.ok()) << text << ": " << machine.status().message();
  return machine.ok() ? *machine : MachineText{};
}

TEST(PlanMachine, ReadsTheIssuesExample) {
  const MachineText machine = Parsed("2x8 cores, 2x8ch DDR5-4800, avx512");
  EXPECT_EQ(machine.sockets, 2);
  EXPECT_EQ(machine.cores, 16);
  EXPECT_DOUBLE_EQ(machine.memory_rate, 16 * 4800e6 * 8);
  EXPECT_EQ(machine.isa, "avx512");
  EXPECT_FALSE(machine.clock_hz);
  EXPECT_EQ(machine.memory_bytes, 0u);
}

TEST(PlanMachine, TakesPartsInAnyOrderAndCase) {
  const MachineText machine = Parsed("  AMX,3.5 GHz , 300GB/s,  64 Cores, 512 GiB");
  EXPECT_EQ(machine.sockets, 1);
  EXPECT_EQ(machine.cores, 64);
  EXPECT_DOUBLE_EQ(machine.memory_rate, 300e9);
  EXPECT_EQ(machine.isa, "amx");
  EXPECT_DOUBLE_EQ(machine.clock_hz.value_or(0), 3.5e9);
  EXPECT_EQ(machine.memory_bytes, uint64_t{512} << 30);
  EXPECT_DOUBLE_EQ(Parsed("1 core, 2 ch LPDDR5-6400").memory_rate, 2 * 6400e6 * 8);
}

TEST(PlanMachine, NamesWhatItDoesNotUnderstand) {
  const std::pair<const char*, const char*> wrong[] = {
      {"8 cores, fast memory", "\"fast memory\""},
      {"8 cores, 8ch DDR5", "\"8ch ddr5\""},
      {"8 cores, 8ch DDR5-abc", "\"8ch ddr5-abc\""},
      {"8 cores, 8ch DDR5-4800 ECC", "ecc"},
      {"0 cores, 100 GB/s", "\"0 cores\""},
      {"-3 cores, 100 GB/s", "\"-3 cores\""},
      {"8x cores, 100 GB/s", "\"8x cores\""},
      {"99999999999 cores, 100 GB/s", "cores"},
      {"8 cores, 1e3 GB/s", "\"1e3 gb/s\""},
      {"8 cores, nan GB/s", "\"nan gb/s\""},
      {"8 cores,, 100 GB/s", "\"\""},
      {"8 cores, 100 TB", "\"100 tb\""},
      {"", "cores"},
      {"100 GB/s", "cores is missing"},
      {"8 cores", "memory is missing"},
  };
  for (const auto& [text, says] : wrong) {
    const Result<MachineText> machine = ParseMachine(text);
    ASSERT_FALSE(machine.ok()) << text;
    EXPECT_EQ(machine.status().code(), Code::kInvalid) << text;
    EXPECT_THAT(machine.status().message(), HasSubstr(says)) << text;
  }
}

TEST(PlanMachine, RatesFollowCoresClockAndChannels) {
  const MachineRates here{.stream = 40e9, .int8 = 8e12, .threads = 2};
  MachineText machine = Parsed("8 cores, 100 GB/s");
  MachineRates rates = RatesOf(machine, here, 3e9);
  EXPECT_EQ(rates.threads, 8);
  EXPECT_DOUBLE_EQ(rates.int8, 32e12);
  EXPECT_DOUBLE_EQ(rates.stream, 80e9);  // 80 % of the label, less than 8 cores draw
  machine.clock_hz = 1.5e9;
  EXPECT_DOUBLE_EQ(RatesOf(machine, here, 3e9).int8, 16e12);
  EXPECT_DOUBLE_EQ(RatesOf(machine, here, 0).int8, 32e12);  // nothing to compare with
  machine.cores = 2;
  EXPECT_DOUBLE_EQ(RatesOf(machine, here, 0).stream, 40e9);  // two cores draw no more than here
  machine = Parsed("2x32 cores, 200 GB/s");
  EXPECT_DOUBLE_EQ(RatesOf(machine, here, 0).stream, 200e9 * 0.8 * 0.9);
}

}  // namespace
}  // namespace hearth
