// SPDX-License-Identifier: Apache-2.0
#include "cpu/roofline.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "platform/isa.h"

namespace hearth {
namespace {

constexpr int kPasses = 3;
constexpr int64_t kLeastBuffer = int64_t{1} << 30;
constexpr int64_t kPage = 4096;

uint64_t ReadMemoryPlain(const std::byte* at, int64_t num_bytes) {
  uint64_t sum = 0, word = 0;
  for (int64_t i = 0; i < num_bytes; i += 8) {
    std::memcpy(&word, at + i, 8);
    sum += word;
  }
  return sum;
}

uint64_t ReadMemory(const std::byte* at, int64_t num_bytes, int num_streams) {
  if (BestIsa() >= Isa::kAvx512Vnni) return ReadMemoryAvx512(at, num_bytes, num_streams);
  if (BestIsa() >= Isa::kAvx2) return ReadMemoryAvx2(at, num_bytes, num_streams);
  return ReadMemoryPlain(at, num_bytes);
}

// Seconds of the best pass of body(worker) on every thread; the wall clock, because a step's end
// is its slowest thread's.
template <class F>
double BestPass(ThreadPool& pool, F&& body) {
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    pool.Run(pool.size(), 1, [&](Range range, int) {
      for (int i = range.begin; i < range.end; ++i) body(i);
    });
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = pass == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

struct alignas(64) Line {
  std::atomic<int> round{0};
};

// Mean seconds in which this thread has seen so many lines that another thread wrote.
double SecondsToLook(ThreadPool& pool, int num_lines) {
  constexpr int kRounds = 2000, kLast = -1;
  constexpr int64_t kPatience = 100'000'000;  // nanoseconds: a busy machine ends the rounds early
  std::vector<Line> lines(static_cast<size_t>(num_lines));
  Line asked, done;
  int64_t total = 0;
  int rounds = 0;
  const auto answer = [&] {
    for (int round = 0, seen = 0; (round = asked.round.load()) != kLast; seen = round) {
      if (round == seen) {
        _mm_pause();
        continue;
      }
      for (Line& line : lines) line.round.store(round, std::memory_order_release);
      done.round.store(round, std::memory_order_release);
    }
  };
  const auto look = [&] {
    const int64_t began = SteadyNanoseconds();
    while (rounds < kRounds && SteadyNanoseconds() - began < kPatience) {
      asked.round.store(++rounds);
      while (done.round.load() != rounds) _mm_pause();
      const int64_t start = SteadyNanoseconds();
      for (const Line& line : lines) {
        while (line.round.load() != rounds) _mm_pause();
      }
      total += SteadyNanoseconds() - start;
    }
    asked.round.store(kLast);
  };
  pool.Run(pool.size(), 1, [&](Range range, int) {
    if (range.begin == 0) look();
    if (range.begin == 1) answer();
  });
  return 1e-9 * static_cast<double>(total) / rounds;
}

}  // namespace

Result<Rooflines> Rooflines::Make(int num_threads) {
  const int64_t cache = std::max<int64_t>(0, ::sysconf(_SC_LEVEL3_CACHE_SIZE));
  const int64_t bytes = std::max(kLeastBuffer, 4 * cache) / kPage * kPage;
  HEARTH_ASSIGN(LargeBuffer buffer, LargeBuffer::Make(static_cast<size_t>(bytes)));
  auto pool = std::make_unique<ThreadPool>(num_threads);
  // Each thread touches first what it will read, so that pages lie near it.
  pool->Run(static_cast<int>(bytes / kPage), 1, [&](Range range, int) {
    std::memset(buffer.bytes().data() + range.begin * kPage, 0x35,
                static_cast<size_t>((range.end - range.begin) * kPage));
  });
  return Rooflines(std::move(pool), std::move(buffer));
}

double Rooflines::ReadBytesPerSecond(int num_streams) {
  const int64_t pages = buffer_bytes() / kPage, threads = pool_->size();
  std::atomic<uint64_t> sum{0};
  const double seconds = BestPass(*pool_, [&](int thread) {
    const int64_t begin = pages * thread / threads, end = pages * (thread + 1) / threads;
    sum += ReadMemory(buffer_.bytes().data() + begin * kPage, (end - begin) * kPage, num_streams);
  });
  sink_ += sum;
  return static_cast<double>(buffer_bytes()) / seconds;
}

double Rooflines::LookSeconds() {
  if (pool_->size() < 2) return 0;
  constexpr int kFew = 1, kMany = 16;
  double few = 0, many = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double now_few = SecondsToLook(*pool_, kFew), now_many = SecondsToLook(*pool_, kMany);
    few = pass == 0 ? now_few : std::min(few, now_few);
    many = pass == 0 ? now_many : std::min(many, now_many);
  }
  return std::max(0.0, many - few) / (kMany - kFew);
}

std::optional<double> Rooflines::VnniOpsPerSecond() {
  if (BestIsa() < Isa::kAvx512Vnni) return std::nullopt;
  constexpr int64_t kRounds = 3'000'000;  // about 35 ms at one instruction a cycle and 2 GHz
  std::atomic<uint64_t> sum{0};
  const double seconds =
      BestPass(*pool_, [&](int) { sum += static_cast<uint64_t>(RepeatVnniAvx512(kRounds)); });
  sink_ += sum;
  return static_cast<double>(kRounds * kVnniOps * pool_->size()) / seconds;
}

std::optional<double> Rooflines::AmxOpsPerSecond() {
  if (BestIsa() < Isa::kAmx) return std::nullopt;
  constexpr int64_t kRounds = 300'000;  // about 35 ms at a tile every 16 cycles and 2 GHz
  std::atomic<uint64_t> sum{0};
  const double seconds =
      BestPass(*pool_, [&](int) { sum += static_cast<uint64_t>(RepeatTilesAmx(kRounds)); });
  sink_ += sum;
  return static_cast<double>(kRounds * kTileOps * pool_->size()) / seconds;
}

}  // namespace hearth
