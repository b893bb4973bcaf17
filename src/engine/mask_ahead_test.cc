// SPDX-License-Identifier: Apache-2.0
#include "engine/mask_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "engine/engine.h"
#include "engine/event_buffer.h"
#include "engine/side_thread.h"
#include "testing/engine_rig.h"

namespace hearth {
namespace {

using testing::EngineRig;

// Allows every second token, in turns; each Fill waits until it may go on.
struct Gate {
  Mutex mu;
  CondVar opened;
  bool is_open HEARTH_GUARDED_BY(mu) = true;
  std::atomic<int> num_fills{0};
  void Set(bool open) {
    {
      const MutexLock lock(mu);
      is_open = open;
    }
    opened.NotifyAll();
  }
  void Pass() {
    const MutexLock lock(mu);
    opened.Wait(mu, [this]() HEARTH_REQUIRES(mu) { return is_open; });
  }
};

class GatedMask : public TokenMask {
 public:
  GatedMask(Gate& gate, int64_t takes_us) : gate_(gate), takes_us_(takes_us) {}
  Status Fill(std::span<uint32_t> bits) override {
    gate_.Pass();
    if (takes_us_ > 0) std::this_thread::sleep_for(std::chrono::microseconds(takes_us_));
    ++gate_.num_fills;
    std::fill(bits.begin(), bits.end(), 0);
    bits[0] = position_ % 2 == 0 ? 0x55555555 : 0xaaaaaaaa;
    return {};
  }
  bool Accept(Token token) override {
    if (token % 2 != position_ % 2) return false;
    ++position_;
    return true;
  }
  bool is_finished() const override { return false; }
  std::unique_ptr<TokenMask> Clone() const override { return std::make_unique<GatedMask>(*this); }

 private:
  Gate& gate_;
  const int64_t takes_us_;
  int position_ = 0;
};

Request Masked(const EngineRig& rig, Gate& gate, int64_t takes_us, bool is_dear) {
  Request request = rig.MakeRequest(20, 12);
  request.mask = std::make_shared<GatedMask>(gate, takes_us);
  request.mask_is_dear = is_dear;
  return request;
}

// With everything that the real engine has, step by step.
struct AheadRig {
  EngineRig rig;
  SideThread beside;
  EngineCore* woken = nullptr;
  MaskAhead ahead{[this] { woken->inbox().Wake(); }};
  EngineCore core{rig.backend, EngineOptions(), rig.clock, &beside, nullptr, &ahead};
  AheadRig() { woken = &core; }
  ~AheadRig() { ahead.Stop(); }
  void Finish() {
    for (int i = 0; i < 10'000; ++i) {
      if (core.Step()) continue;
      if (core.is_idle()) return;
      core.inbox().Wait(1'000'000);
    }
    ADD_FAILURE() << "still busy";
  }
};

std::vector<Token> Undisturbed() {
  EngineRig rig;
  Gate gate;
  const testing::Client client = rig.Submit(Masked(rig, gate, 0, false));
  rig.Finish();
  EXPECT_EQ(client.heard->tokens.size(), 12u);
  return client.heard->tokens;
}

TEST(MaskAhead, FillsAndWakes) {
  std::atomic<int> woken{0};
  Gate gate;
  MaskAhead ahead([&] { ++woken; });
  ahead.Ask(SeqId{7}, std::make_shared<GatedMask>(gate, 3'000), 4);
  while (woken == 0) std::this_thread::yield();
  const std::vector<MaskAhead::Done> done = ahead.TakeDone();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].id, SeqId{7});
  EXPECT_TRUE(done[0].filled->status.ok());
  EXPECT_EQ(done[0].filled->bits, (std::vector<uint32_t>{0x55555555, 0, 0, 0}));
  EXPECT_GE(done[0].filled->took_us, 3'000);
  EXPECT_TRUE(ahead.TakeDone().empty());
}

TEST(MaskAhead, NobodyWaitsForADearMask) {
  AheadRig rig;
  Gate gate;
  gate.Set(false);
  auto masked = std::make_shared<testing::Listener>(),
       other = std::make_shared<testing::Listener>();
  ASSERT_TRUE(rig.core.Submit(Masked(rig.rig, gate, 0, true), masked).ok());
  ASSERT_TRUE(rig.core.Submit(rig.rig.MakeRequest(10, 40, 2), other).ok());
  while (rig.core.Step()) continue;
  EXPECT_EQ(other->finish(), Finish::kLength) << "while the mask is still being filled";
  EXPECT_EQ(masked->tokens.size(), 0u);
  gate.Set(true);
  rig.Finish();
  EXPECT_EQ(masked->tokens, Undisturbed()) << "the same tokens, later";
  EXPECT_EQ(gate.num_fills, 12) << "no fill twice";
}

TEST(MaskAhead, AMaskThatStaysDearIsAlwaysFilledAhead) {
  AheadRig rig;
  Gate gate;
  auto heard = std::make_shared<testing::Listener>();
  ASSERT_TRUE(rig.core.Submit(Masked(rig.rig, gate, 2'000, true), heard).ok());
  rig.Finish();
  EXPECT_EQ(heard->tokens, Undisturbed());
  const MaskTotals totals = rig.core.TakeSnapshot().masks;
  EXPECT_EQ(totals.num_ahead, 12);
}

TEST(MaskAhead, AMaskThatTurnsOutCheapIsFilledBesideAgain) {
  AheadRig rig;
  Gate gate;
  auto heard = std::make_shared<testing::Listener>();
  ASSERT_TRUE(rig.core.Submit(Masked(rig.rig, gate, 0, true), heard).ok());
  rig.Finish();
  EXPECT_EQ(heard->tokens, Undisturbed());
  // A busy machine may make one take longer; not most of them.
  EXPECT_LT(rig.core.TakeSnapshot().masks.num_ahead, 12);
}

// The whole engine: nobody said that the mask is dear, a step that waited for it found out.
TEST(MaskAhead, StepsThatWaitedSendAMaskAhead) {
  const EngineRig rig;
  Gate gate;
  Engine engine(std::make_unique<testing::FakeBackend>(testing::FakeOptions{}), EngineOptions());
  auto heard = std::make_shared<EventBuffer>(1000);
  ASSERT_TRUE(engine.Submit(Masked(rig, gate, 3'000, false), heard).ok());
  engine.Drain(60'000'000);
  for (int i = 0; i < 200 && !engine.snapshot()->rows.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const MaskTotals totals = engine.snapshot()->masks;
  EXPECT_GE(totals.num_ahead, 8);
  EXPECT_LE(totals.num_delayed, 3);
  EXPECT_EQ(gate.num_fills, 12);
}

TEST(MaskAhead, ASequenceMayEndWhileItsMaskIsFilled) {
  AheadRig rig;
  Gate gate;
  gate.Set(false);
  auto heard = std::make_shared<testing::Listener>();
  const Admission admission = rig.core.Submit(Masked(rig.rig, gate, 0, true), heard);
  ASSERT_TRUE(admission.ok());
  while (rig.core.Step()) continue;
  rig.core.Cancel(admission.id);
  while (rig.core.Step()) continue;
  EXPECT_EQ(heard->finish(), Finish::kCancelled);
  EXPECT_TRUE(rig.core.is_idle());
  gate.Set(true);
  rig.ahead.Stop();
  EXPECT_FALSE(rig.core.Step()) << "what was filled for nobody is dropped";
}

}  // namespace
}  // namespace hearth
