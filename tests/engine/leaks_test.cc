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

TEST(EngineLeaks, HundredThousandMixedRequests) {
  std::mt19937 random(7);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  FakeOptions fake;
  fake.full_blocks = fake.window_blocks = 60;
  fake.nan_token = 60;
  int fail_in = 5000;
  fake.before_run = [&fail_in](const StepPlan&) {
    return --fail_in == 0 ? Error(Code::kIo, "planted") : Status();
  };
  EngineOptions options;
  options.scheduler.max_sequences = 24;
  options.scheduler.headroom_blocks = 0;
  options.slow_reader_us = 500'000;
  EngineRig rig(fake, options);
  rig.backend.options().vocab_size = 48;  // token 60 comes from prompts only
  std::vector<Open> open;
  int64_t warm_bytes = 0, num_ended = 0, num_cancelled = 0;
  std::array<int64_t, 8> finishes{};
  constexpr int kRequests = 100'000;
  for (int i = 0; i < kRequests; ++i) {
    Request request = rig.MakeRequest(1 + pick(60), 1 + pick(20), static_cast<uint64_t>(pick(500)));
    request.domain.tenant = static_cast<uint32_t>(pick(5));
    request.priority = static_cast<Priority>(pick(kNumPriorities));
    if (pick(50) == 0) request.timeout_us = 1 + pick(100'000);
    if (pick(200) == 0) request.prompt.back() = 60;
    Open o;
    o.counter = std::make_shared<Counter>();
    if (pick(100) == 0) o.counter->capacity = 1 + pick(4);
    o.id = rig.core.Submit(std::move(request), o.counter).id;
    if (o.id != SeqId{}) open.push_back(o);
    // One in ten is cancelled, in whatever state it is by then.
    if (pick(10) == 0 && !open.empty()) {
      rig.core.Cancel(open[static_cast<size_t>(pick(static_cast<int>(open.size())))].id);
      ++num_cancelled;
    }
    const int steps = open.size() > 60 ? 4 : pick(3);
    for (int s = 0; s < steps; ++s) {
      if (!rig.core.Step() && !rig.core.is_idle()) rig.clock.Advance(rig.core.SleepUs());
    }
    if (fail_in <= 0) fail_in = 5000;
    std::erase_if(open, [&](const Open& each) {
      if (each.counter->ended == 0) return false;
      EXPECT_EQ(each.counter->ended, 1);
      EXPECT_TRUE(each.counter->in_order);
      ++finishes[static_cast<size_t>(each.counter->finish)];
      ++num_ended;
      return true;
    });
    if (i == kRequests / 5) warm_bytes = ResidentBytes();
  }
  rig.Finish();
  for (const Open& each : open) {
    EXPECT_EQ(each.counter->ended, 1);
    ++finishes[static_cast<size_t>(each.counter->finish)];
    ++num_ended;
  }
  rig.ExpectNothingHeld();
  EXPECT_EQ(rig.core.inbox().counts().num_live, 0);
  EXPECT_EQ(rig.core.inbox().counts().queued_tokens, 0);
  EXPECT_EQ(rig.core.scheduler().load().waiting_tokens, 0);
  EXPECT_EQ(num_ended, static_cast<int64_t>(rig.core.inbox().counts().num_admitted));
  const auto grown = static_cast<double>(ResidentBytes() - warm_bytes) / (1 << 20);
  EXPECT_LT(grown, 4) << "MiB over the last 80,000 requests";
  std::printf("%lld ended (", static_cast<long long>(num_ended));
  for (size_t i = 1; i < finishes.size(); ++i) {
    std::printf("%s%lld %s", i > 1 ? ", " : "", static_cast<long long>(finishes[i]),
                NameOf(static_cast<Finish>(i)));
  }
  std::printf("), %lld cancels sent, %lld preemptions, memory %+.2f MiB\n",
              static_cast<long long>(num_cancelled),
              static_cast<long long>(rig.core.scheduler().totals().num_preemptions), grown);
}

}  // namespace
}  // namespace hearth
