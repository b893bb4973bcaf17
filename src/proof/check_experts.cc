// SPDX-License-Identifier: Apache-2.0
// Products of float weights, rows of the embedding, and what stands around the products of experts.
#include <algorithm>
#include <numeric>

#include "cpu/pack.h"
#include "cpu/panels.h"
#include "proof/check_parts.h"

namespace hearth::cuda {
namespace {

using proof::TestMatrix;

struct FloatKernel {
  DType dtype;
  const char* name;
};
constexpr FloatKernel kFloatKernels[] = {
    {DType::kF32, "hearth_f32"}, {DType::kF16, "hearth_f16"}, {DType::kBf16, "hearth_bf16"}};

// Two matrices in one launch; the second takes some of the rows.
std::string CheckOneFloat(Machine& machine, const FloatKernel& kernel, int rows, int cols, int m,
                          Rng& rng) {
  const TestMatrix whole(kernel.dtype, rows, cols, rng), part(kernel.dtype, rows + 16, cols, rng);
  const std::vector<int32_t> range = {m / 3, m};
  const int64_t x_stride = cols + 8, y_stride = (rows + 31) / 16 * 16;
  DeviceMemory memory(machine);
  const std::vector<float> x = RowsOfKinds(rng, m, static_cast<int>(x_stride), 0);
  const std::vector<float> bias = rng.Normals(static_cast<int>(y_stride));
  std::vector<MatmulJob> jobs;
  std::vector<std::vector<float>> want;
  for (const TestMatrix* matrix : {&whole, &part}) {
    const PackedMatrix& w = matrix->packed;
    const int first = matrix == &part ? range[0] : 0;
    std::vector<float>& y = want.emplace_back(static_cast<size_t>(y_stride * m), -77.0f);
    MatmulJob& job = jobs.emplace_back();
    job.num_panels = NumPanels(w.rows);
    job.cols = cols;
    job.panel_bytes = w.panel_bytes;
    job.panels = memory.Copy(w.data, static_cast<size_t>(job.num_panels * w.panel_bytes));
    job.bias = matrix == &part ? memory.Copy(bias) : nullptr;
    job.y = memory.Copy(y);
    job.y_stride = y_stride;
    job.range = matrix == &part ? memory.Copy(range) : nullptr;
    Activations count{};
    count.m = m - first;
    hearth::MatmulArgs cpu{&w, &count, job.bias == nullptr ? nullptr : bias.data(),
                           y.data() + first * y_stride, y_stride};
    cpu.xf = x.data() + first * x_stride;
    cpu.xf_stride = x_stride;
    ScalarKernels().matmul[static_cast<size_t>(w.kind)](cpu, 0, job.num_panels);
  }
  const FloatMatmulArgs args{memory.Copy(jobs), memory.Copy(x), x_stride, m};
  RunKernel(machine, kernel.name,
            {jobs[1].num_panels, 2, (m + kTileTokens - 1) / kTileTokens, kFloatThreads, 0}, args,
            memory);
  const std::string wrong = FirstOf({FloatsDiffer("y", want[0].data(), jobs[0].y, want[0].size()),
                                     FloatsDiffer("y", want[1].data(), jobs[1].y, want[1].size())});
  if (wrong.empty()) return "";
  return std::string(kernel.name) + " " + std::to_string(rows) + " x " + std::to_string(cols) +
         ", m " + std::to_string(m) + ": " + wrong;
}

std::string CheckOneEmbed(Machine& machine, DType dtype, WeightKind kind, int cols, Rng& rng) {
  const int rows = 45;
  const TestMatrix matrix(dtype, rows, cols, rng);
  const PackedMatrix& w = matrix.packed;
  std::vector<int32_t> tokens = {44, 0, 17, 17, 31};
  DeviceMemory memory(machine);
  EmbedArgs args{};
  args.tokens = memory.Copy(tokens);
  args.panels = memory.Copy(w.data, static_cast<size_t>(NumPanels(rows) * w.panel_bytes));
  if (w.num_spills > 0) {
    args.spills = memory.Copy(reinterpret_cast<const SpilledBlock*>(w.spills),
                              static_cast<size_t>(w.num_spills));
    args.spill_begin = memory.Copy(SpillBegins(w));
  }
  args.x = memory.Make<float>(tokens.size() * static_cast<size_t>(cols));
  args.panel_bytes = w.panel_bytes;
  args.cols = cols;
  args.kind = kind;
  RunKernel(machine, "hearth_embed", {static_cast<int>(tokens.size()), 1, 1, kRowThreads, 0}, args,
            memory);
  std::vector<float> want(tokens.size() * static_cast<size_t>(cols));
  for (size_t t = 0; t < tokens.size(); ++t) {
    UnpackRow(w, tokens[t], &want[t * static_cast<size_t>(cols)]);
  }
  const std::string wrong = FloatsDiffer("row", want.data(), args.x, want.size());
  return wrong.empty() ? "" : "embedding of " + std::to_string(cols) + ": " + wrong;
}

// Choices of experts, sorted the plain way.
struct Sorted {
  Sorted(int tokens, int num_experts, int active, Rng& rng)
      : choice_of(static_cast<size_t>(tokens * active)),
        slot_of(choice_of.size()),
        begin(static_cast<size_t>(num_experts) + 1) {
    for (size_t i = 0; i < choice_of.size(); ++i) {
      experts.push_back(rng.Int(0, num_experts - 1) / 2 * 2 % num_experts);
    }
    std::iota(choice_of.begin(), choice_of.end(), 0);
    std::stable_sort(choice_of.begin(), choice_of.end(), [&](int a, int b) {
      return experts[static_cast<size_t>(a)] < experts[static_cast<size_t>(b)];
    });
    for (size_t s = 0; s < slot_of.size(); ++s) {
      slot_of[static_cast<size_t>(choice_of[s])] = static_cast<int32_t>(s);
    }
    for (const int e : experts) ++begin[static_cast<size_t>(e) + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
  }
  std::vector<int32_t> experts, choice_of, slot_of, begin;
};

constexpr int kWidth = 72;
constexpr int64_t kStride = 80;

std::string CheckSort(Machine& machine, const Sorted& want, DeviceMemory& memory, SortArgs& sort) {
  sort = {memory.Copy(want.experts),
          memory.Make<int32_t>(want.begin.size()),
          memory.Make<int32_t>(want.slot_of.size()),
          memory.Make<int32_t>(want.slot_of.size()),
          static_cast<int32_t>(want.experts.size()),
          static_cast<int32_t>(want.begin.size()) - 1};
  RunKernel(machine, "hearth_sort", {1, 1, 1, kRowThreads, 4 * (sort.num_experts + 1)}, sort,
            memory);
  return FirstOf(
      {BytesDiffer("begin", want.begin.data(), sort.begin, want.begin.size()),
       BytesDiffer("slot", want.slot_of.data(), sort.slot_of, want.slot_of.size()),
       BytesDiffer("choice", want.choice_of.data(), sort.choice_of, want.choice_of.size())});
}

std::string CheckGather(Machine& machine, const Sorted& sorted, int active, DeviceMemory& memory,
                        const SortArgs& sort, Rng& rng) {
  const auto slots = static_cast<int>(sorted.experts.size()), tokens = slots / active;
  const std::vector<float> h = rng.Normals(tokens * kWidth);
  ActBuffer from, to, super_from, super_to;
  const Activations& x = from.Shape(tokens, kWidth);
  const Activations& gathered = to.Shape(slots, kWidth);
  const Activations& supers = super_from.Shape(tokens, kWidth, kSuper);
  const Activations& super_gathered = super_to.Shape(slots, kWidth, kSuper);
  for (int t = 0; t < tokens; ++t) {
    ScalarKernels().quantise(&h[static_cast<size_t>(t * kWidth)], x, t);
    ScalarKernels().quantise(&h[static_cast<size_t>(t * kWidth)], supers, t);
  }
  std::vector<float> rows(static_cast<size_t>(slots * kStride), -77.0f);
  GatherArgs gather{};
  gather.choice_of = sort.choice_of;
  gather.from = ActRowsLike(x, memory, false);
  gather.to = ActRowsLike(gathered, memory, false);
  gather.super_from = ActRowsLike(supers, memory, false);
  gather.super_to = ActRowsLike(super_gathered, memory, false);
  gather.from_x = memory.Copy(h);
  gather.to_x = memory.Copy(rows);
  gather.to_stride = kStride;
  gather.active = active;
  gather.d = kWidth;
  CopyRows(x, gather.from);
  CopyRows(supers, gather.super_from);
  RunKernel(machine, "hearth_gather", {slots, 1, 1, kRowThreads, 0}, gather, memory);
  for (int s = 0; s < slots; ++s) {
    const int token = sorted.choice_of[static_cast<size_t>(s)] / active;
    to.CopyRow(s, from, token);
    super_to.CopyRow(s, super_from, token);
    std::copy_n(&h[static_cast<size_t>(token * kWidth)], kWidth,
                &rows[static_cast<size_t>(s * kStride)]);
  }
  return FirstOf({RowsDiffer(gathered, gather.to), RowsDiffer(super_gathered, gather.super_to),
                  FloatsDiffer("gathered", rows.data(), gather.to_x, rows.size())});
}

std::string CheckOneRouting(Machine& machine, int tokens, int num_experts, int active, Rng& rng) {
  const Sorted sorted(tokens, num_experts, active, rng);
  DeviceMemory memory(machine);
  SortArgs sort{};
  std::string wrong = CheckSort(machine, sorted, memory, sort);
  if (wrong.empty()) wrong = CheckGather(machine, sorted, active, memory, sort, rng);
  return wrong;
}

}  // namespace

std::string CheckFloats(Machine& machine, CaseGrid grid) {
  Rng rng(131);
  for (const FloatKernel& kernel : kFloatKernels) {
    for (const int m : grid == CaseGrid::kFull ? std::vector{1, 3, 8, 9, 17} : std::vector{1, 9}) {
      for (const int cols : grid == CaseGrid::kTiny ? std::vector{96} : std::vector{32, 288, 640}) {
        std::string wrong = CheckOneFloat(machine, kernel, rng.Int(1, 40), cols, m, rng);
        if (!wrong.empty()) return wrong;
      }
    }
  }
  return "";
}

std::string CheckEmbed(Machine& machine, CaseGrid grid) {
  Rng rng(132);
  constexpr std::pair<DType, WeightKind> kKinds[] = {
      {DType::kMxfp4, WeightKind::kMxfp4}, {DType::kQ8_0, WeightKind::kQ8},
      {DType::kQ4_0, WeightKind::kQ4_0},   {DType::kQ4_1, WeightKind::kQ4_1},
      {DType::kQ5_0, WeightKind::kQ5_0},   {DType::kQ5_1, WeightKind::kQ5_1},
      {DType::kIq4Nl, WeightKind::kIq4Nl}, {DType::kQ2_K, WeightKind::kQ2K},
      {DType::kQ3_K, WeightKind::kQ3K},    {DType::kQ4_K, WeightKind::kQ4K},
      {DType::kQ5_K, WeightKind::kQ5K},    {DType::kQ6_K, WeightKind::kQ6K},
      {DType::kIq4Xs, WeightKind::kIq4Xs}, {DType::kF32, WeightKind::kF32},
      {DType::kF16, WeightKind::kF16},     {DType::kBf16, WeightKind::kBf16}};
  for (const auto& [dtype, kind] : kKinds) {
    const bool has_supers = kind >= WeightKind::kQ2K && kind <= WeightKind::kIq4Xs;
    for (int cols : grid == CaseGrid::kTiny ? std::vector{608} : std::vector{32, 608, 1184}) {
      if (has_supers) cols = (cols + kSuper - 1) / kSuper * kSuper;
      std::string wrong = CheckOneEmbed(machine, dtype, kind, cols, rng);
      if (!wrong.empty()) return wrong;
    }
  }
  return "";
}

std::string CheckExperts(Machine& machine, CaseGrid grid) {
  Rng rng(133);
  for (const int tokens : grid == CaseGrid::kFull ? std::vector{1, 7, 64} : std::vector{1, 5}) {
    for (const int n : grid == CaseGrid::kTiny ? std::vector{4} : std::vector{4, 32, 300}) {
      std::string wrong = CheckOneRouting(machine, tokens, n, 3, rng);
      if (!wrong.empty()) return std::to_string(n) + " experts: " + wrong;
    }
  }
  return "";
}

}  // namespace hearth::cuda
