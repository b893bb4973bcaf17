// SPDX-License-Identifier: Apache-2.0
// Who wrote what in global memory during a launch of the PTX interpreter, and who may touch it. By
// rule, whatever the order in which blocks happen to run: within a block a barrier must lie
// between, and between blocks an arrival behind a barrier of the writer's (atom.acq_rel.gpu), at a
// word where the reader arrives later, and a barrier of the reader's unless the same thread reads.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
namespace hearth::cuda {

class PtxOrder {
 public:
  void StartBlock() {
    ++block_;
    epoch_ = 0;
    known_.clear();
    known_by_.clear();
  }

  // Notes an access of the running block; returns what is wrong with it, or null.
  const char* Note(uint64_t address, size_t bytes, int thread, bool is_load) {
    for (uint64_t at = address & ~uint64_t{1}; at < address + bytes; at += 2) {
      const auto found = pages_.find(at / kPageBytes);
      if (found == pages_.end() && is_load) continue;
      Page& page = found != pages_.end() ? found->second : pages_[at / kPageBytes];
      Writer& writer = page[at % kPageBytes / 2];
      if (writer.block == block_) {
        if (writer.epoch == epoch_ && writer.thread != thread) return "a race in global memory";
      } else if (writer.block >= 0 && !Knows(writer, thread)) {
        return "another block's memory without order";
      }
      if (!is_load) writer = {block_, thread, epoch_};
    }
    return nullptr;
  }

  void Barrier() {
    ++epoch_;
    for (const auto& [thread, of_thread] : known_by_) Merge(of_thread, known_);
    known_by_.clear();
  }

  // At `address`: takes over what others left there, then leaves what the block's threads did
  // before its last barrier.
  void Arrive(uint64_t address, int thread) {
    Epochs& left = left_[address];
    Epochs& of_thread = known_by_[thread];
    Merge(left, of_thread);
    Merge(of_thread, left);
    Merge(known_, left);
    Merge({{block_, epoch_}}, left);
  }

 private:
  struct Writer {
    int block = -1, thread = 0;
    int64_t epoch = 0;
  };
  // By block: everything of earlier epochs.
  using Epochs = std::map<int, int64_t>;
  static constexpr uint64_t kPageBytes = 256;  // allocations are aligned to it
  using Page = std::array<Writer, kPageBytes / 2>;

  static void Merge(const Epochs& from, Epochs& to) {
    for (const auto& [block, epoch] : from) to[block] = std::max(to[block], epoch);
  }
  static bool Holds(const Epochs& epochs, const Writer& writer) {
    const auto found = epochs.find(writer.block);
    return found != epochs.end() && writer.epoch < found->second;
  }
  bool Knows(const Writer& writer, int thread) const {
    const auto of_thread = known_by_.find(thread);
    return Holds(known_, writer) ||
           (of_thread != known_by_.end() && Holds(of_thread->second, writer));
  }

  int block_ = -1;
  int64_t epoch_ = 0;  // barriers that the running block passed
  std::unordered_map<uint64_t, Page> pages_;
  Epochs known_;                    // to all threads of the running block
  std::map<int, Epochs> known_by_;  // to one of them, since the last barrier
  std::map<uint64_t, Epochs> left_;
};

}  // namespace hearth::cuda
