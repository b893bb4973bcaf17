// SPDX-License-Identifier: Apache-2.0
#include "server/turns/workers.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace hearth {
namespace {

// Work that ends when it is told to. Whatever work touches is declared before its workers: they
// finish what they have begun, and only then are destroyed.
struct Gate {
  std::promise<void> begun, opened;
  Workers::Work Work() {
    return [this] {
      begun.set_value();
      opened.get_future().wait();
    };
  }
  void WaitUntilBegun() { begun.get_future().wait(); }
  void Open() { opened.set_value(); }
};

class Names {
 public:
  Workers::Work Add(std::string name) {
    return [this, name = std::move(name)] {
      const MutexLock lock(mu_);
      names_ += name;
    };
  }
  std::string get() {
    const MutexLock lock(mu_);
    return names_;
  }

 private:
  Mutex mu_;
  std::string names_ HEARTH_GUARDED_BY(mu_);
};

// A clock that work moves itself.
struct FakeClock {
  std::atomic<double> now_s = 0;
  WorkerOptions Options() {
    WorkerOptions options;
    options.used_s = [this] { return now_s.load(); };
    return options;
  }
  Workers::Work Use(double seconds, Workers::Work then) {
    return [this, seconds, then = std::move(then)] {
      now_s = now_s + seconds;
      then();
    };
  }
};

TEST(Workers, ClientsTakeTurns) {
  FakeClock clock;  // stands: turns are even
  Names names;
  Gate gate;
  Workers workers(clock.Options());
  workers.Post("gate", gate.Work());
  gate.WaitUntilBegun();
  for (const char* name : {"1", "2", "3", "4"}) workers.Post("a", names.Add(name));
  for (const char* name : {"x", "y"}) workers.Post("b", names.Add(name));
  gate.Open();
  workers.Stop();
  EXPECT_EQ(names.get(), "1x2y34");
}

TEST(Workers, OneClientLeavesAThreadToOthers) {
  Gate gates[3];
  std::promise<void> done;
  Workers workers({.num_threads = 3});
  for (Gate& gate : gates) workers.Post("a", gate.Work());
  gates[0].WaitUntilBegun();
  gates[1].WaitUntilBegun();
  workers.Post("b", [&] { done.set_value(); });
  ASSERT_EQ(done.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  // The third waits for one of its own to end, although a thread is free.
  EXPECT_EQ(gates[2].begun.get_future().wait_for(std::chrono::milliseconds(50)),
            std::future_status::timeout);
  for (Gate& gate : gates) gate.Open();
}

TEST(Workers, OneClientHasHalfOfTheQueue) {
  Names names;
  Gate gate;
  Workers workers({.num_threads = 1, .max_queued = 4});
  workers.Post("gate", gate.Work());
  gate.WaitUntilBegun();
  EXPECT_TRUE(workers.Offer("a", names.Add("a")));
  EXPECT_TRUE(workers.Offer("a", names.Add("a")));
  EXPECT_FALSE(workers.Offer("a", names.Add("a")));
  EXPECT_TRUE(workers.Offer("b", names.Add("b")));
  EXPECT_TRUE(workers.Offer("c", names.Add("c")));
  EXPECT_FALSE(workers.Offer("d", names.Add("d")));
  workers.Post("d", names.Add("d"));  // what was promised is never refused
  gate.Open();
  workers.Stop();
  EXPECT_EQ(names.get(), "abcda");
}

TEST(Workers, DoesAllThatIsQueuedBeforeItStops) {
  std::atomic<int> done = 0;
  Workers workers({.num_threads = 4});
  for (int i = 0; i < 2000; ++i) workers.Post(std::to_string(i % 7), [&done] { ++done; });
  workers.Stop();
  EXPECT_EQ(done, 2000);
}

TEST(Workers, LetsGoOfWorkBeforeTheNext) {
  std::promise<bool> is_gone;
  Workers workers({.num_threads = 1});
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> weak = held;
  workers.Post("a", [held = std::move(held)] {});
  workers.Post("b", [&] { is_gone.set_value(weak.expired()); });
  EXPECT_TRUE(is_gone.get_future().get());
}

TEST(Workers, PatientThreadsAreNicerThanTheirMaker) {
  const auto niceness = [] { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); };
  std::promise<int> found;
  Workers workers({.num_threads = 1, .niceness = 3});
  workers.Post("a", [&] { found.set_value(niceness()); });
  EXPECT_EQ(found.get_future().get(), std::min(19, niceness() + 3));
}

TEST(Workers, WhoUsedMoreTimeWaitsLonger) {
  FakeClock clock;
  Names names;
  Gate gate;
  Workers workers(clock.Options());
  workers.Post("gate", gate.Work());
  gate.WaitUntilBegun();
  for (int i = 0; i < 3; ++i) workers.Post("dear", clock.Use(4, names.Add("D")));
  for (int i = 0; i < 9; ++i) workers.Post("cheap", clock.Use(1, names.Add("c")));
  gate.Open();
  workers.Stop();
  // Four cheap ones for each dear one, and none of them twice in a row while the other is behind.
  EXPECT_EQ(names.get(), "DccccDccccDc");
}

TEST(Workers, WhoComesLaterHasNotSavedTimeUp) {
  FakeClock clock;
  Names names;
  Gate first, second;
  Workers workers(clock.Options());
  workers.Post("a", first.Work());
  first.WaitUntilBegun();
  workers.Post("a", clock.Use(9, names.Add("a")));
  workers.Post("a", second.Work());
  workers.Post("a", clock.Use(1, names.Add("a")));
  first.Open();
  second.WaitUntilBegun();
  // `b` starts where `a` is, and has its turn next; then they alternate.
  for (int i = 0; i < 3; ++i) workers.Post("b", clock.Use(1, names.Add("b")));
  workers.Post("a", clock.Use(1, names.Add("a")));
  second.Open();
  workers.Stop();
  EXPECT_EQ(names.get(), "ababab");
}

TEST(Workers, WhatWasUsedIsRememberedWhileOthersWait) {
  FakeClock clock;
  Names names;
  Gate gate, end;
  Workers workers(clock.Options());
  workers.Post("hog", gate.Work());
  gate.WaitUntilBegun();
  for (int i = 0; i < 2; ++i) workers.Post("x", clock.Use(1, names.Add("x")));
  workers.Post("x", end.Work());
  for (int i = 0; i < 2; ++i) workers.Post("x", clock.Use(1, names.Add("x")));
  clock.now_s = clock.now_s + 100;
  gate.Open();
  end.WaitUntilBegun();
  workers.Post("hog", names.Add("H"));  // one at a time does not reset what it has used
  end.Open();
  workers.Stop();
  EXPECT_EQ(names.get(), "xxxxH");
}

}  // namespace
}  // namespace hearth
