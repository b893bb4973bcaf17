// SPDX-License-Identifier: Apache-2.0
#include "base/mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace hearth {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

struct Counter {
  Mutex mu;
  int value HEARTH_GUARDED_BY(mu) = 0;
};

TEST(Mutex, LetsOneInAtATime) {
  Counter counter;
  std::atomic<int> inside{0}, crowded{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 1'000; ++j) {
        const MutexLock lock(counter.mu);
        if (++inside > 1) ++crowded;
        ++counter.value;
        // Others get their turn to come in, were there no lock.
        if (j % 100 == 0) std::this_thread::sleep_for(std::chrono::microseconds(10));
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const MutexLock lock(counter.mu);
  EXPECT_EQ(counter.value, 4'000);
  EXPECT_EQ(crowded, 0);
}

TEST(Mutex, IsFreeBetweenUnlockAndLock) {
  Counter counter;
  MutexLock lock(counter.mu);
  lock.Unlock();
  std::thread([&] {
    const MutexLock other(counter.mu);
    counter.value = 7;
  }).join();
  lock.Lock();
  EXPECT_EQ(counter.value, 7);
}

TEST(Mutex, StaysFreeWhenTheLockEndsUnlocked) {
  Counter counter;
  {
    MutexLock lock(counter.mu);
    lock.Unlock();
  }
  const MutexLock lock(counter.mu);
  EXPECT_EQ(counter.value, 0);
}

struct Flag {
  Mutex mu;
  CondVar changed;
  bool is_up HEARTH_GUARDED_BY(mu) = false;

  void Raise() {
    {
      const MutexLock lock(mu);
      is_up = true;
    }
    changed.NotifyAll();
  }
};

TEST(CondVar, WaitsUntilItIsSo) {
  Flag flag;
  std::thread raiser([&] {
    std::this_thread::sleep_for(milliseconds(10));
    flag.changed.NotifyAll();  // for nothing: the wait must go on
    std::this_thread::sleep_for(milliseconds(10));
    flag.Raise();
  });
  {
    // Taken by the raiser too, so the wait must give it back and take it again.
    const MutexLock lock(flag.mu);
    flag.changed.Wait(flag.mu, [&]() HEARTH_REQUIRES(flag.mu) { return flag.is_up; });
    EXPECT_TRUE(flag.is_up);
  }
  raiser.join();
}

TEST(CondVar, HoldsTheMutexAfterWaiting) {
  Flag flag;
  MutexLock lock(flag.mu);
  flag.changed.WaitFor(flag.mu, milliseconds(1));
  std::atomic<bool> raised{false};
  std::thread raiser([&] {
    flag.Raise();
    raised = true;
  });
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(raised);
  EXPECT_FALSE(flag.is_up);
  lock.Unlock();
  raiser.join();
  lock.Lock();
  EXPECT_TRUE(flag.is_up);
}

TEST(CondVar, GivesUpWhenTimeIsUp) {
  Flag flag;
  const MutexLock lock(flag.mu);
  const auto is_up = [&]() HEARTH_REQUIRES(flag.mu) { return flag.is_up; };
  const Steady::time_point start = Steady::now();
  EXPECT_FALSE(flag.changed.WaitFor(flag.mu, milliseconds(20), is_up));
  EXPECT_GE(Steady::now() - start, milliseconds(20));
  EXPECT_FALSE(flag.changed.WaitUntil(flag.mu, Steady::now() + milliseconds(20), is_up));
  EXPECT_GE(Steady::now() - start, milliseconds(40));
}

TEST(CondVar, SaysThatItCameInTime) {
  Flag flag;
  std::thread raiser([&] { flag.Raise(); });
  {
    const MutexLock lock(flag.mu);
    const auto is_up = [&]() HEARTH_REQUIRES(flag.mu) { return flag.is_up; };
    EXPECT_TRUE(flag.changed.WaitFor(flag.mu, std::chrono::minutes(5), is_up));
    // What is so already is not waited for.
    EXPECT_TRUE(flag.changed.WaitUntil(flag.mu, Steady::now(), is_up));
  }
  raiser.join();
}

}  // namespace
}  // namespace hearth
