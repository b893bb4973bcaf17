// SPDX-License-Identifier: Apache-2.0
#include "server/access/account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <vector>

#include "http/message.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

HttpRequest From(const std::string& key) {
  HttpRequest request;
  request.key_id = key;
  request.peer = "10.0.0.1";
  return request;
}

std::shared_ptr<RequestAccount> Opened(Accounts& accounts, const std::string& key,
                                       std::function<void()> cut = {}) {
  RequestBudget::Opened opened = accounts.Open(From(key), std::nullopt, std::move(cut));
  EXPECT_FALSE(opened.refusal.has_value());
  return std::dynamic_pointer_cast<RequestAccount>(opened.hold);
}

void WaitFor(const std::atomic<int>& count, int wanted) {
  for (int i = 0; i < 5'000 && count < wanted; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(count, wanted);
}

TEST(Accounts, CountByKindAndGiveBack) {
  Accounts accounts(100 * kMiB);
  auto request = Opened(accounts, "anna");
  EXPECT_FALSE(request->SetBody(3 * kMiB).has_value());
  request->Set(Held::kPrompt, 2 * kMiB);
  request->SetReply(5 * kMiB);
  request->Set(Held::kKept, kMiB);
  AccountCounts counts = accounts.counts();
  EXPECT_EQ(counts.held_bytes, (std::array<int64_t, 4>{3 * kMiB, 2 * kMiB, 5 * kMiB, kMiB}));
  EXPECT_EQ(counts.total(), 11 * kMiB);
  EXPECT_EQ(counts.accounts, 1);
  EXPECT_EQ(counts.largest_bytes, 11 * kMiB);
  request->SetReply(0);
  EXPECT_EQ(accounts.counts().total(), 6 * kMiB);
  request.reset();
  counts = accounts.counts();
  EXPECT_EQ(counts.total(), 0);
  EXPECT_EQ(counts.accounts, 0);
}

TEST(Accounts, HoldOneClientToItsShare) {
  Accounts accounts(100 * kMiB);
  auto first = Opened(accounts, "anna");
  EXPECT_FALSE(first->SetBody(49 * kMiB).has_value());
  const auto refused = accounts.Open(From("anna"), 2 * kMiB, {});
  ASSERT_TRUE(refused.refusal.has_value());
  EXPECT_EQ(refused.hold, nullptr);
  EXPECT_EQ(refused.refusal->status, 429);
  EXPECT_GE(refused.refusal->retry_after_s, 1);
  EXPECT_LE(refused.refusal->retry_after_s, 30);
  EXPECT_THAT(refused.refusal->message, HasSubstr("the limit for one client is 52428800"));
  EXPECT_FALSE(accounts.Open(From("bert"), 2 * kMiB, {}).refusal.has_value()) << "another's";
  auto second = Opened(accounts, "anna");
  EXPECT_EQ(second->SetBody(2 * kMiB)->status, 429) << "a length that was not said";
  EXPECT_FALSE(second->SetBody(0).has_value()) << "giving back is never refused";
  EXPECT_FALSE(second->TrySet(Held::kPrompt, 2 * kMiB));
  EXPECT_EQ(accounts.counts().held_bytes[static_cast<size_t>(Held::kPrompt)], 0);
  EXPECT_TRUE(second->TrySet(Held::kPrompt, kMiB));
  EXPECT_EQ(accounts.counts().refused_share, 3);
}

TEST(Accounts, StopBackgroundThenLargeBodies) {
  Accounts accounts(100 * kMiB);
  auto anna = Opened(accounts, "anna"), bert = Opened(accounts, "bert"),
       carl = Opened(accounts, "carl");
  anna->Set(Held::kReply, 45 * kMiB);
  bert->Set(Held::kReply, 39 * kMiB);
  EXPECT_EQ(accounts.fullness(), Fullness::kCalm);
  EXPECT_FALSE(accounts.AskBackground().has_value());
  bert->Set(Held::kReply, 42 * kMiB);
  EXPECT_EQ(accounts.fullness(), Fullness::kNoBackground);
  EXPECT_GE(accounts.AskBackground().value_or(0), 1);
  EXPECT_FALSE(accounts.Open(From("carl"), 4 * kMiB, {}).refusal.has_value());
  bert->Set(Held::kReply, 48 * kMiB);
  EXPECT_EQ(accounts.fullness(), Fullness::kFewBodies);
  EXPECT_EQ(accounts.Open(From("carl"), 4 * kMiB, {}).refusal->status, 503) << "a large one";
  EXPECT_FALSE(accounts.Open(From("carl"), 4096, {}).refusal.has_value())
      << "a small one of somebody who holds little";
  EXPECT_EQ(accounts.Open(From("anna"), 4096, {}).refusal->status, 503) << "anna holds much";
  const AccountCounts counts = accounts.counts();
  EXPECT_EQ(counts.refused_background, 1);
  EXPECT_EQ(counts.refused_full, 2);
  EXPECT_EQ(counts.cut, 0);
}

TEST(Accounts, CutWhoHoldsMost) {
  Accounts accounts(100 * kMiB);
  std::atomic<int> small{0}, large{0}, other{0};
  auto one = Opened(accounts, "anna", [&] { ++small; });
  auto two = Opened(accounts, "anna", [&] { ++large; });
  auto three = Opened(accounts, "bert", [&] { ++other; });
  auto four = Opened(accounts, "carl", [&] { ++other; });
  one->SetReply(10 * kMiB);
  two->SetReply(35 * kMiB);
  three->SetReply(40 * kMiB);
  four->SetReply(14 * kMiB);
  WaitFor(large, 1);
  EXPECT_EQ(small, 0);
  EXPECT_EQ(other, 0) << "one was enough, though its memory is not back yet";
  EXPECT_EQ(accounts.counts().cut, 1);
  two.reset();
  EXPECT_EQ(accounts.fullness(), Fullness::kCalm);
}

TEST(Accounts, CutWhatIsBeyondAShare) {
  Accounts accounts(100 * kMiB);
  std::atomic<int> cut{0};
  std::vector<std::shared_ptr<RequestAccount>> slow;
  for (int i = 0; i < 4; ++i) slow.push_back(Opened(accounts, "anna", [&] { ++cut; }));
  for (int i = 0; i < 4; ++i) {
    slow[static_cast<size_t>(i)]->SetReply(28 * kMiB);
    WaitFor(cut, i);  // one of 28 MiB fits a share of 50
  }
  EXPECT_EQ(accounts.counts().cut, 3);
}

// Whatever the addresses that requests lie at.
TEST(Accounts, CutTheLaterOfTwoThatHoldTheSame) {
  for (int i = 0; i < 8; ++i) {
    Accounts accounts(100 * kMiB);
    std::atomic<int> first{0}, last{0};
    std::vector<std::shared_ptr<RequestAccount>> same;
    for (int k = 0; k < 5; ++k) {
      same.push_back(Opened(accounts, "anna", [&, k] { ++(k == 4 ? last : first); }));
    }
    for (const auto& each : same) each->SetReply(12 * kMiB);  // the fifth is beyond the share
    WaitFor(last, 1);
    EXPECT_EQ(first, 0);
  }
}

// When memory is scarce, telling somebody to go may find none.
TEST(Accounts, CutTheNextOneWhenOneCannotBeTold) {
  Accounts accounts(100 * kMiB);
  std::atomic<int> untold{0}, told{0};
  auto large = Opened(accounts, "anna", [&] {
    ++untold;
    throw std::bad_alloc();
  });
  auto small = Opened(accounts, "anna", [&] { ++told; });
  small->SetReply(20 * kMiB);
  large->SetReply(40 * kMiB);
  WaitFor(untold, 1);
  small->SetReply(51 * kMiB);
  WaitFor(told, 1);
}

TEST(Accounts, EndWhatOutlivesItsConnection) {
  Accounts accounts(100 * kMiB);
  std::atomic<int> ended{0};
  auto request = Opened(accounts, "anna");
  request->OnCut([&] { ++ended; });
  request->Set(Held::kKept, 60 * kMiB);
  WaitFor(ended, 1);
  request->OnCut([&] { ++ended; });
  EXPECT_EQ(ended, 2) << "too late to wait for it";
}

TEST(Accounts, KnowClientsWithoutKeysByAddress) {
  Accounts accounts(100 * kMiB);
  HttpRequest one = From(""), two = From("");
  two.peer = "10.0.0.2";
  auto first = accounts.Open(one, std::nullopt, {}).hold;
  first->SetReply(49 * kMiB);
  EXPECT_TRUE(accounts.Open(one, 2 * kMiB, {}).refusal.has_value());
  EXPECT_FALSE(accounts.Open(two, 2 * kMiB, {}).refusal.has_value());
}

TEST(Accounts, ChargeTimeByStage) {
  Accounts accounts(100 * kMiB);
  auto request = Opened(accounts, "anna");
  {
    StageClock clock(request.get(), Stage::kRead);
    const double until = ThreadSeconds() + 0.01;
    while (ThreadSeconds() < until) continue;
    clock.Next(Stage::kMask);
  }
  const AccountCounts counts = accounts.counts();
  EXPECT_GE(counts.seconds[static_cast<size_t>(Stage::kRead)], 0.01);
  EXPECT_LT(counts.seconds[static_cast<size_t>(Stage::kMask)], 0.01);
  const StageClock nobody(nullptr, Stage::kWrite);  // pays nothing
}

TEST(Accounts, TakeTheirBudgetFromTheMachine) {
  EXPECT_EQ(Accounts::BudgetFor(uint64_t{1} << 30), 128 * kMiB);
  EXPECT_EQ(Accounts::BudgetFor(uint64_t{64} << 30), 256 * kMiB);
  EXPECT_EQ(Accounts::BudgetFor(0), 32 * kMiB);
}

}  // namespace
}  // namespace hearth
