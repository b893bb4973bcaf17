// SPDX-License-Identifier: Apache-2.0
#include "supervise/shared_page.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace hearth {
namespace {

const RequestDigest kA{1, 2}, kB{3, 4};

std::unique_ptr<SharedPage> NewPage() {
  Result<std::unique_ptr<SharedPage>> page = SharedPage::Make();
  EXPECT_TRUE(page.ok()) << page.status().message();
  return *std::move(page);
}

TEST(SharedPage, WhatAProcessDidIsThereAfterItsDeath) {
  const auto page = NewPage();
  page->Reset({}, {});
  const pid_t child = ::fork();
  if (child == 0) {
    page->Beat();
    page->End(page->Begin(kA), true);
    page->Begin(kB);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(page->in_flight(), std::vector{kB});
  EXPECT_EQ(page->num_beats(), 1u);
}

TEST(SharedPage, TellsANewWorkerWhatHappened) {
  const auto page = NewPage();
  page->Begin(kA);
  const std::vector<PoisonList::Entry> requests{{kA, true}, {kB, false}};
  page->Reset({7, true, SIGSEGV, 1234}, requests);
  Result<std::unique_ptr<SharedPage>> other = SharedPage::Adopt(::dup(page->descriptor()));
  ASSERT_TRUE(other.ok()) << other.status().message();
  const WorkerHistory history = (*other)->history();
  EXPECT_EQ(history.num_restarts, 7u);
  EXPECT_TRUE(history.last_by_signal);
  EXPECT_EQ(history.last_number, SIGSEGV);
  EXPECT_EQ(history.last_end_s, 1234);
  EXPECT_TRUE((*other)->IsRefused(kA));
  EXPECT_FALSE((*other)->IsRefused(kB));
  EXPECT_FALSE((*other)->IsRefused({5, 6}));
  EXPECT_TRUE(page->in_flight().empty()) << "of the worker before";
  (*other)->End((*other)->Begin(kB), true);
  EXPECT_EQ(page->landed(), std::vector{kB});
  (*other)->End((*other)->Begin({5, 6}), true);
  EXPECT_EQ(page->landed(), std::vector{kB}) << "nobody suspected the other";
}

TEST(SharedPage, ASuspectThatDidNotLandStaysOne) {
  const auto page = NewPage();
  const std::vector<PoisonList::Entry> requests{{kA, false}};
  page->Reset({}, requests);
  page->End(page->Begin(kA), false);
  EXPECT_TRUE(page->landed().empty());
  EXPECT_TRUE(page->in_flight().empty());
}

TEST(SharedPage, IsFullWithoutHarm) {
  const auto page = NewPage();
  std::vector<int> places;
  for (uint64_t i = 0; i < SharedPage::kMaxFlights; ++i) places.push_back(page->Begin({i, 1}));
  EXPECT_EQ(page->Begin(kA), SharedPage::kNoPlace);
  page->End(SharedPage::kNoPlace, true);
  page->End(places[17], true);
  EXPECT_EQ(page->Begin(kA), places[17]);
  EXPECT_EQ(page->in_flight().size(), SharedPage::kMaxFlights);
}

TEST(SharedPage, ThreadsDoNotTakeEachOthersPlaces) {
  const auto page = NewPage();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&page, t] {
      for (uint64_t i = 0; i < 2000; ++i) page->End(page->Begin({t, i}), true);
      page->Begin({t, 99});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(page->in_flight().size(), 4u);
}

TEST(SharedPage, OtherDescriptorsAreRefused) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  EXPECT_FALSE(SharedPage::Adopt(null).ok());
  ::close(null);
  EXPECT_FALSE(SharedPage::Adopt(-1).ok());
}

}  // namespace
}  // namespace hearth
