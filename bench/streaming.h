// SPDX-License-Identifier: Apache-2.0
// What benches of streaming kernels share: more weights than any cache holds, pinned threads timed
// by their own processor time, and a plain read of the same bytes to compare with.
#pragma once
#include <benchmark/benchmark.h>
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <functional>
#include <thread>
#include <vector>

#include "base/check.h"
#include "platform/memory.h"
namespace hearth {

// More than any last-level cache, and gpt-oss's most common matrix.
inline constexpr int64_t kPoolBytes = int64_t{1536} << 20;
inline constexpr int kRows = 2880, kCols = 2880;

inline double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Runs work(thread) on pinned threads and returns the processor time of the slowest.
inline double Slowest(int num_threads, const std::function<void(int)>& work) {
  std::vector<double> seconds(static_cast<size_t>(num_threads));
  std::vector<std::thread> threads;
  for (int i = 0; i < num_threads; ++i) {
    threads.emplace_back([&, i] {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(i, &set);
      pthread_setaffinity_np(pthread_self(), sizeof set, &set);
      const double start = ThreadSeconds();
      work(i);
      seconds[static_cast<size_t>(i)] = ThreadSeconds() - start;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return *std::max_element(seconds.begin(), seconds.end());
}

inline uint8_t* Pool() {
  static LargeBuffer* const pool = [] {
    auto made = LargeBuffer::Make(static_cast<size_t>(kPoolBytes));
    HEARTH_CHECK(made.ok());
    std::memset(made->bytes().data(), 0x35, made->bytes().size());
    return new LargeBuffer(*std::move(made));
  }();
  return reinterpret_cast<uint8_t*>(pool->bytes().data());
}

__attribute__((target("avx2"))) inline void Read(const uint8_t* at, int64_t bytes) {
  __m256i sums[4] = {};
  for (int64_t i = 0; i + 256 <= bytes; i += 256) {
    for (int line = 0; line < 256; line += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(at + i + 4096 + line), _MM_HINT_T0);
    }
    for (int j = 0; j < 8; ++j) {
      const __m256i value = _mm256_load_si256(reinterpret_cast<const __m256i*>(at + i + j * 32));
      sums[j % 4] = _mm256_add_epi64(sums[j % 4], value);
    }
  }
  benchmark::DoNotOptimize(sums);
}

}  // namespace hearth
