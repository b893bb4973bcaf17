// SPDX-License-Identifier: Apache-2.0
#include "server/turns/readers.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>

namespace hearth {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

HttpRequest From(const std::string& peer, const std::string& key = "") {
  HttpRequest http;
  http.peer = peer;
  http.key_id = key;
  return http;
}

int Niceness() { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); }

// Of those who read with patience; ctest may be nice itself.
int Patience() { return std::min(19, Niceness() + 10); }

// How the thread that reads such a body treats others.
int ReadsWith(Readers& readers, const std::string& client, size_t bytes) {
  std::promise<int> found;
  EXPECT_TRUE(readers.Offer(client, bytes, [&] { found.set_value(Niceness()); }));
  return found.get_future().get();
}

void Compute(double bound_s) {
  timespec now{}, began{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
  do {
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while (static_cast<double>(now.tv_sec - began.tv_sec) +
               1e-9 * static_cast<double>(now.tv_nsec - began.tv_nsec) <
           bound_s);
}

TEST(ClientOf, IsTheKeyOrTheNetwork) {
  EXPECT_EQ(ClientOf(From("10.0.0.7")), "10.0.0.7");
  EXPECT_EQ(ClientOf(From("unix")), "unix");
  EXPECT_EQ(ClientOf(From("10.0.0.7", "k1")), ClientOf(From("10.0.0.8", "k1")));
  EXPECT_NE(ClientOf(From("10.0.0.7", "k1")), ClientOf(From("10.0.0.7", "k2")));
  EXPECT_EQ(ClientOf(From("2001:db8:1:2::5")), ClientOf(From("2001:db8:1:2:a:b:c:d")));
  EXPECT_NE(ClientOf(From("2001:db8:1:2::5")), ClientOf(From("2001:db8:1:3::5")));
  EXPECT_NE(ClientOf(From("::ffff:10.0.0.7")), ClientOf(From("::ffff:10.0.0.8")));
}

TEST(ReadingCosts, HalveInASecond) {
  ReadingCosts costs;
  const ReadingCosts::Time now{};
  EXPECT_EQ(costs.recent("a", now), 0);
  costs.Add("a", 0.4, now);
  costs.Add("a", 0.4, now + seconds(1));
  EXPECT_NEAR(costs.recent("a", now + seconds(1)), 0.6, 1e-9);
  EXPECT_NEAR(costs.recent("a", now + seconds(3)), 0.15, 1e-9);
  EXPECT_EQ(costs.recent("b", now), 0);
}

TEST(ReadingCosts, ForgetThoseWhoUsedLittleWhenTheyAreMany) {
  ReadingCosts costs;
  const ReadingCosts::Time now{};
  costs.Add("hog", 10, now);
  for (int i = 0; i < 20'000; ++i) costs.Add(std::to_string(i), 0.001, now);
  EXPECT_LE(costs.size(), 4096u);
  EXPECT_EQ(costs.recent("hog", now), 10);
}

TEST(Readers, LargeBodiesAreReadWithPatience) {
  Readers readers({});
  EXPECT_EQ(ReadsWith(readers, "a", 1000), Niceness());
  EXPECT_EQ(ReadsWith(readers, "a", 100'000), Patience());
  EXPECT_EQ(ReadsWith(readers, "a", 1000), Niceness());
}

TEST(Readers, SoAreSmallOnesOfClientsWhoUsedMuch) {
  Readers readers({.much_s = 0.01});  // far below, so that a slow machine forgets nothing
  std::promise<void> done;
  readers.Offer("a", 100, [&] {
    Compute(0.3);
    done.set_value();
  });
  done.get_future().wait();
  EXPECT_EQ(ReadsWith(readers, "b", 100), Niceness());
  int found = ReadsWith(readers, "a", 100);
  // Its time is booked after its answer: the very next one may have been too early.
  for (int i = 0; i < 50 && found != Patience(); ++i) {
    std::this_thread::sleep_for(milliseconds(1));
    found = ReadsWith(readers, "a", 100);
  }
  EXPECT_EQ(found, Patience());
}

// Sent together, let in one by one: those behind the first expensive one lose their place.
TEST(Readers, WhatWaitsIsJudgedWhenItsTurnComes) {
  Readers readers({.much_s = 0.01, .num_quick = 1});
  std::promise<int> second;
  readers.Offer("a", 100, [] { Compute(0.3); });
  readers.Offer("a", 100, [&] { second.set_value(Niceness()); });
  EXPECT_EQ(second.get_future().get(), Patience());
}

TEST(Readers, ReadAllBeforeTheyStop) {
  Readers readers({});
  std::atomic<int> done = 0;
  for (int i = 0; i < 200; ++i) {
    readers.Offer("a", i % 2 == 0 ? 100 : 100'000, [&] {
      Compute(0.002);
      ++done;
    });
  }
  readers.Stop();
  EXPECT_EQ(done, 200);
}

}  // namespace
}  // namespace hearth
