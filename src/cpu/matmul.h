// SPDX-License-Identifier: Apache-2.0
// Several matrix products as one parallel loop.
#pragma once
#include <cstdint>
#include <vector>

#include "cpu/kernels.h"
#include "cpu/matmul_input.h"
#include "cpu/scratch.h"
#include "platform/thread_pool.h"
namespace hearth {

struct MatmulJob {
  const PackedMatrix* w;
  MatmulInput x;
  const float* bias;
  float* y;
  int64_t y_stride;  // whole panels
};

// Thread: one at a time.
class Matmuls {
 public:
  Matmuls(const KernelTable& kernels, ThreadPool& pool) : kernels_(kernels), pool_(pool) {}
  // Lasting room for so many workers and products of so many rows by so many columns.
  void Reserve(ScratchArena& arena, int workers, int most_rows, int most_cols);
  void Clear() { jobs_.clear(); }
  void Add(const MatmulJob& job) { jobs_.push_back(job); }
  // Runs what was added since Clear. Which worker does which panel changes no bit; those of a
  // memory node do the panels that lie on it.
  void Run();
  void RunOne(const MatmulJob& job);

 private:
  // Units of work are panels. A part is one node's panels of a job, for one block of its rows.
  struct Part {
    PackedMatrix w;
    MatmulJob job;    // of the block's rows
    int first_unit;   // of the loop
    int first_panel;  // of the matrix
  };
  void AddParts(const MatmulJob& job, int node, int& num_units);
  void MakeRoom();
  void DoUnits(Range units, int worker);
  void Do(const MatmulJob& job, int panel_begin, int panel_end, int worker);
  void DoRaw(const MatmulJob& job, int row_begin, int row_end, int worker);

  const KernelTable& kernels_;
  ThreadPool& pool_;
  std::vector<MatmulJob> jobs_;
  std::vector<Part> parts_;              // node by node, by ascending unit
  std::vector<int> ends_;                // of each memory node's units
  std::vector<Scratch<float>> scratch_;  // of each worker: a decoded row and a row of results
};

}  // namespace hearth
