// SPDX-License-Identifier: Apache-2.0
#include "platform/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "platform/topology.h"

namespace hearth {
namespace {

// More threads than this machine may have: the pool must also work oversubscribed.
constexpr int kSizes[] = {1, 2, 3, 7};

TEST(ThreadPool, CoversEveryIndexOnce) {
  for (const int size : kSizes) {
    ThreadPool pool(size);
    EXPECT_EQ(pool.size(), size);
    for (const int n : {0, 1, 2, 5, 16, 100, 1000}) {
      for (const int grain : {1, 3, 16}) {
        std::vector<int> hits(static_cast<size_t>(n));
        pool.Run(n, grain, [&](Range range, int worker) {
          EXPECT_GE(worker, 0);
          EXPECT_LT(worker, size);
          EXPECT_EQ(range.begin % grain, 0);
          for (int i = range.begin; i < range.end; ++i) ++hits[static_cast<size_t>(i)];
        });
        EXPECT_EQ(hits, std::vector<int>(static_cast<size_t>(n), 1)) << size << " " << n;
      }
    }
  }
}

// One worker is slow, so others take over pieces of its share.
TEST(ThreadPool, BalancedWorkIsDoneOnce) {
  for (const int size : kSizes) {
    ThreadPool pool(size);
    for (const int n : {0, 1, 5, 16, 100, 1001}) {
      for (const int grain : {1, 3, 16}) {
        std::vector<int> hits(static_cast<size_t>(n));
        std::atomic<int> pieces{0};
        pool.RunBalanced(n, grain, [&](Range range, int worker) {
          if (worker == size - 1 && n == 100) {
            std::this_thread::sleep_for(std::chrono::microseconds(200));
          }
          ++pieces;
          EXPECT_LT(worker, size);
          EXPECT_EQ(range.begin % grain, 0);
          for (int i = range.begin; i < range.end; ++i) ++hits[static_cast<size_t>(i)];
        });
        EXPECT_EQ(hits, std::vector<int>(static_cast<size_t>(n), 1)) << size << " " << n;
        if (size > 1) {
          EXPECT_EQ(pieces, (n + grain - 1) / grain) << size << " " << n;
        }
      }
    }
  }
}

TEST(ThreadPool, SlowWorkersAreHelped) {
  ThreadPool pool(2);
  std::atomic<int> helped{0};
  pool.RunBalanced(64, 1, [&](Range range, int worker) {
    if (worker == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (worker == 0 && range.begin >= 32) ++helped;
  });
  EXPECT_GT(helped, 16);
}

TEST(ThreadPool, SameSplitEveryTime) {
  ThreadPool pool(3);
  std::vector<Range> first(3, {0, 0}), again(3, {0, 0});
  const auto note = [](std::vector<Range>& ranges) {
    return [&ranges](Range range, int worker) { ranges[static_cast<size_t>(worker)] = range; };
  };
  pool.Run(100, 4, note(first));
  for (int round = 0; round < 50; ++round) {
    pool.Run(100, 4, note(again));
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(first[i].begin, again[i].begin);
      EXPECT_EQ(first[i].end, again[i].end);
    }
  }
}

TEST(ThreadPool, UnevenWorkIsAllDone) {
  for (const int size : kSizes) {
    ThreadPool pool(size);
    std::vector<int> hits(500);
    pool.RunUneven(500, [&](int i, int) {
      volatile int spin = i % 7 == 0 ? 2000 : 1;
      while (spin > 0) spin = spin - 1;
      ++hits[static_cast<size_t>(i)];
    });
    EXPECT_EQ(std::accumulate(hits.begin(), hits.end(), 0), 500);
  }
}

// One worker sleeps while the others have nothing to do: about one busy worker of three.
TEST(ThreadPool, CountsBusyTimeWhenAsked) {
  ThreadPool pool(3);
  const auto loop = [&pool] {
    pool.Run(3, 1, [](Range, int worker) {
      if (worker == 2) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    });
  };
  loop();
  EXPECT_EQ(pool.loop_time().loops, 0);
  pool.CountTime();
  const auto start = std::chrono::steady_clock::now();
  loop();
  loop();
  const std::chrono::nanoseconds wall = std::chrono::steady_clock::now() - start;
  const ThreadPool::LoopTime time = pool.loop_time();
  EXPECT_GE(time.loops, 40'000'000);
  EXPECT_LE(time.loops, wall.count());
  EXPECT_GE(time.busy, 40'000'000);
  // The idle two may lose their processor within their empty shares, but not for all of the time.
  EXPECT_LT(time.busy, 2 * time.loops);
  pool.Run(1, 1, [](Range, int) {});
  EXPECT_EQ(pool.loop_time().loops, time.loops) << "the caller alone is no loop";
}

TEST(ThreadPool, WorkersStayOnTheirOwnProcessor) {
  const std::vector<int> allowed = AllowedCpus();
  const int size = static_cast<int>(allowed.size());
  ThreadPool pool(size);
  std::vector<std::vector<int>> seen(allowed.size());
  pool.Run(size, 1, [&](Range, int worker) { seen[static_cast<size_t>(worker)] = AllowedCpus(); });
  EXPECT_EQ(seen[0], allowed) << "the caller is left alone";
  const std::vector<int> cpus = WorkerCpus(MachineCpus(), allowed, size);
  for (size_t i = 1; i < seen.size(); ++i) EXPECT_EQ(seen[i], std::vector<int>{cpus[i]});
}

TEST(ThreadPool, TooManyWorkersAreNotPinned) {
  const std::vector<int> allowed = AllowedCpus();
  const int size = static_cast<int>(allowed.size()) + 1;
  ThreadPool pool(size);
  std::vector<std::vector<int>> seen(static_cast<size_t>(size));
  pool.Run(size, 1, [&](Range, int worker) { seen[static_cast<size_t>(worker)] = AllowedCpus(); });
  for (const std::vector<int>& one : seen) EXPECT_EQ(one, allowed);
}

// What one loop wrote, the next must see: thousands of short loops in a row, with pauses that let
// the workers fall asleep.
TEST(ThreadPool, LoopsAreOrdered) {
  ThreadPool pool(3);
  std::vector<int64_t> values(64, 1);
  for (int round = 0; round < 3000; ++round) {
    pool.Run(64, 1, [&](Range range, int) {
      for (int i = range.begin; i < range.end; ++i) ++values[static_cast<size_t>(i)];
    });
    // Worker shares read what other workers wrote in the loop before.
    pool.Run(64, 1, [&](Range range, int) {
      for (int i = range.begin; i < range.end; ++i) {
        ASSERT_EQ(values[static_cast<size_t>(63 - i)], round + 2);
      }
    });
    if (round % 1000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace
}  // namespace hearth
