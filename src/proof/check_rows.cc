// SPDX-License-Identifier: Apache-2.0
// Kernels that take a row each: norm, residual and quantising, the gated activation, the router.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "cpu/panels.h"
#include "cuda/route.h"
#include "proof/check_parts.h"

namespace hearth::cuda {
namespace {

struct NormCase {
  int rows, d;
  bool adds, norms, keeps_h, has_sums, has_supers;
};

std::string CheckOneNorm(Machine& machine, const NormCase& c, Rng& rng) {
  const KernelTable& cpu = ScalarKernels();
  const auto d = static_cast<size_t>(c.d), count = d * static_cast<size_t>(c.rows);
  const int64_t add_stride = c.d + 16;
  std::vector<float> x = RowsOfKinds(rng, c.rows, c.d, rng.Int(0, kRowKinds - 1));
  const std::vector<float> add = rng.Normals(static_cast<int>(add_stride) * c.rows);
  const std::vector<float> gain = rng.Normals(c.d);
  DeviceMemory memory(machine);
  NormArgs args{};
  args.x = memory.Copy(x);
  args.add = c.adds ? memory.Copy(add) : nullptr;
  args.gain = c.norms ? memory.Copy(gain) : nullptr;
  args.h = c.keeps_h ? memory.Make<float>(count) : nullptr;
  args.add_stride = add_stride;
  args.d = c.d;
  args.eps = 1e-5f;
  ActBuffer buffer, super_buffer;
  const Activations& want = buffer.Shape(c.rows, c.d);
  const Activations& supers = super_buffer.Shape(c.rows, c.d, kSuper);
  args.act = ActRowsLike(want, memory, c.has_sums);
  if (c.has_supers) args.supers = ActRowsLike(supers, memory, c.has_sums);
  RunKernel(machine, "hearth_norm", {c.rows, 1, 1, kRowThreads, 4 * (c.d + 1)}, args, memory);
  std::vector<float> h(count);
  for (int t = 0; t < c.rows; ++t) {
    float* row = x.data() + static_cast<size_t>(t) * d;
    float* h_row = h.data() + static_cast<size_t>(t) * d;
    if (c.adds) cpu.add_scaled(add.data() + t * add_stride, 1.0f, c.d, row);
    std::copy_n(row, d, h_row);
    if (c.norms) cpu.rms_norm(row, gain.data(), args.eps, c.d, h_row);
    cpu.quantise(h_row, want, t);
    cpu.quantise(h_row, supers, t);
  }
  const std::string wrong =
      FirstOf({FloatsDiffer("x", x.data(), args.x, count),
               c.keeps_h && c.norms ? FloatsDiffer("h", h.data(), args.h, count) : "",
               RowsDiffer(want, args.act), c.has_supers ? RowsDiffer(supers, args.supers) : ""});
  if (wrong.empty()) return "";
  return "norm of " + std::to_string(c.rows) + " x " + std::to_string(c.d) + ": " + wrong;
}

// Norms of some rows, in an order of their own; the others keep their values.
std::string CheckChosenRows(Machine& machine, Rng& rng) {
  const KernelTable& cpu = ScalarKernels();
  constexpr int kWidth = 96;
  std::vector<float> x = RowsOfKinds(rng, 6, kWidth, 0);
  const std::vector<float> add = rng.Normals(6 * kWidth), gain = rng.Normals(kWidth);
  const std::vector<int32_t> rows = {4, 0, 3};
  DeviceMemory memory(machine);
  ActBuffer buffer;
  const Activations& want = buffer.Shape(3, kWidth);
  NormArgs args{};
  args.x = memory.Copy(x);
  args.add = memory.Copy(add);
  args.gain = memory.Copy(gain);
  args.act = ActRowsLike(want, memory, false);
  args.h = memory.Make<float>(3 * kWidth);
  args.rows = memory.Copy(rows);
  args.add_stride = kWidth;
  args.d = kWidth;
  args.eps = 1e-5f;
  RunKernel(machine, "hearth_norm", {3, 1, 1, kRowThreads, 4 * (kWidth + 1)}, args, memory);
  std::vector<float> h(3 * kWidth);
  for (int i = 0; i < 3; ++i) {
    const int64_t at = int64_t{rows[static_cast<size_t>(i)]} * kWidth;
    cpu.add_scaled(add.data() + at, 1.0f, kWidth, x.data() + at);
    cpu.rms_norm(x.data() + at, gain.data(), args.eps, kWidth, h.data() + i * kWidth);
    cpu.quantise(h.data() + i * kWidth, want, i);
  }
  const std::string wrong =
      FirstOf({FloatsDiffer("x", x.data(), args.x, x.size()),
               FloatsDiffer("h", h.data(), args.h, h.size()), RowsDiffer(want, args.act)});
  return wrong.empty() ? "" : "norm of chosen rows: " + wrong;
}

// What experts gave is added in the order of choice: each row's side by side, or in slots.
std::string CheckExpertsAdded(Machine& machine, bool has_slots, Rng& rng) {
  const KernelTable& cpu = ScalarKernels();
  constexpr int kRows = 5, kActive = 3, kWidth = 96, kStride = 112;
  std::vector<float> x = RowsOfKinds(rng, kRows, kWidth, 0);
  const std::vector<float> add = rng.Normals(kRows * kActive * kStride), gain = rng.Normals(kWidth),
                           weights = rng.Normals(kRows * kActive);
  std::vector<int32_t> slots(kRows * kActive);
  for (size_t i = 0; i < slots.size(); ++i) {
    slots[i] = static_cast<int32_t>(has_slots ? (i * 7 + 3) % slots.size() : i);
  }
  DeviceMemory memory(machine);
  ActBuffer buffer;
  const Activations& want = buffer.Shape(kRows, kWidth);
  NormArgs args{};
  args.x = memory.Copy(x);
  args.add = memory.Copy(add);
  args.weights = memory.Copy(weights);
  args.slot_of = has_slots ? memory.Copy(slots) : nullptr;
  args.gain = memory.Copy(gain);
  args.act = ActRowsLike(want, memory, false);
  args.add_stride = kStride;
  args.d = kWidth;
  args.active = kActive;
  args.eps = 1e-5f;
  RunKernel(machine, "hearth_norm", {kRows, 1, 1, kRowThreads, 4 * (kWidth + 1)}, args, memory);
  for (int t = 0; t < kRows; ++t) {
    float* row = &x[static_cast<size_t>(t * kWidth)];
    std::vector<float> total(kWidth, 0.0f), h(kWidth);
    for (int i = 0; i < kActive; ++i) {
      const auto choice = static_cast<size_t>(t * kActive + i);
      cpu.add_scaled(&add[static_cast<size_t>(slots[choice] * kStride)], weights[choice], kWidth,
                     total.data());
    }
    cpu.add_scaled(total.data(), 1.0f, kWidth, row);
    cpu.rms_norm(row, gain.data(), args.eps, kWidth, h.data());
    cpu.quantise(h.data(), want, t);
  }
  const std::string wrong =
      FirstOf({FloatsDiffer("x", x.data(), args.x, x.size()), RowsDiffer(want, args.act)});
  return wrong.empty() ? "" : "norm behind experts: " + wrong;
}

// What Forward::Route does, in its own words.
void RouteOnCpu(float* row, int n, int active, bool softmax_first, bool renormalise, int* experts,
                float* weights) {
  const KernelTable& cpu = ScalarKernels();
  if (softmax_first) cpu.softmax(row, n);
  std::vector<int> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  const auto key = [row](int e) { return row[e] == row[e] ? row[e] : -INFINITY; };
  std::partial_sort(order.begin(), order.begin() + active, order.end(),
                    [&](int a, int b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
  for (int i = 0; i < active; ++i) {
    experts[i] = order[static_cast<size_t>(i)];
    weights[i] = row[experts[i]];
  }
  if (!softmax_first) {
    cpu.softmax(weights, active);
  } else if (renormalise) {
    const float sum = std::accumulate(weights, weights + active, 0.0f);
    for (int i = 0; i < active; ++i) weights[i] /= sum;
  }
}

std::string CheckOneRoute(Machine& machine, int tokens, int n, int active, int mode, Rng& rng) {
  const int stride = (n + 15) / 16 * 16;
  const bool softmax_first = mode > 0, renormalise = mode == 2;
  std::vector<float> logits = rng.Normals(stride * tokens, 3.0f);
  for (float& logit : logits) {
    if (rng.OneIn(8)) logit = 1.5f;  // ties
    if (rng.OneIn(60)) logit = rng.OneIn(2) ? -0.0f : 0.0f;
    if (rng.OneIn(90)) logit = rng.OneIn(2) ? std::nanf("") : -INFINITY;
  }
  DeviceMemory memory(machine);
  const auto choices = static_cast<size_t>(tokens * active);
  RouteArgs args{};
  args.logits = memory.Copy(logits);
  args.experts = memory.Make<int32_t>(choices);
  args.weights = memory.Make<float>(choices);
  args.stride = stride;
  args.num_experts = n;
  args.active = active;
  args.softmax_first = softmax_first ? 1 : 0;
  args.renormalise = renormalise ? 1 : 0;
  RunKernel(machine, "hearth_route", {tokens, 1, 1, 32, 0}, args, memory);
  std::vector<int> experts(choices);
  std::vector<float> weights(choices);
  for (int t = 0; t < tokens; ++t) {
    RouteOnCpu(&logits[static_cast<size_t>(t * stride)], n, active, softmax_first, renormalise,
               &experts[static_cast<size_t>(t * active)],
               &weights[static_cast<size_t>(t * active)]);
  }
  const std::string wrong =
      FirstOf({BytesDiffer("expert", experts.data(), args.experts, choices),
               FloatsDiffer("weight", weights.data(), args.weights, choices)});
  if (wrong.empty()) return "";
  return std::to_string(active) + " of " + std::to_string(n) + " experts: " + wrong;
}

// One row of each kind through norm, the router's product and the choice.
std::string CheckOneNormRoute(Machine& machine, DType dtype, WeightKind kind, int d, int n,
                              int mode, Rng& rng) {
  const KernelTable& cpu = ScalarKernels();
  const int active = std::min(n, 4), tokens = 3, stride = NumPanels(n) * kPanelRows;
  const proof::TestMatrix router(dtype, n, d, rng);
  const PackedMatrix& w = router.packed;
  const std::vector<float> x = rng.Normals(tokens * d), gain = rng.Normals(d),
                           bias = rng.Normals(stride);
  DeviceMemory memory(machine);
  ActBuffer buffer;
  const Activations& want = buffer.Shape(tokens, d);
  NormRouteArgs args{};
  args.norm.x = memory.Copy(x);
  args.norm.gain = memory.Copy(gain);
  args.norm.act = ActRowsLike(want, memory, false);
  args.norm.d = d;
  args.norm.eps = 1e-5f;
  const auto choices = static_cast<size_t>(tokens * active);
  args.route.experts = memory.Make<int32_t>(choices);
  args.route.weights = memory.Make<float>(choices);
  args.route.num_experts = n;
  args.route.active = active;
  args.route.softmax_first = mode > 0 ? 1 : 0;
  args.route.renormalise = mode == 2 ? 1 : 0;
  args.panels = memory.Copy(w.data, static_cast<size_t>(NumPanels(n) * w.panel_bytes));
  args.bias = mode == 1 ? nullptr : memory.Copy(bias);
  args.panel_bytes = w.panel_bytes;
  args.kind = kind;
  RunKernel(machine, "hearth_norm_route", {tokens, 1, 1, kRowThreads, NormRouteSharedBytes(d, n)},
            args, memory);
  std::vector<float> h(x.size()), logits(static_cast<size_t>(tokens * stride)), weights(choices);
  std::vector<int> experts(choices);
  for (int t = 0; t < tokens; ++t) {
    float* row = &h[static_cast<size_t>(t * d)];
    cpu.rms_norm(&x[static_cast<size_t>(t * d)], gain.data(), args.norm.eps, d, row);
    cpu.quantise(row, want, t);
    Activations one{};
    one.m = 1;
    float* y = &logits[static_cast<size_t>(t * stride)];
    hearth::MatmulArgs product{&w, &one, args.bias == nullptr ? nullptr : bias.data(), y, stride};
    product.xf = row;
    product.xf_stride = d;
    cpu.matmul[static_cast<size_t>(w.kind)](product, 0, NumPanels(n));
    RouteOnCpu(y, n, active, mode > 0, mode == 2, &experts[static_cast<size_t>(t * active)],
               &weights[static_cast<size_t>(t * active)]);
  }
  const std::string wrong =
      FirstOf({RowsDiffer(want, args.norm.act),
               BytesDiffer("expert", experts.data(), args.route.experts, choices),
               FloatsDiffer("weight", weights.data(), args.route.weights, choices)});
  return wrong.empty() ? "" : "norm and " + std::to_string(n) + " experts: " + wrong;
}

}  // namespace

std::string CheckNormRoute(Machine& machine, CaseGrid grid) {
  Rng rng(104);
  for (const auto& [dtype, kind] :
       {std::pair{DType::kF32, WeightKind::kF32}, std::pair{DType::kF16, WeightKind::kF16},
        std::pair{DType::kBf16, WeightKind::kBf16}}) {
    for (int mode = 0; mode < 3; ++mode) {
      for (const int n : grid == CaseGrid::kTiny ? std::vector{20} : std::vector{4, 32, 130}) {
        std::string wrong =
            CheckOneNormRoute(machine, dtype, kind, n == 130 ? 640 : 96, n, mode, rng);
        if (!wrong.empty()) return wrong;
      }
    }
  }
  return "";
}

std::string CheckNorm(Machine& machine, CaseGrid grid) {
  Rng rng(101);
  std::vector<int> widths = {32, 576, 1184};
  if (grid >= CaseGrid::kSmall) widths.insert(widths.end(), {64, 288, 544, 608, 1024, 2880});
  if (grid == CaseGrid::kFull) widths.insert(widths.end(), {96, 1152, 4096, 8192});
  for (const int d : widths) {
    for (const int rows :
         grid == CaseGrid::kFull ? std::vector{1, 2, 7, 9, 17} : std::vector{1, 3}) {
      const int mode = rng.Int(0, 3);
      const NormCase c{rows, d, mode != 1, mode != 2, rng.OneIn(2), rng.OneIn(2), rows > 1};
      if (std::string wrong = CheckOneNorm(machine, c, rng); !wrong.empty()) return wrong;
    }
  }
  // Every kind of row, with everything asked for.
  if (std::string wrong =
          CheckOneNorm(machine, {kRowKinds, 640, true, true, true, true, true}, rng);
      !wrong.empty()) {
    return wrong;
  }
  return FirstOf({CheckChosenRows(machine, rng), CheckExpertsAdded(machine, false, rng),
                  CheckExpertsAdded(machine, true, rng)});
}

std::string CheckGlu(Machine& machine, CaseGrid grid) {
  Rng rng(102);
  std::vector<int> widths = {32, 608};
  if (grid >= CaseGrid::kSmall) widths.insert(widths.end(), {576, 1536, 2880});
  for (const int d : widths) {
    for (const float limit : {0.0f, 7.0f}) {
      const int rows = grid == CaseGrid::kFull ? 17 : 3, stride = (d + 15) / 16 * 16;
      std::vector<float> gate = RowsOfKinds(rng, rows, stride, rng.Int(0, kRowKinds - 1));
      const std::vector<float> up = rng.Normals(rows * stride, 6.0f);
      DeviceMemory memory(machine);
      ActBuffer buffer, super_buffer;
      const Activations& want = buffer.Shape(rows, d);
      const Activations& supers = super_buffer.Shape(rows, d, kSuper);
      GluArgs args{memory.Copy(gate),
                   memory.Copy(up),
                   ActRowsLike(want, memory, true),
                   ActRowsLike(supers, memory, false),
                   nullptr,
                   stride,
                   d,
                   limit > 0 ? 1.702f : 1.0f,
                   limit};
      if (limit > 0) args.z = memory.Make<float>(gate.size());
      RunKernel(machine, "hearth_glu", {rows, 1, 1, kRowThreads, 4 * d}, args, memory);
      for (int t = 0; t < rows; ++t) {
        float* row = &gate[static_cast<size_t>(t * stride)];
        ScalarKernels().glu(row, &up[static_cast<size_t>(t * stride)], args.alpha, limit, d, row);
        ScalarKernels().quantise(row, want, t);
        ScalarKernels().quantise(row, supers, t);
        if (args.z == nullptr) continue;
        std::string wrong = FloatsDiffer("z", row, args.z + t * stride, static_cast<size_t>(d));
        if (!wrong.empty()) return wrong;
      }
      if (std::string wrong =
              FirstOf({RowsDiffer(want, args.act), RowsDiffer(supers, args.supers)});
          !wrong.empty()) {
        return "glu of " + std::to_string(d) + ": " + wrong;
      }
    }
  }
  return "";
}

std::string CheckRoute(Machine& machine, CaseGrid grid) {
  Rng rng(103);
  const int tokens = grid == CaseGrid::kFull ? 129 : 9;
  for (const int n : {4, 32, 33, 128}) {
    for (int mode = 0; mode < 3; ++mode) {
      const int active = std::min(n, n == 128 ? 8 : 4);
      if (std::string wrong = CheckOneRoute(machine, tokens, n, active, mode, rng);
          !wrong.empty()) {
        return wrong;
      }
    }
  }
  return CheckOneRoute(machine, 3, 5, 5, 0, rng);
}

}  // namespace hearth::cuda
