// SPDX-License-Identifier: Apache-2.0
// Attention of one layer for all sequences of a step, shared out over the thread pool.
#pragma once
#include <limits>
#include <span>
#include <vector>

#include "cpu/kernels.h"
#include "cpu/scratch.h"
#include "kv/layout.h"
#include "platform/thread_pool.h"
namespace hearth {

// Consecutive tokens of one sequence.
struct AttendSlice {
  int64_t row;  // of the first token, in q and out
  int count, first_position;
  const int32_t* table;  // the sequence's blocks
};

// Thread: one at a time.
class AttendRun {
 public:
  AttendRun(const KernelTable& kernels, ThreadPool& pool, KvCode code = KvCode::kInt16);
  // Lasting room for so many workers, and for what pieces of sequences leave for merging. Sequences
  // whose pieces would leave more are not cut: the bits are the same.
  void Reserve(ScratchArena& arena, int workers, int64_t part_floats);
  // What is worth reserving for sequences of so many tokens.
  static int64_t PartFloatsFor(int n_heads, int n_kv_heads, int d_head, int max_context,
                               int workers);
  int64_t used_part_floats() const { return num_parts_; }  // of the last run
  // `common` is what all slices share; q and out are those of row 0.
  void Run(const AttendArgs& common, std::span<const AttendSlice> slices);

 private:
  // One KV head of some tokens of a slice: all spans, or those in [span_begin, span_end).
  struct Task {
    int slice, first, count, kv_head, span_begin, span_end;
    int64_t part;  // the slice's first float in parts_, or -1
  };
  void AddTasks(const AttendArgs& common, const AttendSlice& slice, int index, int pieces);
  AttendArgs ArgsOf(const AttendArgs& common, std::span<const AttendSlice> slices, const Task& task,
                    int worker);

  const KernelTable& kernels_;
  ThreadPool& pool_;
  const KvCode code_;
  Scratch<float> scratch_;  // [workers, kAttendScratch]
  Scratch<float> parts_;
  int64_t num_parts_ = 0;  // floats of parts_ in use
  int64_t most_parts_ = std::numeric_limits<int64_t>::max();
  std::vector<Task> tasks_, merges_;
};

}  // namespace hearth
