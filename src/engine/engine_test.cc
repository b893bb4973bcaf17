// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "engine/event_buffer.h"
#include "sampling/sampler.h"
#include "testing/fake_backend.h"
#include "testing/memory_tier.h"

namespace hearth {
namespace {

using testing::FakeBackend;
using testing::FakeOptions;

Request Of(int prompt, int max_tokens, uint64_t seed) {
  Request request;
  for (int i = 0; i < prompt; ++i) {
    request.prompt.push_back(FakeBackend::RandomToken(seed, i, 64));
  }
  request.max_tokens = max_tokens;
  request.sampling.seed = seed;
  return request;
}

std::vector<Token> Expected(const FakeBackend& backend, const Request& request) {
  std::vector<Token> all = request.prompt, out;
  for (int i = 0; i < request.max_tokens; ++i) {
    out.push_back(Sample(backend.LogitsAfter(all), request.sampling, static_cast<uint64_t>(i)));
    all.push_back(out.back());
  }
  return out;
}

// Everything until the end.
std::vector<Token> ReadAll(EventBuffer& buffer, RequestRecord* record = nullptr) {
  std::vector<Token> tokens;
  while (true) {
    for (const TokenEvent& event : buffer.Wait(100'000)) tokens.push_back(event.token);
    if (const auto ended = buffer.ended()) {
      if (record != nullptr) *record = *ended;
      return tokens;
    }
  }
}

TEST(Engine, AnswersOnItsOwnThread) {
  const FakeBackend oracle{FakeOptions()};
  Engine engine(std::make_unique<FakeBackend>(FakeOptions()), EngineOptions());
  const Request request = Of(30, 20, 4);
  const auto buffer = std::make_shared<EventBuffer>();
  ASSERT_TRUE(engine.Submit(request, buffer).ok());
  RequestRecord record;
  EXPECT_EQ(ReadAll(*buffer, &record), Expected(oracle, request));
  EXPECT_EQ(record.finish, Finish::kLength);
}

// 64 threads submit, cancel and read at once; two more look at snapshots.
TEST(Engine, ManyThreadsAtOnce) {
  FakeOptions fake;
  fake.full_blocks = fake.window_blocks = 200;
  const FakeBackend oracle{fake};
  EngineOptions options;
  options.scheduler.max_sequences = 32;
  Engine engine(std::make_unique<FakeBackend>(fake), options);
  std::atomic<int> wrong{0}, refused{0}, cancelled{0}, done{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 64; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 12; ++i) {
        const Request request = Of(5 + static_cast<int>(t), 8, t * 100 + i % 5);
        const auto buffer = std::make_shared<EventBuffer>(4);
        const Admission admission = engine.Submit(request, buffer);
        if (!admission.ok()) {
          ++refused;
          continue;
        }
        if ((t + i) % 10 == 0) engine.Cancel(admission.id);
        RequestRecord record;
        std::vector<Token> expected = Expected(oracle, request);
        const std::vector<Token> heard = ReadAll(*buffer, &record);
        if (record.finish == Finish::kCancelled) {
          ++cancelled;
          expected.resize(heard.size());
        }
        if (heard != expected) ++wrong;
        ++done;
      }
    });
  }
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        const auto snapshot = engine.snapshot();
        const KvCounts& full = snapshot->kv.at(0).counts;
        if (full.free + full.held + full.cached + full.pinned != full.total) ++wrong;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  for (size_t i = 0; i < 64; ++i) threads[i].join();
  stop = true;
  threads[64].join();
  threads[65].join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(done, 64 * 12);
  engine.Drain(0);
  EXPECT_EQ(engine.snapshot()->kv.at(0).counts.held, 0);
}

TEST(Engine, DestructionEndsWhatIsLeft) {
  FakeOptions fake;
  fake.full_blocks = fake.window_blocks = 8000;
  const auto buffer = std::make_shared<EventBuffer>(1'000'000);
  const auto waiting = std::make_shared<EventBuffer>();
  {
    EngineOptions options;
    options.scheduler.max_sequences = 1;
    Engine engine(std::make_unique<FakeBackend>(fake), options);
    ASSERT_TRUE(engine.Submit(Of(10, 100'000, 1), buffer).ok());
    ASSERT_TRUE(engine.Submit(Of(10, 100'000, 1), waiting).ok());
    while (buffer->Take().empty()) std::this_thread::yield();
  }
  buffer->Take();
  ASSERT_TRUE(buffer->ended().has_value());
  EXPECT_EQ(buffer->ended()->finish, Finish::kShutdown);
  EXPECT_EQ(waiting->ended()->finish, Finish::kShutdown);
}

TEST(Engine, DrainReturnsWhenNothingIsLeft) {
  FakeOptions fake;
  fake.full_blocks = fake.window_blocks = 8000;
  Engine engine(std::make_unique<FakeBackend>(fake), EngineOptions());
  const auto buffer = std::make_shared<EventBuffer>(1'000'000);
  const auto quick = std::make_shared<EventBuffer>();
  ASSERT_TRUE(engine.Submit(Of(10, 100'000, 1), buffer).ok());
  ASSERT_TRUE(engine.Submit(Of(10, 3, 1), quick).ok());
  engine.Drain(50'000);
  quick->Take();
  ASSERT_TRUE(quick->ended().has_value());
  EXPECT_EQ(quick->ended()->finish, Finish::kLength);
  buffer->Take();
  EXPECT_EQ(buffer->ended()->finish, Finish::kShutdown);
  EXPECT_EQ(engine.Submit(Of(10, 3, 1), quick).status.code(), Code::kExhausted);
  EXPECT_TRUE(engine.snapshot()->is_draining);
}

TEST(Engine, AStepThatHangsIsNoticed) {
  std::atomic<bool> hang{true};
  FakeOptions fake;
  fake.before_run = [&hang](const StepPlan&) {
    while (hang) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Status();
  };
  std::atomic<int> stalls{0};
  WatchOptions watch;
  watch.stall_us = 20'000;
  watch.on_stall = [&](const Stall& stall) {
    EXPECT_GT(stall.silent_us, 20'000);
    ++stalls;
  };
  Engine engine(std::make_unique<FakeBackend>(fake), EngineOptions(), watch);
  EXPECT_FALSE(engine.snapshot()->is_stalled);
  const auto buffer = std::make_shared<EventBuffer>();
  ASSERT_TRUE(engine.Submit(Of(10, 3, 1), buffer).ok());
  while (stalls == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(engine.snapshot()->is_stalled);  // answers although the loop does not
  EXPECT_EQ(engine.snapshot()->num_stalls, 1u);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(stalls, 1);
  hang = false;
  ReadAll(*buffer);
  EXPECT_FALSE(engine.snapshot()->is_stalled);
}

// Looks at the engine from within the last thing that a sink hears.
class LastLook final : public EventSink {
 public:
  explicit LastLook(const Engine& engine) : engine_(engine) {}
  void OnToken(const TokenEvent&) override {}
  void OnFinish(const RequestRecord&) override { seen_.set_value(engine_.snapshot()); }
  int Room() const override { return 1000; }
  std::shared_ptr<const EngineSnapshot> seen() { return seen_.get_future().get(); }

 private:
  const Engine& engine_;
  std::promise<std::shared_ptr<const EngineSnapshot>> seen_;
};

TEST(Engine, WhoHearsOfAnEndFindsItCounted) {
  FakeOptions fake;
  fake.full_blocks = fake.window_blocks = 8000;
  Engine engine(std::make_unique<FakeBackend>(fake), EngineOptions());
  const auto goes_on = std::make_shared<EventBuffer>(1'000'000);
  ASSERT_TRUE(engine.Submit(Of(10, 100'000, 1), goes_on).ok());  // no rest, in which all is told
  for (uint64_t i = 1; i <= 3; ++i) {
    const auto look = std::make_shared<LastLook>(engine);
    ASSERT_TRUE(engine.Submit(Of(10, 5, i), look).ok());
    const auto seen = look->seen();
    EXPECT_EQ(seen->num_finished[static_cast<size_t>(Finish::kLength)], i);
    EXPECT_EQ(seen->generated_tokens, static_cast<int64_t>(5 * i));
    EXPECT_EQ(seen->num_admitted, i + 1);
    EXPECT_EQ(seen->load.num_running + seen->load.num_waiting, 1);
  }
}

// A tier whose connection breaks and mends without anybody asking for a block.
class FarTier final : public testing::MemoryTier {
 public:
  explicit FarTier(const std::atomic<bool>& is_up) : is_up_(is_up) {}
  TierStats stats() const override {
    TierStats stats;
    stats.is_reading = stats.is_writing = is_up_;
    return stats;
  }

 private:
  const std::atomic<bool>& is_up_;
};

TEST(Engine, AnEngineThatRestsKnowsItsTier) {
  std::atomic<bool> is_up{false};
  Engine engine(std::make_unique<FakeBackend>(FakeOptions()), EngineOptions(), {},
                std::make_unique<FarTier>(is_up));
  const auto reads = [&] { return engine.snapshot()->tier_parts.at(0).stats.is_reading; };
  EXPECT_FALSE(reads());
  is_up = true;
  EXPECT_TRUE(reads());
  is_up = false;
  EXPECT_FALSE(reads());
}

TEST(Engine, RatesFadeWhileNobodyAsks) {
  Engine engine(std::make_unique<FakeBackend>(FakeOptions()), EngineOptions());
  const auto buffer = std::make_shared<EventBuffer>();
  ASSERT_TRUE(engine.Submit(Of(10, 20, 1), buffer).ok());
  ReadAll(*buffer);
  const auto ends = [&] {
    return engine.snapshot()->num_finished[static_cast<size_t>(Finish::kLength)];
  };
  while (ends() == 0) std::this_thread::yield();
  const double before = engine.snapshot()->decode_tokens_per_s;
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const double after = engine.snapshot()->decode_tokens_per_s;
  EXPECT_GT(after, 0);
  EXPECT_LT(after, 0.96 * before);  // exp(-0.3 / 5) = 0.94
}

TEST(EventBuffer, GivesTokensInOrderThenTheEnd) {
  EventBuffer buffer(3);
  int ready = 0;
  buffer.set_on_ready([&] { ++ready; });
  EXPECT_EQ(buffer.Room(), 3);
  buffer.OnToken({7, 0});
  buffer.OnToken({8, 1});
  EXPECT_EQ(buffer.Room(), 1);
  RequestRecord record;
  record.finish = Finish::kStop;
  buffer.OnFinish(record);
  EXPECT_FALSE(buffer.ended().has_value());  // not before the tokens
  const std::vector<TokenEvent> tokens = buffer.Take();
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_EQ(tokens[1].token, 8);
  EXPECT_EQ(buffer.ended()->finish, Finish::kStop);
  EXPECT_EQ(ready, 3);
  EXPECT_TRUE(buffer.Wait(1000).empty());
}

}  // namespace
}  // namespace hearth
