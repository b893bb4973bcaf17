// SPDX-License-Identifier: Apache-2.0
// Products of packed matrices: few and many rows, spills, biases, and several jobs in one launch
// with rows chosen on the device.
#include <algorithm>
#include <cstddef>

#include "cuda/blocks.h"
#include "cuda/matmul.h"
#include "cuda/supers.h"
#include "proof/check_parts.h"

namespace hearth::cuda {
namespace {

using proof::TestMatrix;

static_assert(sizeof(SpilledBlock) == sizeof(hearth::SpilledBlock) &&
              offsetof(SpilledBlock, w) == offsetof(hearth::SpilledBlock, w) &&
              kStrip == hearth::kStrip && kSuper == hearth::kSuper &&
              kPanelRows == hearth::kPanelRows);

struct ProductKernel {
  DType dtype;
  const char* names[2];     // for few rows, for many
  int64_t shared_bytes[2];  // likewise
  int strip;                // columns of activations with one scale
  int many_tiles = 4;
};
template <WeightKind kKind>
constexpr ProductKernel SuperKernel(DType dtype, const char* few, const char* many) {
  return {dtype,
          {few, many},
          {SuperSharedBytes<kKind, 1>(), SuperSharedBytes<kKind, kSuperTiles<kKind>>()},
          kSuper,
          kSuperTiles<kKind>};
}
constexpr ProductKernel kMxfp4Kernel = {
    DType::kMxfp4,
    {"hearth_mxfp4_few", "hearth_mxfp4_many"},
    {MatmulSharedBytes<Mxfp4, 1>(), MatmulSharedBytes<Mxfp4, 4>()},
    kStrip};
constexpr ProductKernel kQ8Kernel = {DType::kQ8_0,
                                     {"hearth_q8_few", "hearth_q8_many"},
                                     {MatmulSharedBytes<Q8, 1>(), MatmulSharedBytes<Q8, 4>()},
                                     kStrip};
template <WeightKind kKind>
constexpr ProductKernel BlockKernel(DType dtype, const char* name) {
  return {dtype,
          {name, name},
          {BlockFormat<kKind>::kSharedBytes, BlockFormat<kKind>::kSharedBytes},
          kStrip,
          1};
}
constexpr ProductKernel kBlockKernels[] = {
    BlockKernel<WeightKind::kQ4_0>(DType::kQ4_0, "hearth_q40"),
    BlockKernel<WeightKind::kQ4_1>(DType::kQ4_1, "hearth_q41"),
    BlockKernel<WeightKind::kQ5_0>(DType::kQ5_0, "hearth_q50"),
    BlockKernel<WeightKind::kQ5_1>(DType::kQ5_1, "hearth_q51"),
    BlockKernel<WeightKind::kIq4Nl>(DType::kIq4Nl, "hearth_iq4nl"),
};
constexpr ProductKernel kSuperKernels[] = {
    SuperKernel<WeightKind::kQ2K>(DType::kQ2_K, "hearth_q2k", "hearth_q2k"),
    SuperKernel<WeightKind::kQ3K>(DType::kQ3_K, "hearth_q3k_few", "hearth_q3k_many"),
    SuperKernel<WeightKind::kQ4K>(DType::kQ4_K, "hearth_q4k", "hearth_q4k"),
    SuperKernel<WeightKind::kQ5K>(DType::kQ5_K, "hearth_q5k", "hearth_q5k"),
    SuperKernel<WeightKind::kQ6K>(DType::kQ6_K, "hearth_q6k_few", "hearth_q6k_many"),
    SuperKernel<WeightKind::kIq4Xs>(DType::kIq4Xs, "hearth_iq4xs_few", "hearth_iq4xs_many"),
};

// A packed matrix on the device: panels, spills, where each panel's spills begin.
MatmulJob JobOf(const TestMatrix& matrix, DeviceMemory& memory) {
  const PackedMatrix& w = matrix.packed;
  MatmulJob job{};
  job.num_panels = NumPanels(w.rows);
  job.cols = w.cols;
  job.panel_bytes = w.panel_bytes;
  job.panels = memory.Copy(w.data, static_cast<size_t>(job.num_panels * w.panel_bytes));
  if (w.num_spills > 0) {
    const auto* spills = reinterpret_cast<const SpilledBlock*>(w.spills);
    job.spills = memory.Copy(spills, static_cast<size_t>(w.num_spills));
    job.spill_begin = memory.Copy(SpillBegins(w));
  }
  return job;
}

// Quantised rows of every kind, on the CPU and copied to the device.
struct Inputs {
  Inputs(int m, int cols, int strip, Rng& rng, DeviceMemory& memory) {
    const Activations& x = buffer.Shape(m, cols, strip);
    for (int t = 0; t < m; ++t) {
      ScalarKernels().quantise(RowOfKind(rng, cols, rng.Int(0, kRowKinds - 1)).data(), x, t);
    }
    device = ActRowsLike(x, memory, false);
    CopyRows(x, device);
  }
  ActBuffer buffer;
  ActRows device{};
};

std::vector<float> OnCpu(const TestMatrix& matrix, const Activations& x, const float* bias,
                         int64_t stride) {
  std::vector<float> y(static_cast<size_t>(stride * x.m), -77.0f);
  const hearth::MatmulKernel kernel =
      ScalarKernels().matmul[static_cast<size_t>(matrix.packed.kind)];
  kernel({&matrix.packed, &x, bias, y.data(), stride}, 0, NumPanels(matrix.packed.rows));
  return y;
}

std::string CheckOne(Machine& machine, const ProductKernel& kernel, int rows, int cols, int m,
                     Rng& rng) {
  const TestMatrix matrix(kernel.dtype, rows, cols, rng);
  DeviceMemory memory(machine);
  Inputs inputs(m, cols, kernel.strip, rng, memory);
  const int64_t stride = int64_t{NumPanels(rows)} * kPanelRows + 16;
  const std::vector<float> bias = rng.Normals(static_cast<int>(stride));
  const bool has_bias = rng.OneIn(2);
  const std::vector<float> want =
      OnCpu(matrix, inputs.buffer.get(), has_bias ? bias.data() : nullptr, stride);
  MatmulJob job = JobOf(matrix, memory);
  job.bias = has_bias ? memory.Copy(bias) : nullptr;
  job.y = memory.Copy(std::vector<float>(want.size(), -77.0f));
  job.y_stride = stride;
  const int many = m > kTileTokens ? 1 : 0,
            tile = many == 1 ? kernel.many_tiles * kTileTokens : kTileTokens;
  const MatmulArgs args{memory.Copy(&job, 1), inputs.device, m, nullptr, 0, 1};
  RunKernel(machine, kernel.names[many],
            {job.num_panels, 1, (m + tile - 1) / tile, kMatmulThreads, kernel.shared_bytes[many]},
            args, memory);
  const std::string wrong = FloatsDiffer("y", want.data(), job.y, want.size());
  if (wrong.empty()) return "";
  return std::string(kernel.names[many]) + " " + std::to_string(rows) + " x " +
         std::to_string(cols) + ", m " + std::to_string(m) + ", " +
         std::to_string(matrix.packed.num_spills) + " spills: " + wrong;
}

std::string CheckFormat(Machine& machine, const ProductKernel& kernel, CaseGrid grid,
                        uint64_t seed) {
  Rng rng(seed);
  struct Case {
    int rows, cols, m;
  };
  std::vector<Case> cases = {{16, 32, 1}, {20, 608, 8}, {33, 1184, 3}, {17, 96, 9}};
  if (grid >= CaseGrid::kSmall) {
    cases.insert(
        cases.end(),
        {{16, 576, 2}, {40, 2880, 1}, {5, 64, 7}, {24, 288, 16}, {18, 640, 33}, {16, 4096, 4}});
  }
  if (grid == CaseGrid::kFull) {
    for (const int m : {1, 2, 7, 8, 9, 16, 17, 64, 129}) {
      for (const int cols : {32, 544, 576, 1152, 2880}) cases.push_back({rng.Int(1, 70), cols, m});
    }
    cases.push_back({16, 32 * 18 * 17, 2});  // more items than a round holds
  }
  for (const Case& c : cases) {
    if (std::string wrong = CheckOne(machine, kernel, c.rows, c.cols, c.m, rng); !wrong.empty()) {
      return wrong;
    }
  }
  return "";
}

// Experts that find their rows in a list of choices, more of them than a tile has; `sharing`
// choices have one row of x. One expert has none.
std::string CheckOneChosen(Machine& machine, const ProductKernel& kernel, int tokens, int sharing,
                           int cols, Rng& rng) {
  constexpr int kExperts = 4;
  const int choices = tokens * sharing;
  const int64_t stride = 48;
  DeviceMemory memory(machine);
  Inputs inputs(tokens, cols, kernel.strip, rng, memory);
  std::vector<int32_t> experts;
  for (int i = 0; i < choices; ++i) experts.push_back(rng.OneIn(2) ? 3 : rng.Int(0, 1));
  std::vector<float> want(static_cast<size_t>(stride * choices), -77.0f);
  float* y = memory.Copy(want);
  std::vector<MatmulJob> jobs;
  for (int e = 0; e < kExperts; ++e) {
    const TestMatrix matrix(kernel.dtype, 17 + e, cols, rng);
    const std::vector<float> bias = rng.Normals(32);
    const std::vector<float> all = OnCpu(matrix, inputs.buffer.get(), bias.data(), stride);
    for (int i = 0; i < choices; ++i) {
      if (experts[static_cast<size_t>(i)] != e) continue;
      std::copy_n(all.begin() + i / sharing * stride, stride, want.begin() + i * stride);
    }
    jobs.push_back(JobOf(matrix, memory));
    jobs.back().bias = memory.Copy(bias);
    jobs.back().y = y;
    jobs.back().y_stride = stride;
    jobs.back().expert = e;
  }
  const MatmulArgs args{memory.Copy(jobs),    inputs.device, tokens,
                        memory.Copy(experts), choices,       sharing};
  RunKernel(machine, kernel.names[0],
            {2, kExperts, (choices + kTileTokens - 1) / kTileTokens, kMatmulThreads,
             kernel.shared_bytes[0]},
            args, memory);
  const std::string wrong = FloatsDiffer("chosen y", want.data(), y, want.size());
  return wrong.empty() ? "" : std::string(kernel.names[0]) + " " + wrong;
}

}  // namespace

std::string CheckChosen(Machine& machine, CaseGrid grid) {
  Rng rng(115);
  std::vector<const ProductKernel*> kernels = {&kMxfp4Kernel, &kQ8Kernel};
  for (const ProductKernel& kernel : kBlockKernels) kernels.push_back(&kernel);
  for (const ProductKernel& kernel : kSuperKernels) kernels.push_back(&kernel);
  for (const ProductKernel* kernel : kernels) {
    const int cols = kernel->strip == kSuper ? kSuper : 96;
    for (const int tokens : grid == CaseGrid::kTiny ? std::vector{6} : std::vector{1, 6, 50}) {
      std::string wrong = FirstOf({CheckOneChosen(machine, *kernel, tokens, 3, cols, rng),
                                   CheckOneChosen(machine, *kernel, 3 * tokens, 1, cols, rng)});
      if (!wrong.empty()) return wrong;
    }
  }
  return "";
}

std::string CheckMxfp4(Machine& machine, CaseGrid grid) {
  return CheckFormat(machine, kMxfp4Kernel, grid, 111);
}
std::string CheckQ8(Machine& machine, CaseGrid grid) {
  return CheckFormat(machine, kQ8Kernel, grid, 112);
}

// Of 608 columns the last unit has one block; 1,184 are more than a round.
std::string CheckBlocks(Machine& machine, CaseGrid grid) {
  uint64_t seed = 116;
  for (const ProductKernel& kernel : kBlockKernels) {
    std::string wrong = CheckFormat(machine, kernel, grid, seed++);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

// More superblocks than a round holds, 8 for few rows and 4 for many.
std::string CheckSupers(Machine& machine, CaseGrid grid) {
  Rng rng(114);
  struct Case {
    int rows, units, m;
  };
  std::vector<Case> cases = {{20, 5, 3}, {17, 5, 9}};
  if (grid >= CaseGrid::kSmall) cases.insert(cases.end(), {{16, 9, 1}, {33, 1, 8}, {5, 3, 33}});
  if (grid == CaseGrid::kFull) {
    for (const int m : {1, 2, 7, 8, 9, 16, 17, 64, 129}) {
      for (const int units : {1, 2, 4, 11}) cases.push_back({rng.Int(1, 70), units, m});
    }
  }
  for (const ProductKernel& kernel : kSuperKernels) {
    for (const Case& c : cases) {
      std::string wrong = CheckOne(machine, kernel, c.rows, c.units * kSuper, c.m, rng);
      if (!wrong.empty()) return wrong;
    }
  }
  return "";
}

// Experts of different sizes in one launch; each takes the rows that a range on the device gives
// it, one of them none.
std::string CheckGrouped(Machine& machine, CaseGrid grid) {
  Rng rng(113);
  const std::vector<int32_t> begin = {0, 3, 3, 12, 13};
  const int m = begin.back(), cols = grid == CaseGrid::kTiny ? 96 : 640;
  const int64_t stride = 80;
  DeviceMemory memory(machine);
  Inputs inputs(m, cols, kStrip, rng, memory);
  const int32_t* ranges = memory.Copy(begin);
  std::vector<float> want(static_cast<size_t>(stride * m), -77.0f);
  float* y = memory.Copy(want);
  std::vector<MatmulJob> jobs;
  for (size_t e = 0; e + 1 < begin.size(); ++e) {
    const int rows = static_cast<int>(e) * 16 + 17, count = begin[e + 1] - begin[e];
    const TestMatrix matrix(DType::kMxfp4, rows, cols, rng);
    const Activations x = inputs.buffer.Part(begin[e], count);
    const std::vector<float> part = OnCpu(matrix, x, nullptr, stride);
    std::copy(part.begin(), part.end(), want.begin() + begin[e] * stride);
    jobs.push_back(JobOf(matrix, memory));
    jobs.back().y = y;
    jobs.back().y_stride = stride;
    jobs.back().range = ranges + e;
  }
  const MatmulArgs args{memory.Copy(jobs), inputs.device, m, nullptr, 0, 1};
  RunKernel(machine, kMxfp4Kernel.names[1],
            {5, static_cast<int>(jobs.size()), 1, kMatmulThreads, kMxfp4Kernel.shared_bytes[1]},
            args, memory);
  return FloatsDiffer("grouped y", want.data(), y, want.size());
}

}  // namespace hearth::cuda
