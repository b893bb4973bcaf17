// SPDX-License-Identifier: Apache-2.0
// Several matrix products as one parallel loop, and the quantised inputs they read.
#pragma once
#include <cstdint>
#include <vector>

#include "cpu/kernels.h"
#include "cpu/scratch.h"
#include "platform/thread_pool.h"
namespace hearth {

// Rows [first, first + m) of some activations.
Activations RowsOf(const Activations& x, int first, int m);

// Owns the memory behind Activations; grows, never shrinks.
class ActBuffer {
 public:
  // Room for m rows of `cols` values. Earlier results are invalid afterwards.
  Activations& Shape(int m, int cols);
  Activations& get() { return view_; }
  // Rows [first, first + m) of what was shaped.
  Activations Part(int first, int m) const { return RowsOf(view_, first, m); }
  // Row `to` of this becomes row `from` of `other`, which has the same width.
  void CopyRow(int to, const ActBuffer& other, int from);

 private:
  Scratch<int8_t> hi_, lo_;
  Scratch<float> scale_;
  Scratch<int32_t> sum_hi_, sum_lo_;
  Activations view_{};
};

struct MatmulJob {
  const PackedMatrix* w;
  Activations x;    // for panels
  const float* xf;  // [m, xf_stride], for raw matrices
  int64_t xf_stride;
  const float* bias;
  float* y;
  int64_t y_stride;  // whole panels
};

// Thread: one at a time.
class Matmuls {
 public:
  Matmuls(const KernelTable& kernels, ThreadPool& pool) : kernels_(kernels), pool_(pool) {}
  void Clear() { jobs_.clear(); }
  void Add(const MatmulJob& job) { jobs_.push_back(job); }
  // Runs what was added since Clear. Which worker does which panel changes no bit.
  void Run();
  void RunOne(const MatmulJob& job);

 private:
  // Units of work: a job's rows in blocks, and in each block all its panels.
  void DoUnits(Range units, int worker);
  void Do(const MatmulJob& job, int panel_begin, int panel_end, int worker);
  void DoRaw(const MatmulJob& job, int row_begin, int row_end, int worker);

  const KernelTable& kernels_;
  ThreadPool& pool_;
  std::vector<MatmulJob> jobs_;
  std::vector<Scratch<float>> scratch_;  // one decoded row and one result row per worker
};

}  // namespace hearth
