// SPDX-License-Identifier: Apache-2.0
#include "cpu/matmul.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

#include "cpu/panels.h"
#include "tensor/quant.h"

namespace hearth {
namespace {

// Up to this many rows a product is bound by reading weights, and fixed shares keep each worker on
// the same pages; above, arithmetic dominates and experts differ in size.
constexpr int kFewRows = 8;
// 8 panels of 2880 columns are 200 KB of MXFP4: long enough to hide the pick-up, short enough to
// even out.
constexpr int kTaskPanels = 8;

template <class T>
T* Grown(std::vector<T>& buffer, int64_t size) {
  // A line more than asked, so that the first row can start on one.
  const auto need = static_cast<size_t>(size) + 64 / sizeof(T);
  if (buffer.size() < need) buffer.resize(need);
  void* at = buffer.data();
  size_t space = buffer.size() * sizeof(T);
  return static_cast<T*>(std::align(64, static_cast<size_t>(size) * sizeof(T), at, space));
}

}  // namespace

Activations& ActBuffer::Shape(int m, int cols) {
  view_.m = m;
  view_.cols = cols;
  view_.stride = (cols + 63) / 64 * 64;
  // Rows a multiple of 1024 bytes apart share few sets of L1, and a tile reads 16 rows at once.
  if (view_.stride % 1024 == 0) view_.stride += 64;
  view_.num_chunks = NumChunks(cols);
  view_.num_blocks = view_.stride / kQuantBlock;
  view_.hi = Grown(hi_, int64_t{m} * view_.stride);
  view_.lo = Grown(lo_, int64_t{m} * view_.stride);
  view_.scale = Grown(scale_, int64_t{m} * view_.num_chunks);
  view_.sum_hi = Grown(sum_hi_, int64_t{m} * view_.num_blocks);
  view_.sum_lo = Grown(sum_lo_, int64_t{m} * view_.num_blocks);
  return view_;
}

Activations ActBuffer::Part(int first, int m) const {
  Activations part = view_;
  part.m = m;
  part.hi += int64_t{first} * part.stride;
  part.lo += int64_t{first} * part.stride;
  part.scale += int64_t{first} * part.num_chunks;
  part.sum_hi += int64_t{first} * part.num_blocks;
  part.sum_lo += int64_t{first} * part.num_blocks;
  return part;
}

void ActBuffer::CopyRow(int to, const ActBuffer& other, int from) {
  const Activations a = Part(to, 1), b = other.Part(from, 1);
  std::memcpy(a.hi, b.hi, static_cast<size_t>(a.stride));
  std::memcpy(a.lo, b.lo, static_cast<size_t>(a.stride));
  std::copy_n(b.scale, a.num_chunks, a.scale);
  std::copy_n(b.sum_hi, a.num_blocks, a.sum_hi);
  std::copy_n(b.sum_lo, a.num_blocks, a.sum_lo);
}

void Matmuls::RunOne(const MatmulJob& job) {
  Clear();
  Add(job);
  Run();
}

void Matmuls::Run() {
  scratch_.resize(static_cast<size_t>(pool_.size()));
  int num_panels = 0, most_rows = 0;
  for (const MatmulJob& job : jobs_) {
    num_panels += NumPanels(job.w->rows);
    most_rows = std::max(most_rows, job.x.m);
  }
  if (most_rows <= kFewRows) {
    pool_.Run(num_panels, 1, [&](Range range, int worker) {
      int before = 0;
      for (const MatmulJob& job : jobs_) {
        const int panels = NumPanels(job.w->rows);
        const int begin = std::max(range.begin - before, 0);
        const int end = std::min(range.end - before, panels);
        if (begin < end) Do(job, begin, end, worker);
        before += panels;
      }
    });
    return;
  }
  tasks_.clear();
  for (int j = 0; j < static_cast<int>(jobs_.size()); ++j) {
    const int panels = NumPanels(jobs_[static_cast<size_t>(j)].w->rows);
    for (int p = 0; p < panels; p += kTaskPanels) {
      tasks_.push_back({j, p, std::min(p + kTaskPanels, panels)});
    }
  }
  pool_.RunUneven(static_cast<int>(tasks_.size()), [&](int i, int worker) {
    const Task& task = tasks_[static_cast<size_t>(i)];
    Do(jobs_[static_cast<size_t>(task.job)], task.panel_begin, task.panel_end, worker);
  });
}

void Matmuls::Do(const MatmulJob& job, int panel_begin, int panel_end, int worker) {
  if (job.x.m == 0) return;
  const MatmulArgs args{job.w, &job.x, job.bias, job.y, job.y_stride};
  switch (job.w->kind) {
    case PackKind::kMxfp4:
      return kernels_.matmul_mxfp4(args, panel_begin, panel_end);
    case PackKind::kQ8:
      return kernels_.matmul_q8(args, panel_begin, panel_end);
    case PackKind::kRaw:
      return DoRaw(job, panel_begin * kPanelRows, std::min(panel_end * kPanelRows, job.w->rows),
                   worker);
  }
}

void Matmuls::DoRaw(const MatmulJob& job, int row_begin, int row_end, int worker) {
  const PackedMatrix& w = *job.w;
  const int m = job.x.m;
  float* row = Grown(scratch_[static_cast<size_t>(worker)], int64_t{w.cols} + m + 16);
  float* result = row + (w.cols + 15) / 16 * 16;
  for (int r = row_begin; r < row_end; ++r) {
    DecodeBlocks(static_cast<DType>(w.dtype),
                 reinterpret_cast<const std::byte*>(w.data + r * w.panel_bytes), w.cols, row);
    kernels_.dot_rows(row, job.xf, job.xf_stride, w.cols, m, result);
    const float bias = job.bias != nullptr ? job.bias[r] : 0.0f;
    for (int t = 0; t < m; ++t) {
      job.y[t * job.y_stride + r] = job.bias != nullptr ? result[t] + bias : result[t];
    }
  }
}

}  // namespace hearth
