// SPDX-License-Identifier: Apache-2.0
// Speed by construction: what products ask of memory and of the schedulers, counted by the
// interpreter. Counts of PTX instructions, not measured time.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "cuda/args.h"
#include "cuda/matmul.h"
#include "ptx_run.h"

namespace hearth::cuda {
namespace {

constexpr int kCols = 2880, kPanels = 3;
constexpr const char* kArchs[] = {"75", "80", "89", "120"};

struct Counted {
  const char* kernel;
  int rows, cols;
  int64_t panel_bytes, shared_bytes;
};
constexpr int64_t kBlocks = kCols / kQuantBlock;
// LineUp of the parts before, as Mxfp4::NibblesAt and Q8::CodesAt have it.
constexpr int64_t kMxfp4Bytes =
    LineUp(5 * kPanelRows) + LineUp(kBlocks * kPanelRows) + kBlocks * 256;
constexpr int64_t kQ8Bytes = LineUp(kBlocks * 32) + kBlocks * 512;
constexpr Counted kCounted[] = {
    {"hearth_mxfp4_few", 1, kCols, kMxfp4Bytes, MatmulSharedBytes<Mxfp4, 1>()},
    {"hearth_q8_few", 1, kCols, kQ8Bytes, MatmulSharedBytes<Q8, 1>()},
};

// Random panels without spills.
PtxCounters CountProduct(const std::string& text, const Counted& counted) {
  PtxMachine machine("counters", text);
  DeviceMemory memory;
  std::vector<uint8_t> panels(static_cast<size_t>(counted.panel_bytes * kPanels));
  for (size_t i = 0; i < panels.size(); ++i) {
    panels[i] = static_cast<uint8_t>(i * 2654435761u >> 13);
  }
  const auto rows = static_cast<size_t>(counted.rows), cols = static_cast<size_t>(counted.cols);
  MatmulJob job{};
  job.panels = memory.Copy(panels);
  job.y = memory.Make<float>(rows * kPanels * kPanelRows);
  job.panel_bytes = counted.panel_bytes;
  job.y_stride = kPanels * kPanelRows;
  job.num_panels = kPanels;
  job.cols = counted.cols;
  MatmulArgs args{};
  args.jobs = memory.Copy(&job, 1);
  args.m = counted.rows;
  args.x.hi = memory.Make<int8_t>(rows * cols);
  args.x.lo = memory.Make<int8_t>(rows * cols);
  args.x.num_strips = 11;
  args.x.scale = memory.Copy(std::vector<float>(rows * 11, 1.0f));
  args.x.cols = args.x.stride = counted.cols;
  machine.Run(counted.kernel, {kPanels, 1, 1, kMatmulThreads, counted.shared_bytes}, &args,
              sizeof args, memory);
  return machine.counters().at(counted.kernel);
}

std::string PtxOf(const char* arch) {
  std::ifstream file(std::string(HEARTH_PTX_DIR) + "/sm_" + arch + ".ptx");
  return {std::istreambuf_iterator<char>(file), {}};
}

// What costs.txt has for a kernel, by architecture.
std::vector<double> CostsOf(const std::string& kernel) {
  std::ifstream file(std::string(HEARTH_SOURCE_DIR) + "/src/cuda/costs.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word, name;
    if (!(words >> word >> name) || word != "instructions" || name != kernel) continue;
    return {std::istream_iterator<double>(words), {}};
  }
  return {};
}

TEST(CudaCounters, WeightsStreamInWholeSectorsAtTheCostsThatAreKnown) {
  for (const Counted& counted : kCounted) {
    const std::vector<double> known = CostsOf(counted.kernel);
    ASSERT_EQ(known.size(), std::size(kArchs)) << counted.kernel;
    for (size_t i = 0; i < known.size(); ++i) {
      const std::string text = PtxOf(kArchs[i]);
      if (text.empty()) {
        GTEST_SKIP() << "SKIPPED LOUDLY: no PTX, nvcc is missing (./dev setup cuda)";
      }
      const PtxCounters c = CountProduct(text, counted);
      const double streamed =
          static_cast<double>(c.stream_bytes) / (32.0 * static_cast<double>(c.stream_sectors));
      const double passes =
          static_cast<double>(c.wavefronts) / static_cast<double>(c.ideal_wavefronts);
      const double each =
          static_cast<double>(c.instructions) / static_cast<double>(counted.panel_bytes * kPanels);
      std::printf("  sm_%s %s: %.3f instructions of a warp per byte of weights\n", kArchs[i],
                  counted.kernel, each);
      EXPECT_GE(streamed, 0.95) << counted.kernel << " sm_" << kArchs[i];
      EXPECT_LE(passes, 1.1) << counted.kernel << " sm_" << kArchs[i];
      EXPECT_NEAR(each, known[i], 0.02 * known[i]) << "src/cuda/costs.txt is out of date";
    }
  }
}

}  // namespace
}  // namespace hearth::cuda
