// SPDX-License-Identifier: Apache-2.0
// A block's shared memory in the PTX interpreter: bounds, alignment, races, and the banks' passes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "machine.h"
namespace hearth::cuda {

// Every byte remembers who wrote and who read it since the last barrier.
class PtxShared {
 public:
  explicit PtxShared(int64_t bytes)
      : bytes_(static_cast<size_t>(bytes), 0xff), history_(static_cast<size_t>(bytes)) {}

  void NextEpoch() { ++epoch_; }

  // Where [at, at + size) lies on the host, for thread `thread` of the block.
  uint8_t* Access(uint64_t at, size_t size, int thread, bool writes, const std::string& text) {
    Check(at, size, text);
    for (size_t i = at; i < at + size; ++i) {
      Note(history_[i], thread, writes ? Use::kWrite : Use::kRead, text);
    }
    return &bytes_[at];
  }

  // An atomic addition; returns what was there before.
  uint32_t Add(uint64_t at, uint64_t value, int thread) {
    static const std::string kText = "atom.shared.add";
    Check(at, 4, kText);
    for (size_t i = at; i < at + 4; ++i) Note(history_[i], thread, Use::kAtomic, kText);
    uint32_t old;
    std::memcpy(&old, &bytes_[at], 4);
    const auto sum = static_cast<uint32_t>(old + value);
    std::memcpy(&bytes_[at], &sum, 4);
    return old;
  }

 private:
  enum class Use : uint8_t { kRead, kWrite, kAtomic };
  static constexpr int kNobody = -1, kSeveral = -2;
  struct History {
    int64_t epoch = -1;
    int by[3] = {kNobody, kNobody, kNobody};  // by Use
  };

  void Check(uint64_t at, size_t size, const std::string& text) const {
    if (at % size != 0) Refuse("PTX interpreter", "shared memory, not aligned: " + text);
    if (at + size > bytes_.size()) Refuse("PTX interpreter", "outside of shared memory: " + text);
  }

  // Two threads between the same two barriers may both read, or both add atomically.
  void Note(History& history, int thread, Use use, const std::string& text) const {
    if (history.epoch != epoch_) history = {epoch_, {kNobody, kNobody, kNobody}};
    for (int other = 0; other < 3; ++other) {
      const int by = history.by[other];
      const bool is_other = by != kNobody && by != thread;
      const bool agree = other == static_cast<int>(use) && use != Use::kWrite;
      if (is_other && !agree) Refuse("PTX interpreter", "a race in shared memory: " + text);
    }
    int& by = history.by[static_cast<int>(use)];
    by = by == kNobody || by == thread ? thread : kSeveral;
  }

  std::vector<uint8_t> bytes_;
  std::vector<History> history_;
  int64_t epoch_ = 0;
};

// Passes that 32 banks of 4 bytes need for these addresses of `bytes` each. A warp's access of 8 or
// 16 bytes a lane goes out in halves or quarters of the warp, of 128 bytes each.
inline int64_t Wavefronts(const std::set<uint64_t>& addresses, size_t bytes) {
  const size_t words = std::max<size_t>(bytes / 4, 1), share = 32 / words;
  int64_t passes = 0;
  std::vector<std::set<uint64_t>> banks(32);
  size_t taken = 0;
  const auto flush = [&] {
    size_t most = 0;
    for (auto& bank : banks) {
      most = std::max(most, bank.size());
      bank.clear();
    }
    passes += static_cast<int64_t>(most);
    taken = 0;
  };
  for (const uint64_t at : addresses) {
    for (size_t w = 0; w < words; ++w) banks[(at / 4 + w) % 32].insert(at / 4 + w);
    if (++taken == share) flush();
  }
  if (taken > 0) flush();
  return passes;
}

}  // namespace hearth::cuda
