// SPDX-License-Identifier: Apache-2.0
// The page that a test shares with preload.cc, and what its parts ask of each other.
#pragma once
#include <atomic>
#include <cstdint>
namespace faults {

// What fails.
constexpr uint32_t kMemory = 1, kSystemCalls = 2;
// In which threads, by the names that the program gives them. kOther has none that is listed:
// kernels, RocksDB's own, watchers.
constexpr uint32_t kMain = 1, kHttp = 2, kText = 4, kEngine = 8, kTier = 16, kBooks = 32,
                   kOther = 64;
// Of memory: C++'s, and that of some C libraries (SQLite, OpenSSL, libcurl).
constexpr uint64_t kNew = 1, kMalloc = 2;
constexpr int kMaxFrames = 24;
// Instead of an error number: half of the bytes asked for.
constexpr int kShort = -1;

struct Control {
  std::atomic<uint32_t> mode, threads;
  std::atomic<uint64_t> calls;
  std::atomic<int32_t> error, repeat;
  std::atomic<int64_t> index, seen, failed;
  char what[32];
  int64_t num_frames;
  void* frames[kMaxFrames];
  std::atomic<int64_t> clock_offset_s;  // of the clock on the wall
};

// Counts one call of the kind that may fail, and says whether it does.
bool Fails(uint32_t mode, uint64_t call, const char* what);
// The error number that was asked for, or kShort.
int ErrorOf();
int64_t ClockOffset();

}  // namespace faults
