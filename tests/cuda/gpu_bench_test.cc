// SPDX-License-Identifier: Apache-2.0
// `hearth gpu bench` and `gpu tune` on the mock driver: every kernel that they time runs within its
// memory, and a tuning changes launches and no bits. Times are the emulator's and mean nothing.
#include <gtest/gtest.h>

#include <map>

#include "gpu/gpu_speed.h"
#include "graph_cases.h"

namespace hearth::cuda {
namespace {

std::unique_ptr<Device> OpenMock() {
  Result<std::unique_ptr<Device>> device = Device::Open(0, std::as_bytes(std::span(kSourceImage)));
  EXPECT_TRUE(device.ok()) << device.status().message();
  return *std::move(device);
}

TEST(CudaBench, TimesCopiesProductsAndAttention) {
  const std::unique_ptr<Device> device = OpenMock();
  std::map<std::string, int> rows;
  const Status status = RunGpuBench(*device, kQuickSizes, [&](const BenchRow& row) {
    ++rows[row.what];
    EXPECT_GT(row.seconds, 0) << row.what;
    EXPECT_GT(row.bytes, 0) << row.what;
    EXPECT_EQ(row.products > 0, row.rows > 0) << row.what;
    if (row.what == "hearth_q8_few" && row.rows == 1) {
      // 4 panels of 8 blocks of 32 scales and 512 codes, 64 results, hi and lo of 256 columns.
      EXPECT_EQ(row.bytes, 4 * (8 * 32 + 8 * 512) + 4 * 64 + 2 * 256);
      EXPECT_EQ(row.products, 4 * 64 * 256);
    }
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(rows["to the device"] + rows["from the device"] + rows["fill"], 3);
  EXPECT_EQ(rows["hearth_mxfp4_few"], 2);
  EXPECT_EQ(rows["hearth_mxfp4_many"], 1);
  EXPECT_EQ(rows["hearth_q4k"], 3);
  EXPECT_EQ(rows["hearth_flash_64"], 1);
  EXPECT_EQ(rows.size(), 3u + 3 + 5 + 2 * 5 + 1);
}

TEST(CudaBench, TellsADriverThatRefuses) {
  const MockSettings settings("launch=2");
  const std::unique_ptr<Device> device = OpenMock();
  const Status status = RunGpuBench(*device, kQuickSizes, [](const BenchRow&) {});
  EXPECT_EQ(status.code(), Code::kIo) << status.message();
}

TEST(CudaBench, TunesByWhatIsFasterFromTheSmallestOn) {
  const std::unique_ptr<Device> device = OpenMock();
  std::map<WeightKind, int> want;
  std::map<WeightKind, bool> is_over;
  Result<Tuning> tuning = TuneGpu(*device, kQuickSizes, [&](const TuneRow& row) {
    want.try_emplace(row.kind, kTileTokens);
    is_over[row.kind] |= row.few_seconds >= row.many_seconds;
    if (!is_over[row.kind]) want[row.kind] = row.rows;
  });
  ASSERT_TRUE(tuning.ok()) << tuning.status().message();
  EXPECT_EQ(want.size(), 5u);
  for (const auto& [kind, rows] : want) {
    EXPECT_EQ(tuning->few_up_to[static_cast<size_t>(kind)], rows) << NameOf(kind);
  }
}

// The backend reads the file of the user's cache: with another tuning a prompt of 20 tokens has the
// same bits by other kernels.
TEST(CudaBench, ATuningChangesKernelsAndNoBits) {
  const testing::TempDir dir;
  setenv("XDG_CACHE_HOME", dir.Path("cache").c_str(), 1);
  Tuning tuning;
  tuning.few_up_to.fill(64);
  const std::unique_ptr<Device> device = OpenMock();
  const std::string key =
      TuningKey(device->facts(), *DriverVersion(), std::as_bytes(std::span(kSourceImage)));
  const int lengths[] = {20};
  const long before = MockCount("hearth_mxfp4_many");
  CompareModel(TinyOss(), lengths, {20}, {});
  const long many = MockCount("hearth_mxfp4_many") - before;
  EXPECT_GT(many, 0);
  ASSERT_TRUE(WriteTuning(TuningPath(ProcessEnvironment()), key, tuning).ok());
  CompareModel(TinyOss(), lengths, {20}, {});
  EXPECT_EQ(MockCount("hearth_mxfp4_many") - before, many);
  unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace hearth::cuda
