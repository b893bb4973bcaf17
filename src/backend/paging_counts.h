// SPDX-License-Identifier: Apache-2.0
// How experts that do not all fit in memory came and went.
#pragma once
#include <cstdint>

#include "base/mutex.h"
namespace hearth {

struct PagingCounts {
  int experts = 0, frames = 0;  // in the model, and in memory at most
  int64_t expert_bytes = 0;     // of one
  int64_t most_bytes = 0;       // that experts may take in memory
  int64_t resident_bytes = 0;   // that they have taken
  uint64_t needed = 0;          // an expert, by a layer of a step
  uint64_t hits = 0;            // of these, those that were there
  uint64_t ahead_hits = 0;      // and those that were being read, or had been, on expectation
  uint64_t expected = 0;        // reads that began on expectation
  uint64_t bytes_read = 0;
  uint64_t errors = 0;    // reads that failed
  int64_t read_ns = 0;    // while at least one read was under way
  int64_t waited_ns = 0;  // by steps
};

// Of needed experts, the share that no step had to have read.
constexpr double HitShare(const PagingCounts& counts) {
  if (counts.needed == 0) return 0;
  return static_cast<double>(counts.hits) / static_cast<double>(counts.needed);
}
constexpr double ReadRate(const PagingCounts& counts) {  // bytes per second
  if (counts.read_ns == 0) return 0;
  return static_cast<double>(counts.bytes_read) / (static_cast<double>(counts.read_ns) * 1e-9);
}

// Where a backend puts its counts, for whoever asked for them. Thread: any.
class PagingMeter {
 public:
  void Set(const PagingCounts& counts) {
    MutexLock lock(mu_);
    counts_ = counts;
  }
  PagingCounts get() const {
    MutexLock lock(mu_);
    return counts_;
  }

 private:
  mutable Mutex mu_;
  PagingCounts counts_ HEARTH_GUARDED_BY(mu_);
};

}  // namespace hearth
