// SPDX-License-Identifier: Apache-2.0
#include "cpu/attend_run.h"

#include <algorithm>

namespace hearth {
namespace {

constexpr int kTaskTokens = 16;
// Tasks a worker should have, so that none waits long for the last one of another.
constexpr int kTasksPerWorker = 16;
// A piece of a sequence starts with keys nobody has asked memory for yet.
constexpr int kLeastSpans = 4;
// With more tokens, what spans leave for merging grows beyond what they read.
constexpr int kMostTokensCut = 4;

}  // namespace

AttendRun::AttendRun(const KernelTable& kernels, ThreadPool& pool, KvCode code)
    : kernels_(kernels), pool_(pool), code_(code) {}

int64_t AttendRun::PartFloatsFor(int n_heads, int n_kv_heads, int d_head, int max_context,
                                 int workers) {
  if (workers == 1) return 0;
  // Of sequences that are cut there are fewer than tasks are wanted, each with a task for every KV
  // head, and most of them decode one token. Beyond a million tokens of context in them (64 heads
  // of 64 values) there is work for everybody without cutting.
  constexpr int64_t kMostBytes = int64_t{64} << 20;
  const int64_t sequences = (int64_t{kTasksPerWorker} * workers - 1) / n_kv_heads;
  const int64_t spans = (int64_t{max_context} + kSpan - 1) / kSpan;
  const int64_t floats =
      std::max<int64_t>(sequences, kMostTokensCut) * spans * AttendPartFloats(1, n_heads, d_head);
  return std::min(floats, kMostBytes / int64_t{sizeof(float)});
}

void AttendRun::Reserve(ScratchArena& arena, int workers, int64_t part_floats) {
  scratch_.Reserve(arena, int64_t{kAttendScratch} * workers);
  parts_.Reserve(arena, part_floats);
  most_parts_ = part_floats;
}

void AttendRun::AddTasks(const AttendArgs& common, const AttendSlice& slice, int index,
                         int pieces) {
  if (slice.count == 0) return;
  const int last = slice.first_position + slice.count - 1;
  const int begin =
      common.window > 0 ? std::max(0, slice.first_position - common.window + 1) / kSpan : 0;
  const int end = last / kSpan + 1;
  const int each = std::max(kLeastSpans, (end - begin + pieces - 1) / pieces);
  const int64_t floats =
      (end - begin) * AttendPartFloats(slice.count, common.n_heads, common.d_head);
  if (slice.count > kMostTokensCut || end - begin <= each || num_parts_ + floats > most_parts_) {
    for (int head = 0; head < common.n_kv_heads; ++head) {
      for (int i = 0; i < slice.count; i += kTaskTokens) {
        tasks_.push_back({index, i, std::min(kTaskTokens, slice.count - i), head, begin, end, -1});
      }
    }
    return;
  }
  // The heads of a piece one after the other: they lie side by side.
  for (int s = begin; s < end; s += each) {
    for (int head = 0; head < common.n_kv_heads; ++head) {
      tasks_.push_back({index, 0, slice.count, head, s, std::min(s + each, end), num_parts_});
    }
  }
  for (int head = 0; head < common.n_kv_heads; ++head) {
    merges_.push_back({index, 0, slice.count, head, begin, end, num_parts_});
  }
  num_parts_ += floats;
}

AttendArgs AttendRun::ArgsOf(const AttendArgs& common, std::span<const AttendSlice> slices,
                             const Task& task, int worker) {
  const AttendSlice& slice = slices[static_cast<size_t>(task.slice)];
  AttendArgs args = common;
  args.q += (slice.row + task.first) * common.q_stride;
  args.out += (slice.row + task.first) * common.q_stride;
  args.table = slice.table;
  args.scratch = &scratch_[kAttendScratch * static_cast<size_t>(worker)];
  args.count = task.count;
  args.first_position = slice.first_position + task.first;
  args.parts = task.part < 0 ? nullptr : &parts_[static_cast<size_t>(task.part)];
  args.span_begin = task.span_begin;
  args.span_end = task.span_end;
  return args;
}

// Tasks in the order of memory: a worker's next one often goes on where its last one ended, where
// the kernel has already asked for keys.
void AttendRun::Run(const AttendArgs& common, std::span<const AttendSlice> slices) {
  tasks_.clear();
  merges_.clear();
  num_parts_ = 0;
  int whole = 0;  // tasks if nothing is cut between spans
  for (const AttendSlice& slice : slices) {
    whole += (slice.count + kTaskTokens - 1) / kTaskTokens * common.n_kv_heads;
  }
  const int wanted = pool_.size() > 1 ? kTasksPerWorker * pool_.size() : 1;
  const int pieces = whole > 0 ? (wanted + whole - 1) / whole : 1;
  for (size_t i = 0; i < slices.size(); ++i) {
    AddTasks(common, slices[i], static_cast<int>(i), pieces);
  }
  scratch_.Room(int64_t{kAttendScratch} * pool_.size());
  parts_.Room(num_parts_);
  const auto run = [&](const std::vector<Task>& tasks, auto kernel) {
    pool_.RunBalanced(static_cast<int>(tasks.size()), 1, [&](Range range, int worker) {
      for (int i = range.begin; i < range.end; ++i) {
        const Task& task = tasks[static_cast<size_t>(i)];
        kernel(ArgsOf(common, slices, task, worker), task.kv_head, task.kv_head + 1);
      }
    });
  };
  run(tasks_, code_ == KvCode::kInt8 ? kernels_.attend_int8 : kernels_.attend);
  if (!merges_.empty()) run(merges_, kernels_.merge_spans);
}

}  // namespace hearth
