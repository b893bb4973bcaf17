// SPDX-License-Identifier: Apache-2.0
#include "tiers/tier_stack.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace hearth {
namespace {

const TierKey kKey{{1, 2}, 0}, kOther{{3, 4}, 1};
std::vector<std::byte> RecordOf(int number) { return {static_cast<std::byte>(number)}; }

// Answers when the test says so.
class HandTier : public Tier {
 public:
  std::string_view name() const override { return "hand"; }
  void Connect(TierListener* listener) override { listener_ = listener; }
  bool MayHave(const TierKey& key) const override {
    return records.contains(key) && (!must_ask || asked.contains(key));
  }
  bool Wants(const TierKey& key) const override { return takes && !records.contains(key); }
  bool Ask(TransferId id, const std::vector<TierKey>& keys) override {
    if (!must_ask) return false;
    asked.insert(keys.begin(), keys.end());
    asks.push_back(id);
    return true;
  }
  void Store(TransferId id, const TierKey& key, uint32_t tenant,
             std::vector<std::byte> record) override {
    records[key] = std::move(record);
    tenants[key] = tenant;
    stores.push_back(id);
  }
  void Fetch(TransferId id, const TierKey&, uint32_t) override { fetches.push_back(id); }
  void Cancel(TransferId id) override { cancelled.insert(id); }
  TierStats stats() const override {
    TierStats out;
    out.num_hits = 5;
    return out;
  }
  void Answer(TransferId id, TierOutcome outcome, std::vector<std::byte> record = {}) {
    listener_->OnTransfer({id, outcome, std::move(record)});
  }

  bool must_ask = false, takes = true;
  std::map<TierKey, std::vector<std::byte>> records;
  std::map<TierKey, uint32_t> tenants;  // who stored it
  std::set<TierKey> asked;
  std::set<TransferId> cancelled;
  std::vector<TransferId> asks, stores, fetches;

 private:
  TierListener* listener_ = nullptr;
};

class TierStackTest : public ::testing::Test, protected TierListener {
 protected:
  TierStackTest() {
    auto near = std::make_unique<HandTier>(), far = std::make_unique<HandTier>();
    near_ = near.get();
    far_ = far.get();
    std::vector<std::unique_ptr<Tier>> tiers;
    tiers.push_back(std::move(near));
    tiers.push_back(std::move(far));
    stack_ = std::make_unique<TierStack>(std::move(tiers));
    stack_->Connect(this);
  }
  void OnTransfer(TierDone done) override { done_.push_back(std::move(done)); }
  HandTier *near_, *far_;
  std::unique_ptr<TierStack> stack_;
  std::vector<TierDone> done_;
};

TEST_F(TierStackTest, TheNearestThatHasItIsAsked) {
  near_->records[kKey] = far_->records[kKey] = RecordOf(1);
  EXPECT_TRUE(stack_->MayHave(kKey));
  EXPECT_FALSE(stack_->MayHave(kOther));
  stack_->Fetch(1, kKey, 7);
  ASSERT_EQ(near_->fetches.size(), 1u);
  EXPECT_TRUE(far_->fetches.empty());
  near_->Answer(1, TierOutcome::kDone, RecordOf(1));
  ASSERT_EQ(done_.size(), 1u);
  EXPECT_EQ(done_[0].record, RecordOf(1));
}

TEST_F(TierStackTest, WhatTheNearOneLostComesFromTheFarOneAndIsKeptNear) {
  near_->records[kKey] = far_->records[kKey] = RecordOf(1);
  stack_->Fetch(1, kKey, 7);
  near_->records.erase(kKey);
  near_->Answer(1, TierOutcome::kMissing);
  EXPECT_TRUE(done_.empty()) << "not yet";
  ASSERT_EQ(far_->fetches.size(), 1u);
  far_->Answer(1, TierOutcome::kDone, RecordOf(1));
  ASSERT_EQ(done_.size(), 1u);
  EXPECT_EQ(done_[0].outcome, TierOutcome::kDone);
  ASSERT_EQ(near_->stores.size(), 1u);
  EXPECT_EQ(near_->records[kKey], RecordOf(1));
  EXPECT_EQ(near_->tenants[kKey], 7u) << "whoever fetched it has the copy";
  near_->Answer(near_->stores[0], TierOutcome::kDone);
  EXPECT_EQ(done_.size(), 1u) << "nobody asked for that copy";
}

TEST_F(TierStackTest, NobodyHasIt) {
  stack_->Fetch(1, kKey, 7);
  ASSERT_EQ(done_.size(), 1u);
  EXPECT_EQ(done_[0].outcome, TierOutcome::kMissing);
  far_->records[kKey] = RecordOf(1);
  stack_->Fetch(2, kKey, 7);
  far_->Answer(2, TierOutcome::kFailed);
  ASSERT_EQ(done_.size(), 2u);
  EXPECT_EQ(done_[1].outcome, TierOutcome::kFailed);
}

TEST_F(TierStackTest, AStoreGoesToAllThatWantIt) {
  near_->records[kKey] = RecordOf(1);
  EXPECT_TRUE(stack_->Wants(kKey)) << "the far one does";
  stack_->Store(1, kKey, 0, RecordOf(1));
  EXPECT_TRUE(near_->stores.empty());
  ASSERT_EQ(far_->stores.size(), 1u);
  far_->Answer(1, TierOutcome::kDone);
  ASSERT_EQ(done_.size(), 1u);
  EXPECT_FALSE(stack_->Wants(kKey));
  stack_->Store(2, kOther, 0, RecordOf(2));
  near_->Answer(2, TierOutcome::kDone);
  EXPECT_EQ(done_.size(), 1u) << "the far one has not said";
  far_->Answer(2, TierOutcome::kFailed);
  ASSERT_EQ(done_.size(), 2u);
  EXPECT_EQ(done_[1].outcome, TierOutcome::kDone) << "one of them has it";
  stack_->Store(3, kOther, 0, RecordOf(2));
  ASSERT_EQ(done_.size(), 3u) << "all have it";
}

TEST_F(TierStackTest, AsksTheFarOneForWhatIsNotNear) {
  far_->must_ask = true;
  far_->records[kOther] = RecordOf(1);
  near_->records[kKey] = RecordOf(2);
  EXPECT_FALSE(stack_->MayHave(kOther));
  ASSERT_TRUE(stack_->Ask(1, {kKey, kOther}));
  EXPECT_EQ(far_->asked, std::set<TierKey>{kOther});
  EXPECT_TRUE(done_.empty());
  far_->Answer(1, TierOutcome::kDone);
  ASSERT_EQ(done_.size(), 1u);
  EXPECT_TRUE(stack_->MayHave(kOther));
  EXPECT_FALSE(stack_->Ask(2, {kKey})) << "it is near";
  EXPECT_EQ(done_.size(), 1u);
}

TEST_F(TierStackTest, WhatIsCancelledIsNotAnswered) {
  near_->records[kKey] = far_->records[kKey] = RecordOf(1);
  stack_->Fetch(1, kKey, 7);
  stack_->Cancel(1);
  EXPECT_TRUE(near_->cancelled.contains(1) && far_->cancelled.contains(1));
  near_->Answer(1, TierOutcome::kMissing);
  EXPECT_TRUE(far_->fetches.empty());
  EXPECT_TRUE(done_.empty());
}

TEST_F(TierStackTest, SaysWhatItIsMadeOf) {
  EXPECT_EQ(stack_->parts().size(), 2u);
  EXPECT_EQ(stack_->stats().num_hits, 10u);
}

}  // namespace
}  // namespace hearth
