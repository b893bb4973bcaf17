// SPDX-License-Identifier: Apache-2.0
// Several matrix products as one parallel loop, and the quantised inputs they read.
#pragma once
#include <cstdint>
#include <vector>

#include "cpu/kernels.h"
#include "platform/thread_pool.h"
namespace hearth {

// Owns the memory behind Activations; grows, never shrinks.
class ActBuffer {
 public:
  // Room for m rows of `cols` values. Earlier results are invalid afterwards.
  Activations& Shape(int m, int cols);
  Activations& get() { return view_; }
  // Rows [first, first + m) of what was shaped.
  Activations Part(int first, int m) const;
  // Row `to` of this becomes row `from` of `other`, which has the same width.
  void CopyRow(int to, const ActBuffer& other, int from);

 private:
  std::vector<int8_t> hi_, lo_;
  std::vector<float> scale_;
  std::vector<int32_t> sum_hi_, sum_lo_;
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
  struct Task {
    int job, panel_begin, panel_end;
  };
  void Do(const MatmulJob& job, int panel_begin, int panel_end, int worker);
  void DoRaw(const MatmulJob& job, int row_begin, int row_end, int worker);

  const KernelTable& kernels_;
  ThreadPool& pool_;
  std::vector<MatmulJob> jobs_;
  std::vector<Task> tasks_;
  std::vector<std::vector<float>> scratch_;  // one decoded row and one result row per worker
};

}  // namespace hearth
