// SPDX-License-Identifier: Apache-2.0
#include "cpu/matmul.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "cpu/pack_format.h"
#include "cpu/panels.h"
#include "tensor/quant.h"

namespace hearth {
namespace {

// Rows that go through all panels before the next rows do: with 2880 columns they are 737 KB, as
// two halves or as floats, which stay in L2 while the weights pass.
constexpr int kBlockRows = 128, kBlockFloatRows = 64;
// Up to this many rows a product is bound by reading weights.
constexpr int kFewRows = 8;

struct Blocks {
  int count, rows;  // rows of each but the last
};
Blocks BlocksOf(const MatmulJob& job) {
  const bool decodes =
      job.w->kind == PackKind::kRaw && static_cast<DType>(job.w->dtype) != DType::kF32;
  const int m = job.x.m;
  const int most = FormatOf(job.w->kind)->strip == 0 ? kBlockFloatRows : kBlockRows;
  if (m <= most || decodes) return {1, m};  // a row is decoded once for all
  const int count = (m + most - 1) / most;
  return {count, ((m + count - 1) / count + 15) / 16 * 16};  // even ones, in whole tiles
}

// A decoded row of a raw matrix, and a row of results.
int64_t RawFloats(int m, int cols) { return int64_t{cols} + m + 16; }

// The panels of a matrix that belong to a memory node.
Range NodePanels(const MatmulJob& job, const WorkerPlan& plan, int node) {
  const int panels = NumPanels(job.w->rows);
  return {plan.edge(panels, node), plan.edge(panels, node + 1)};
}

// Panels that a worker takes at once: as many as make sixteen pieces for each, but no more than
// hide the pick-up. Those of one row run in threes, tiles in pairs.
int GrainOf(int most_rows, int num_units, int num_workers) {
  const int fair = num_units / (16 * num_workers);
  if (most_rows <= kFewRows) return std::clamp(fair, 1, 3);
  return std::clamp(fair / 2 * 2, 2, 8);
}

}  // namespace

void Matmuls::Reserve(ScratchArena& arena, int workers, int most_rows, int most_cols) {
  scratch_.resize(static_cast<size_t>(workers));
  for (Scratch<float>& own : scratch_) own.Reserve(arena, RawFloats(most_rows, most_cols));
}

// Here and not where it is used: a worker could not say that there is none.
void Matmuls::MakeRoom() {
  scratch_.resize(static_cast<size_t>(pool_.size()));
  int64_t floats = 0;
  for (const MatmulJob& job : jobs_) {
    if (KernelOf(kernels_, job.w->kind, job.x.For(*job.w)) != nullptr) continue;
    floats = std::max(floats, RawFloats(job.x.m, job.w->cols));
  }
  for (Scratch<float>& own : scratch_) own.Room(floats);
}

void Matmuls::RunOne(const MatmulJob& job) {
  Clear();
  Add(job);
  Run();
}

// Once for a loop: workers take hundreds of small pieces of it.
void Matmuls::AddParts(const MatmulJob& job, int node, int& num_units) {
  const Range panels = NodePanels(job, pool_.plan(), node);
  if (panels.begin == panels.end) return;
  const Blocks blocks = BlocksOf(job);
  for (int b = 0; b < blocks.count; ++b) {
    const int first = b * blocks.rows;
    Part part{PartOn(*job.w, node), job, num_units, panels.begin};
    if (blocks.count > 1) part.job.x = job.x.Rows(first, std::min(blocks.rows, job.x.m - first));
    part.job.y += first * job.y_stride;
    parts_.push_back(part);
    num_units += panels.end - panels.begin;
  }
}

void Matmuls::Run() {
  MakeRoom();
  int num_units = 0, most_rows = 0;
  ends_.clear();
  parts_.clear();
  for (int node = 0; node < pool_.plan().num_nodes(); ++node) {
    for (const MatmulJob& job : jobs_) AddParts(job, node, num_units);
    ends_.push_back(num_units);
  }
  for (const MatmulJob& job : jobs_) most_rows = std::max(most_rows, job.x.m);
  for (Part& part : parts_) part.job.w = &part.w;  // parts_ grows no more
  pool_.RunByNode(ends_, GrainOf(most_rows, num_units, pool_.size()),
                  [&](Range units, int worker) { DoUnits(units, worker); });
}

void Matmuls::DoUnits(Range units, int worker) {
  auto part = std::ranges::upper_bound(parts_, units.begin, {}, &Part::first_unit) - 1;
  while (units.begin < units.end) {
    const auto next = part + 1;
    const int end = next == parts_.end() ? units.end : std::min(units.end, next->first_unit);
    const int skipped = part->first_panel - part->first_unit;
    Do(part->job, units.begin + skipped, end + skipped, worker);
    units.begin = end;
    part = next;
  }
}

void Matmuls::Do(const MatmulJob& job, int panel_begin, int panel_end, int worker) {
  if (job.x.m == 0) return;
  const Activations& x = job.x.For(*job.w);
  const MatmulKernel kernel = KernelOf(kernels_, job.w->kind, x);
  if (kernel == nullptr) {
    const int row_end = std::min(panel_end * kPanelRows, job.w->rows);
    return DoRaw(job, panel_begin * kPanelRows, row_end, worker);
  }
  kernel({job.w, &x, job.bias, job.y, job.y_stride, job.x.floats, job.x.stride}, panel_begin,
         panel_end);
}

void Matmuls::DoRaw(const MatmulJob& job, int row_begin, int row_end, int worker) {
  const PackedMatrix& w = *job.w;
  const int m = job.x.m;
  float* decoded = scratch_[static_cast<size_t>(worker)].data();
  float* result = decoded + (w.cols + 15) / 16 * 16;
  for (int r = row_begin; r < row_end; ++r) {
    const uint8_t* data = w.data + r * (w.panel_bytes / kPanelRows);
    const auto* row = reinterpret_cast<const float*>(data);  // matrices start on a line
    if (static_cast<DType>(w.dtype) != DType::kF32) {
      DecodeBlocks(static_cast<DType>(w.dtype), reinterpret_cast<const std::byte*>(data), w.cols,
                   decoded);
      row = decoded;
    }
    kernels_.dot_rows(row, job.x.floats, job.x.stride, w.cols, m, result);
    const float bias = job.bias != nullptr ? job.bias[r] : 0.0f;
    for (int t = 0; t < m; ++t) {
      job.y[t * job.y_stride + r] = job.bias != nullptr ? result[t] + bias : result[t];
    }
  }
}

}  // namespace hearth
