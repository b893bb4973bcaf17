// SPDX-License-Identifier: Apache-2.0
#include "server/models/model_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace hearth {
namespace {

using Kind = PoolAction::Kind;

// A pool of models "a", "b", ... of so many bytes; jobs are done when the test says so.
class PoolTest : public ::testing::Test {
 protected:
  void Start(int64_t budget, std::vector<int64_t> sizes, std::vector<bool> pins = {}) {
    pool_ = std::make_unique<ModelPool>(PoolOptions{.budget_bytes = budget, .patience_us = 1000});
    sizes_ = std::move(sizes);
    for (size_t i = 0; i < sizes_.size(); ++i) {
      pool_->Offer(std::string(1, static_cast<char>('a' + i)), i < pins.size() && pins[i], 10'000);
    }
    pool_->Tick(now_, out_);
    while (FinishJob()) {
    }
    out_.clear();
  }
  ModelTicket Ask(int model, std::optional<int64_t> keep_alive_us = {},
                  const std::string& client = "ada") {
    pool_->Ask(model, client, ++last_ticket_, keep_alive_us, now_, out_);
    return last_ticket_;
  }
  // Ends the job that is under way, if one is; true when one was.
  bool FinishJob(const Status& status = Status()) {
    const auto job = std::find_if(out_.begin(), out_.end(), [](const PoolAction& each) {
      return each.kind <= Kind::kUnload;
    });
    if (job == out_.end()) return false;
    const PoolAction done = *job;
    out_.erase(job);
    if (done.kind == Kind::kLoad) pool_->OnLoaded(done.model, status, now_, out_);
    if (done.kind == Kind::kUnload) pool_->OnUnloaded(done.model, now_, out_);
    if (done.kind == Kind::kMeasure && status.ok()) {
      pool_->OnMeasured(done.model, sizes_[static_cast<size_t>(done.model)], now_, out_);
    } else if (done.kind == Kind::kMeasure) {
      pool_->OnMeasured(done.model, status, now_, out_);
    }
    return true;
  }
  void FinishJobs() {
    while (FinishJob()) {
    }
  }
  bool Was(Kind kind, ModelTicket ticket) const {
    return std::any_of(out_.begin(), out_.end(), [&](const PoolAction& each) {
      return each.kind == kind && each.ticket == ticket;
    });
  }
  // The job under way, as "load b"; "" when there is none.
  std::string Job() const {
    for (const PoolAction& each : out_) {
      const char* const names[] = {"measure ", "load ", "unload "};
      if (each.kind <= Kind::kUnload) {
        return names[static_cast<int>(each.kind)] + pool_->at(each.model).name;
      }
    }
    return "";
  }
  void Release(int model, const std::string& client = "ada") {
    pool_->Release(model, client, now_, out_);
  }

  std::unique_ptr<ModelPool> pool_;
  std::vector<int64_t> sizes_;
  PoolActions out_;
  int64_t now_ = 100'000;
  ModelTicket last_ticket_ = 0;
};

TEST_F(PoolTest, LoadsWhatIsAskedForAndGrantsAllWhoWaited) {
  Start(10, {4, 4});
  const ModelTicket first = Ask(0), second = Ask(0);
  EXPECT_EQ(Job(), "load a");
  EXPECT_FALSE(Was(Kind::kGrant, first));
  FinishJobs();
  EXPECT_TRUE(Was(Kind::kGrant, first) && Was(Kind::kGrant, second));
  EXPECT_EQ(pool_->used_bytes(), 4);
  EXPECT_TRUE(Was(Kind::kGrant, Ask(0))) << "a loaded one is had at once";
  EXPECT_EQ(pool_->at(0).num_users, 3);
}

TEST_F(PoolTest, TheLeastRecentlyUsedLeaves) {
  Start(10, {5, 5, 5});
  Ask(0), FinishJobs(), Release(0);
  ++now_;
  Ask(1), FinishJobs(), Release(1);
  ++now_;
  Ask(0), Release(0);
  Ask(2);
  EXPECT_EQ(Job(), "unload b");
  FinishJob();
  EXPECT_EQ(Job(), "load c");
  EXPECT_LE(pool_->used_bytes(), 10);
}

TEST_F(PoolTest, BusyOnesAreLeftInPeaceUntilSomebodyWaitedTooLong) {
  Start(10, {6, 6});
  Ask(0), FinishJobs();
  const ModelTicket waiting = Ask(1);
  EXPECT_EQ(Job(), "");
  EXPECT_TRUE(Was(Kind::kGrant, Ask(0))) << "not yet claimed";
  EXPECT_EQ(pool_->NextTickUs(), now_ + 1000);
  now_ += 1000;
  pool_->Tick(now_, out_);
  const ModelTicket late = Ask(0);
  EXPECT_FALSE(Was(Kind::kGrant, late)) << "claimed: it takes no further requests";
  EXPECT_EQ(pool_->NextTickUs(), -1) << "no tick helps now";
  Release(0), Release(0);
  EXPECT_EQ(Job(), "unload a");
  FinishJob();
  EXPECT_EQ(Job(), "load b");
  FinishJob();
  EXPECT_TRUE(Was(Kind::kGrant, waiting));
  Release(1);
  FinishJobs();
  EXPECT_TRUE(Was(Kind::kGrant, late)) << "in its turn";
}

TEST_F(PoolTest, AClaimLapsesWithItsClaimant) {
  Start(10, {6, 6});
  Ask(0), FinishJobs();
  const ModelTicket waiting = Ask(1);
  now_ += 1000;
  pool_->Tick(now_, out_);
  const ModelTicket late = Ask(0);
  EXPECT_FALSE(Was(Kind::kGrant, late));
  pool_->Forget(waiting, now_, out_);
  EXPECT_TRUE(Was(Kind::kGrant, late));
}

TEST_F(PoolTest, WhatCanNeverFitIsRefusedWithTheNumbers) {
  constexpr int64_t kGib = int64_t{1} << 30;
  Start(4 * kGib, {5 * kGib, 2 * kGib, 3 * kGib}, {false, true});
  const ModelTicket large = Ask(0), beside = Ask(2);
  ASSERT_TRUE(Was(Kind::kRefuse, large) && Was(Kind::kRefuse, beside));
  EXPECT_EQ(out_[1].why.message(),
            "\"c\" needs 3.00 GiB, and there are 4.00 GiB for all models, of which 2.00 GiB are "
            "pinned");
}

TEST_F(PoolTest, PinnedOnesAreLoadedAtTheStartAndStay) {
  Start(10, {5, 5, 5}, {true});
  EXPECT_EQ(pool_->at(0).state, ModelState::kLoaded);
  Ask(1), FinishJobs(), Release(1);
  Ask(2), FinishJobs();
  EXPECT_EQ(pool_->at(0).state, ModelState::kLoaded);
  EXPECT_EQ(pool_->at(1).state, ModelState::kOffered);
  EXPECT_FALSE(pool_->Unload(0, now_, out_).ok());
  now_ += 1'000'000;
  pool_->Tick(now_, out_);
  EXPECT_EQ(Job(), "");
  pool_->Load(0, false, {}, now_, out_);
  now_ += 10'000;
  pool_->Tick(now_, out_);
  EXPECT_EQ(Job(), "unload a") << "unpinned, it expires like others";
}

TEST_F(PoolTest, KeepAliveSaysHowLongIdleOnesStay) {
  Start(10, {3, 3, 3});
  Ask(0, 500), Ask(1, 0), Ask(2, -1);
  FinishJobs();
  now_ += 5000;
  pool_->Tick(now_, out_);
  EXPECT_EQ(Job(), "") << "all are in use";
  Release(1);
  EXPECT_EQ(Job(), "unload b") << "at once";
  FinishJobs();
  Release(0), Release(2);
  EXPECT_EQ(pool_->NextTickUs(), now_ + 500);
  now_ += 500;
  pool_->Tick(now_, out_);
  EXPECT_EQ(Job(), "unload a");
  FinishJobs();
  EXPECT_EQ(pool_->NextTickUs(), -1) << "the last one never expires";
}

TEST_F(PoolTest, FailuresAreToldAndTriedAgain) {
  Start(10, {3});
  const ModelTicket first = Ask(0);
  FinishJob(Status(Code::kCorrupt, "cut short"));
  ASSERT_TRUE(Was(Kind::kRefuse, first));
  EXPECT_EQ(pool_->at(0).error, "cut short");
  EXPECT_EQ(pool_->used_bytes(), 0);
  const ModelTicket second = Ask(0);
  EXPECT_EQ(Job(), "measure a") << "the file may have changed";
  FinishJobs();
  EXPECT_TRUE(Was(Kind::kGrant, second));
  EXPECT_EQ(pool_->at(0).error, "");
}

TEST_F(PoolTest, UnloadWaitsForUsersAndALaterRequestLoadsItAgain) {
  Start(10, {3});
  Ask(0), FinishJobs();
  EXPECT_TRUE(pool_->Unload(0, now_, out_).ok());
  EXPECT_EQ(Job(), "");
  const ModelTicket later = Ask(0);
  EXPECT_FALSE(Was(Kind::kGrant, later));
  Release(0);
  EXPECT_EQ(Job(), "unload a");
  FinishJobs();
  EXPECT_TRUE(Was(Kind::kGrant, later));
}

TEST_F(PoolTest, ClosedItRefusesEverybody) {
  Start(10, {6, 6});
  Ask(0), FinishJobs();
  const ModelTicket waiting = Ask(1);
  pool_->Close(now_, out_);
  EXPECT_TRUE(Was(Kind::kRefuse, waiting) && Was(Kind::kRefuse, Ask(0)));
  Release(0);
  EXPECT_EQ(Job(), "");
}

TEST_F(PoolTest, WhoeverFitsPassesABlockedOneThatIsYoung) {
  Start(10, {6, 6, 4});
  Ask(0), FinishJobs();
  Ask(1);
  Ask(2);
  EXPECT_EQ(Job(), "load c");
  FinishJobs();
  Release(2), FinishJobs();
  now_ += 1000;
  pool_->Tick(now_, out_);
  EXPECT_TRUE(pool_->at(0).is_claimed);
}

// Two models of which one has room; each takes 10 ms to load. "ada" has used the first lately.
class SharesTest : public PoolTest {
 protected:
  void SetUp() override {
    Start(10, {6, 6});
    Ask(0, -1), FinishLoads(), Release(0);
  }
  void FinishLoads() {
    while (!Job().empty()) {
      now_ += Job().starts_with("load") ? 10'000 : 0;
      FinishJob();
    }
  }
  // Ticks until there is a job, or `until_us`.
  void RunUntil(int64_t until_us) {
    while (Job().empty() && pool_->NextTickUs() >= 0 && pool_->NextTickUs() <= until_us) {
      now_ = pool_->NextTickUs();
      pool_->Tick(now_, out_);
    }
    if (Job().empty()) now_ = until_us;
  }
};

TEST_F(SharesTest, AModelStaysForAWhileAfterOthersUsedIt) {
  const int64_t loaded_us = now_;
  const ModelTicket other = Ask(1, {}, "bob");
  EXPECT_EQ(Job(), "") << "idle, and ada's";
  EXPECT_EQ(pool_->num_deferred(), 1);
  EXPECT_TRUE(Was(Kind::kGrant, Ask(0))) << "which she has at once";
  RunUntil(loaded_us + 30'000);
  EXPECT_EQ(Job(), "");
  Release(0);
  RunUntil(loaded_us + 60'000);
  EXPECT_EQ(Job(), "unload a") << "it has stayed for four times both loads";
  EXPECT_EQ(now_, loaded_us + 4 * 11'000) << "of which the second one is not known yet";
  FinishLoads();
  EXPECT_TRUE(Was(Kind::kGrant, other));
  EXPECT_EQ(pool_->at(0).num_taken, 1U);
}

TEST_F(SharesTest, WhoNeedsNobodysRoomIsNotDeferred) {
  Start(20, {6, 6, 6});
  Ask(0);
  Ask(1, {}, "bob");
  EXPECT_EQ(Job(), "load a");
  FinishJob();
  EXPECT_EQ(Job(), "load b");
  Ask(2, {}, "cyd");
  EXPECT_EQ(pool_->num_waiting(), 2);
  EXPECT_EQ(pool_->num_deferred(), 0) << "the loader is busy, that is all";
}

TEST_F(SharesTest, AClientsOwnModelLeavesAtOnce) {
  Ask(1);
  EXPECT_EQ(Job(), "unload a");
  FinishLoads();
  EXPECT_EQ(pool_->at(0).num_taken, 0U);
}

TEST_F(SharesTest, AModelThatIsForgottenLeavesAtOnce) {
  now_ += 4 * 11'000;
  Ask(1, {}, "bob");
  EXPECT_EQ(Job(), "unload a");
  EXPECT_EQ(pool_->at(0).num_taken, 0U);
}

TEST_F(SharesTest, TheOperatorsWordGoesBefore) {
  pool_->Load(1, {}, {}, now_, out_);
  EXPECT_EQ(Job(), "unload a");
}

TEST_F(SharesTest, WhoHadItsModelForOthersTimeWaitsForTheRest) {
  now_ += 43'000;
  Ask(0);  // in use, and it has been there for its time
  Ask(1, {}, "bob");
  now_ += 1000;
  pool_->Tick(now_, out_);
  EXPECT_TRUE(pool_->at(0).is_claimed);
  const ModelTicket next = Ask(0);
  Release(0);
  FinishLoads();
  EXPECT_FALSE(Was(Kind::kGrant, next)) << "bob is at it";
  // He goes on to the first one himself: ada's comes back, and he has paid for that.
  Release(1, "bob");
  Ask(0, {}, "bob");
  EXPECT_EQ(Job(), "unload b");
  EXPECT_EQ(pool_->at(1).num_taken, 0U);
  FinishLoads();
  EXPECT_TRUE(Was(Kind::kGrant, next));
  const int64_t back_us = now_;
  Release(0, "bob");
  Ask(1, {}, "bob");
  RunUntil(back_us + 16 * 10'000);
  EXPECT_EQ(Job(), "") << "he owes two loads of 10 ms, less ten of forgiveness";
  RunUntil(back_us + 16 * 20'000);
  EXPECT_TRUE(pool_->at(0).is_claimed) << "and somebody gets a turn in the end";
}

TEST_F(SharesTest, InLineWhoOwesLessIsFirst) {
  Start(10, {6, 6, 6, 6});
  const ModelTicket using_it = Ask(0);
  FinishLoads();
  ASSERT_TRUE(Was(Kind::kGrant, using_it));
  now_ += 100'000;
  Ask(1, {}, "bob"), Ask(2, {}, "bob");
  now_ += 1000;
  pool_->Tick(now_, out_);
  Release(0);
  EXPECT_EQ(Job(), "unload a");
  FinishJob();
  EXPECT_EQ(Job(), "load b");
  Ask(3, {}, "cyd");
  now_ += 10'000;
  FinishJob();
  Release(1, "bob");
  RunUntil(now_ + 1000);
  EXPECT_EQ(Job(), "unload b") << "bob waits for another himself";
  FinishJob();
  EXPECT_EQ(Job(), "load d") << "bob's other one was asked for first, but cyd owes nothing";
}

TEST_F(PoolTest, OneClientsCrowdLeavesRoomInLine) {
  pool_ = std::make_unique<ModelPool>(PoolOptions{.budget_bytes = 10, .max_waiting = 8});
  sizes_ = {6};
  pool_->Offer("a", false, -1);
  std::vector<ModelTicket> crowd;
  for (int i = 0; i < 6; ++i) crowd.push_back(Ask(0));
  EXPECT_FALSE(Was(Kind::kRefuse, crowd[3]));
  EXPECT_TRUE(Was(Kind::kRefuse, crowd[4]) && Was(Kind::kRefuse, crowd[5]));
  EXPECT_FALSE(Was(Kind::kRefuse, Ask(0, {}, "bob")));
}

TEST_F(PoolTest, ManyClientsOfOneModelAreNotAllRemembered) {
  Start(10, {6});
  Ask(0), FinishJobs();
  for (int i = 0; i < 500; ++i) {
    const std::string client = std::to_string(i);
    Ask(0, {}, client), Release(0, client);
  }
  EXPECT_LE(pool_->at(0).clients.size(), 33U);
  EXPECT_EQ(pool_->at(0).clients.at("ada").num_users, 1) << "who is at it is";
}

}  // namespace
}  // namespace hearth
