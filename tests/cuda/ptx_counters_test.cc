// SPDX-License-Identifier: Apache-2.0
// Speed by construction: what one token's product asks of memory and of the schedulers, counted by
// the interpreter. Counts of PTX instructions, not measured time.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "cuda/args.h"
#include "cuda/matmul.h"
#include "ptx_run.h"

namespace hearth::cuda {
namespace {

constexpr int kCols = 2880, kPanels = 3;

// Random panels without spills, one row of activations.
PtxCounters CountProduct(PtxMachine& machine, const char* kernel, int64_t panel_bytes,
                         int64_t shared_bytes) {
  DeviceMemory memory;
  std::vector<uint8_t> panels(static_cast<size_t>(panel_bytes * kPanels));
  for (size_t i = 0; i < panels.size(); ++i)
    panels[i] = static_cast<uint8_t>(i * 2654435761u >> 13);
  MatmulJob job{};
  job.panels = memory.Copy(panels);
  job.y = memory.Make<float>(kPanels * kPanelRows);
  job.panel_bytes = panel_bytes;
  job.y_stride = kPanels * kPanelRows;
  job.num_panels = kPanels;
  job.cols = kCols;
  MatmulArgs args{};
  args.jobs = memory.Copy(&job, 1);
  args.m = 1;
  args.x.hi = memory.Make<int8_t>(kCols);
  args.x.lo = memory.Make<int8_t>(kCols);
  args.x.scale = memory.Copy(std::vector<float>(5, 1.0f));
  args.x.cols = args.x.stride = kCols;
  args.x.num_strips = 5;
  machine.Run(kernel, {kPanels, 1, 1, kMatmulThreads, shared_bytes}, &args, sizeof args, memory);
  return machine.counters().at(kernel);
}

// `most_instructions` is what there is now: a kernel must not get worse unnoticed.
void Judge(const char* arch, const char* kernel, const PtxCounters& c, int64_t weight_bytes,
           double most_instructions) {
  const auto share = [](int64_t bytes, int64_t sectors) {
    return static_cast<double>(bytes) / (32.0 * static_cast<double>(sectors));
  };
  const double streamed = share(c.stream_bytes, c.stream_sectors);
  const double passes = static_cast<double>(c.wavefronts) / static_cast<double>(c.ideal_wavefronts);
  const double each = static_cast<double>(c.instructions) / static_cast<double>(weight_bytes);
  std::printf(
      "  sm_%s %s: sectors used: weights %.1f %%, all loads %.1f %%; %.2f wavefronts per ideal; "
      "%.3f instructions of a warp per byte of weights\n",
      arch, kernel, 100 * streamed, 100 * share(c.load_bytes, c.load_sectors), passes, each);
  EXPECT_GE(streamed, 0.95) << kernel;
  EXPECT_LE(passes, 1.1) << kernel;
  EXPECT_LE(each, most_instructions) << kernel;
}

class CudaCounters : public ::testing::TestWithParam<const char*> {};

TEST_P(CudaCounters, WeightsStreamInWholeSectors) {
  std::ifstream file(std::string(HEARTH_PTX_DIR) + "/sm_" + GetParam() + ".ptx");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty()) GTEST_SKIP() << "SKIPPED LOUDLY: no PTX, nvcc is missing (./dev setup cuda)";
  PtxMachine machine(GetParam(), text);
  const int64_t blocks = kCols / kQuantBlock;
  const int64_t mxfp4 = Mxfp4::NibblesAt(kCols) + blocks * 256,
                q8 = Q8::CodesAt(kCols) + blocks * 512;
  Judge(GetParam(), "hearth_mxfp4_few",
        CountProduct(machine, "hearth_mxfp4_few", mxfp4, MatmulSharedBytes<Mxfp4, 1>()),
        mxfp4 * kPanels, 0.6);
  Judge(GetParam(), "hearth_q8_few",
        CountProduct(machine, "hearth_q8_few", q8, MatmulSharedBytes<Q8, 1>()), q8 * kPanels, 0.32);
}

INSTANTIATE_TEST_SUITE_P(All, CudaCounters, ::testing::Values("75", "80", "89", "120"));

}  // namespace
}  // namespace hearth::cuda
