// SPDX-License-Identifier: Apache-2.0
// What this machine can do at best, for judging what the kernels make of it: reading memory, and
// int8 products per second out of registers. Measured, never looked up: clocks, neighbours and
// virtual machines change them by the minute.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "platform/memory.h"
#include "platform/thread_pool.h"
namespace hearth {

// The loops, one file per instruction set. Each returns a value that depends on all its work.
// Reads `num_streams` equal parts side by side, each a multiple of 256 bytes.
uint64_t ReadMemoryAvx2(const std::byte* at, int64_t num_bytes, int num_streams);
uint64_t ReadMemoryAvx512(const std::byte* at, int64_t num_bytes, int num_streams);
int32_t RepeatVnniAvx512(int64_t rounds);  // kVnniOps each
int32_t RepeatTilesAmx(int64_t rounds);    // kTileOps each
// A product and an addition count as two operations, as everywhere.
inline constexpr int64_t kVnniOps = int64_t{2} * 64 * 24;  // 24 instructions of 64 products
inline constexpr int64_t kTileOps = int64_t{2} * 16 * 16 * 64 * 16;  // 16 tiles of 16 x 16 x 64

// All threads at once, on a pool and a buffer of its own. Thread: one at a time.
class Rooflines {
 public:
  // The buffer is four times the last-level cache and at least 1 GiB, so that reading it again
  // finds little in cache. kExhausted when it does not fit.
  static Result<Rooflines> Make(int num_threads);
  int64_t buffer_bytes() const { return static_cast<int64_t>(buffer_.bytes().size()); }

  // One sample each: the best of a few passes of some tens of milliseconds.
  // From front to back, each thread its share: what a plain loop over memory gets.
  double PlainReadBytesPerSecond() { return ReadBytesPerSecond(1); }
  // Each thread reads eight places at once, which keeps more of memory busy: the wall itself.
  double StreamReadBytesPerSecond() { return ReadBytesPerSecond(8); }
  // What each further thread adds to the end of a loop: the caller looks at one more line that
  // another core has just written. 0 with one thread.
  double LookSeconds();
  // Absent when this machine lacks the instructions.
  std::optional<double> VnniOpsPerSecond();
  std::optional<double> AmxOpsPerSecond();

 private:
  Rooflines(std::unique_ptr<ThreadPool> pool, LargeBuffer buffer)
      : pool_(std::move(pool)), buffer_(std::move(buffer)) {}
  double ReadBytesPerSecond(int num_streams);

  std::unique_ptr<ThreadPool> pool_;
  LargeBuffer buffer_;
  uint64_t sink_ = 0;
};

}  // namespace hearth
