// SPDX-License-Identifier: Apache-2.0
// A hundred thousand mixed requests through the whole loop: nothing stays behind.
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "testing/engine_rig.h"

namespace hearth {
namespace {

using testing::EngineRig;
using testing::FakeOptions;

// Checks as little as it can, so that memory is the engine's.
struct Counter : EventSink {
  int Room() const override { return capacity - heard; }
  void OnToken(const TokenEvent& event) override {
    in_order = in_order && event.index == total;
    ++heard;
    ++total;
  }
  void OnFinish(const RequestRecord& record) override {
    ++ended;
    finish = record.finish;
  }
  int capacity = 1 << 20, heard = 0, total = 0, ended = 0;
  bool in_order = true;
  Finish finish = Finish::kNone;
};

int64_t ResidentBytes() {
  std::ifstream in("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  in >> pages >> resident;
  return resident * 4096;
}

struct Open {
  SeqId id{};
  std::shared_ptr<Counter> counter;
};

class LeaksTest : public ::testing::Test {
 protected:
  static FakeOptions Fake(int* fail_in) {
    FakeOptions fake;
    fake.full_blocks = fake.window_blocks = 32;
    fake.nan_token = 60;
    fake.before_run = [fail_in](const StepPlan&) {
      if (--*fail_in > 0) return Status();
      *fail_in = 5000;
      return Error(Code::kIo, "planted");
    };
    return fake;
  }
  static EngineOptions Options() {
    EngineOptions options;
    options.scheduler.max_sequences = 24;
    options.scheduler.headroom_blocks = 0;
    options.slow_reader_us = 500'000;
    return options;
  }
  int Pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  void SubmitOne() {
    Request request =
        rig_.MakeRequest(1 + Pick(60), 1 + Pick(20), static_cast<uint64_t>(Pick(500)));
    request.domain.tenant = static_cast<uint32_t>(Pick(5));
    request.priority = static_cast<Priority>(Pick(kNumPriorities));
    if (Pick(50) == 0) request.timeout_us = 1 + Pick(100'000);
    if (Pick(200) == 0) request.prompt.back() = 60;
    Open o;
    o.counter = std::make_shared<Counter>();
    if (Pick(100) == 0) o.counter->capacity = 1 + Pick(4);
    o.id = rig_.core.Submit(std::move(request), o.counter).id;
    if (o.id != SeqId{}) open_.push_back(o);
  }
  void Step() {
    if (!rig_.core.Step() && !rig_.core.is_idle()) rig_.clock.Advance(rig_.core.SleepUs());
  }
  void TakeEnded() {
    std::erase_if(open_, [&](const Open& each) {
      if (each.counter->ended == 0) return false;
      EXPECT_EQ(each.counter->ended, 1);
      EXPECT_TRUE(each.counter->in_order);
      ++finishes_[static_cast<size_t>(each.counter->finish)];
      ++num_ended_;
      return true;
    });
  }

  std::mt19937 random_{7};
  int fail_in_ = 5000;
  EngineRig rig_{Fake(&fail_in_), Options()};
  std::vector<Open> open_;
  int64_t num_ended_ = 0;
  std::array<int64_t, 8> finishes_{};
};

TEST_F(LeaksTest, HundredThousandMixedRequests) {
  rig_.backend.options().vocab_size = 48;  // token 60, which is no number, comes from prompts only
  constexpr int kRequests = 100'000;
  int64_t warm_bytes = 0, num_cancels = 0;
  for (int i = 0; i < kRequests; ++i) {
    SubmitOne();
    // One in ten is cancelled, in whatever state it is by then.
    if (Pick(10) == 0 && !open_.empty()) {
      rig_.core.Cancel(open_[static_cast<size_t>(Pick(static_cast<int>(open_.size())))].id);
      ++num_cancels;
    }
    for (int steps = open_.size() > 60 ? 4 : Pick(3); steps > 0; --steps) Step();
    TakeEnded();
    if (i == kRequests / 5) warm_bytes = ResidentBytes();
  }
  rig_.Finish();
  TakeEnded();
  EXPECT_TRUE(open_.empty());
  rig_.ExpectNothingHeld();
  EXPECT_EQ(rig_.core.inbox().counts().num_live, 0);
  EXPECT_EQ(rig_.core.inbox().counts().queued_tokens, 0);
  EXPECT_EQ(rig_.core.scheduler().load().waiting_tokens, 0);
  EXPECT_EQ(num_ended_, static_cast<int64_t>(rig_.core.inbox().counts().num_admitted));
  const auto preemptions = rig_.core.scheduler().totals().num_preemptions;
  EXPECT_GT(preemptions, 100);
  const auto grown = static_cast<double>(ResidentBytes() - warm_bytes) / (1 << 20);
  EXPECT_LT(grown, 4) << "MiB over the last 80,000 requests";
  std::printf("%lld ended (", static_cast<long long>(num_ended_));
  for (size_t i = 1; i < finishes_.size(); ++i) {
    std::printf("%s%lld %s", i > 1 ? ", " : "", static_cast<long long>(finishes_[i]),
                NameOf(static_cast<Finish>(i)));
  }
  std::printf("), %lld cancels sent, %lld preemptions, memory %+.2f MiB\n",
              static_cast<long long>(num_cancels), static_cast<long long>(preemptions), grown);
}

}  // namespace
}  // namespace hearth
