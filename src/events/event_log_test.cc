// SPDX-License-Identifier: Apache-2.0
#include "events/event_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>

#include "events/event_queue.h"
#include "testing/event_history.h"
#include "testing/event_reader.h"
#include "testing/rounds.h"

namespace hearth {
namespace {

using testing::CacheContent;
using testing::EventHistory;
using testing::EventReader;
using testing::HistoryLayout;

// A subscriber behind a network that loses what it likes. It does what vLLM's example does: a
// number that does not follow the last one makes it ask for what is between.
struct Subscriber {
  EventReader reader;
  bool has_last = false;
  uint64_t last = 0;

  void Receive(const NumberedBatch& batch, EventLog& log) {
    if (!has_last || batch.number != last + 1) CatchUp(log);
    if (batch.number <= last) return;  // the replay had it
    reader.Apply(*batch.payload);
    last = batch.number;
  }
  void CatchUp(EventLog& log) {
    for (const NumberedBatch& missed : log.Replay(has_last ? last + 1 : 0, 0)) {
      reader.Apply(*missed.payload);
      last = missed.number;
    }
    has_last = true;
  }
};

std::map<EventReader::Key, EventReader::Block> Expected(const CacheContent& content,
                                                        const WireOptions& wire,
                                                        const KvLayout& layout) {
  std::map<EventReader::Key, EventReader::Block> expected;
  for (const auto& [id, block] : content) {
    const auto& [group, key] = id;
    if (!IsTold(wire, layout, group)) continue;
    const uint64_t parent = block.first == BlockKey() ? 0 : WireHash(wire, block.first);
    expected[{"GPU", group, WireHash(wire, key)}] = {parent, block.second};
  }
  return expected;
}

struct Trouble {
  size_t max_queued = 1'000'000;
  size_t max_kept = 4096;
  int lost_percent = 0;    // of the batches, on the way to a subscriber
  int behind_percent = 0;  // of the steps after which the publisher's thread does nothing
};

// One history: several subscribers that join at their own time, each losing batches of its own; the
// process may begin anew at the same address. Says what is wrong in the end, or nothing.
class Play {
 public:
  Play(uint64_t seed, const Trouble& trouble)
      : seed_(seed), rng_(seed), trouble_(trouble), layout_(HistoryLayout(seed)) {
    wire_.form = static_cast<EventForm>(seed % 3);
    wire_.tells_windows = seed % 5 != 0;
    wire_.hash_seed = seed;
  }

  std::string Run() {
    Start(1000);
    for (int step = 0; step < 40; ++step) {
      if (Chance(2)) Start(next_start_);
      if (Chance(10) && subscribers_.size() < 3) subscribers_.emplace_back();
      history_->Step();
      if (!Chance(trouble_.behind_percent)) Publish();
    }
    subscribers_.emplace_back();  // one that heard nothing at all
    Publish();
    history_->EndStep();  // the engine was woken
    Publish();
    for (Subscriber& each : subscribers_) each.Receive(log_->Beat(0), *log_);
    return Compare();
  }
  uint64_t num_full_replays() const { return num_full_replays_ + log_->counts().num_full_replays; }
  uint64_t num_dropped() const { return queue_->counts().num_dropped; }

 private:
  bool Chance(int percent) { return static_cast<int>(rng_() % 100) < percent; }

  void Start(uint64_t first_number) {
    history_ = nullptr;
    if (log_ != nullptr) num_full_replays_ += log_->counts().num_full_replays;
    wire_.hash_seed += 1;  // a process has a seed of its own
    queue_ = std::make_unique<EventQueue>(trouble_.max_queued, [] {});
    log_ = std::make_unique<EventLog>(EventLogOptions{
        .wire = wire_, .first_number = first_number, .max_kept = trouble_.max_kept});
    history_ = std::make_unique<EventHistory>(seed_, layout_, *queue_);
    // A clock that was set back: numbers that were there before.
    next_start_ = Chance(20) ? first_number / 2 : first_number + 1'000'000;
    Tell(log_->Begin(0));
  }

  void Publish() {
    while (const auto events = queue_->Take()) {
      if (const auto batch = log_->Add(*events, layout_, 0)) Tell(*batch);
    }
  }
  void Tell(const NumberedBatch& batch) {
    for (Subscriber& each : subscribers_) {
      // A number below the last is another process's: nothing that was known counts.
      if (each.has_last && batch.number <= each.last) each.has_last = false, each.last = 0;
      if (!Chance(trouble_.lost_percent)) each.Receive(batch, *log_);
    }
  }

  std::string Compare() {
    const auto expected = Expected(history_->Content(), wire_, layout_);
    for (const Subscriber& each : subscribers_) {
      if (each.reader.blocks == expected) continue;
      return Printf("seed %llu: %zu blocks known, %zu cached",
                    static_cast<unsigned long long>(seed_), each.reader.blocks.size(),
                    expected.size());
    }
    return "";
  }

  const uint64_t seed_;
  std::mt19937_64 rng_;
  const Trouble trouble_;
  const KvLayout layout_;
  WireOptions wire_;
  uint64_t next_start_ = 0, num_full_replays_ = 0;
  std::unique_ptr<EventQueue> queue_;
  std::unique_ptr<EventLog> log_;
  std::unique_ptr<EventHistory> history_;
  std::vector<Subscriber> subscribers_ = std::vector<Subscriber>(1);
};

// 10,000 histories: quiet ones, ones that lose batches, ones whose publisher is slow and whose
// queue is too small, ones that keep too little for a replay.
TEST(EventLog, SubscribersEndWithTheCachesContent) {
  const Trouble troubles[] = {
      {},
      {.lost_percent = 30},
      {.max_kept = 3, .lost_percent = 40},
      {.max_queued = 6, .behind_percent = 50},
      {.max_queued = 4, .max_kept = 2, .lost_percent = 50, .behind_percent = 70}};
  uint64_t num_full_replays = 0, num_dropped = 0;
  for (int i = 0; i < Rounds(10'000); ++i) {
    Play play(static_cast<uint64_t>(i), troubles[i % 5]);
    ASSERT_EQ(play.Run(), "");
    num_full_replays += play.num_full_replays();
    num_dropped += play.num_dropped();
  }
  // Otherwise the above was too easy.
  EXPECT_GT(num_full_replays, 100u);
  EXPECT_GT(num_dropped, 1000u);
}

BlockEvents Stored(BlockPlace place, uint64_t key, const KvLayout& layout) {
  BlockEvents events;
  events.events = {{true, place, 0, {key, key}, {}}};
  events.tokens.assign(static_cast<size_t>(layout.block_tokens), 1);
  return events;
}

TEST(EventLog, TellingAllAnewKeepsWhatIsBelow) {
  const KvLayout layout = testing::SmallLayout(4, 0, 0);
  EventLog log({});
  EventReader reader;
  reader.Apply(*log.Begin(0).payload);
  reader.Apply(*log.Add(Stored(BlockPlace::kMemory, 1, layout), layout, 0)->payload);
  reader.Apply(*log.Add(Stored(BlockPlace::kDisk, 1, layout), layout, 0)->payload);
  EXPECT_EQ(reader.blocks.size(), 2u);
  BlockEvents all = Stored(BlockPlace::kMemory, 2, layout);
  all.is_all = true;
  reader.Apply(*log.Add(all, layout, 0)->payload);
  EXPECT_EQ(reader.num_cleared, 2);
  const WireOptions wire;
  EXPECT_TRUE(reader.blocks.contains({"DISK", 0, WireHash(wire, {1, 1})}));
  EXPECT_TRUE(reader.blocks.contains({"GPU", 0, WireHash(wire, {2, 2})}));
  EXPECT_EQ(reader.blocks.size(), 2u);
}

TEST(EventLog, WhatIsKnownIsNotToldTwice) {
  const KvLayout layout = testing::SmallLayout(4, 0, 0);
  EventLog log({});
  EXPECT_TRUE(log.Add(Stored(BlockPlace::kDisk, 1, layout), layout, 0));
  EXPECT_FALSE(log.Add(Stored(BlockPlace::kDisk, 1, layout), layout, 0));
  BlockEvents removed;
  removed.events = {{false, BlockPlace::kDisk, 0, {2, 2}, {}}};
  EXPECT_FALSE(log.Add(removed, layout, 0));
  EXPECT_EQ(log.counts().num_batches, 1u);
}

TEST(EventLog, KeepsNoMoreThanItMay) {
  EventLog log({.max_kept = 1000, .max_kept_bytes = 100});
  for (int i = 0; i < 50; ++i) log.Beat(0);
  EXPECT_LE(log.Replay(45, 0).size(), 8u);
  EXPECT_EQ(log.Replay(48, 0).size(), 2u);
  EXPECT_EQ(log.Replay(50, 0).size(), 0u);  // nothing is missed
  EXPECT_EQ(log.Replay(51, 0).size(), 1u);  // another process's number
  EXPECT_EQ(log.counts().num_full_replays, 1u);
}

TEST(EventQueue, AFullOneLosesWholeStepsAndSaysSo) {
  int num_woken = 0;
  EventQueue queue(2, [] {});
  const KvLayout layout = testing::SmallLayout(4, 0, 0);
  queue.Connect(layout, [&] { ++num_woken; });
  const std::vector<Token> tokens(16, 1);
  const auto store = [&](uint64_t key) { queue.OnStored("", {0, {key, key}, {}, tokens}); };
  store(1), store(2);
  EXPECT_FALSE(queue.EndStep());
  store(3);
  EXPECT_FALSE(queue.EndStep());  // no room, and the queue is not empty yet
  EXPECT_EQ(queue.counts().num_dropped, 1u);
  EXPECT_EQ(num_woken, 0);
  ASSERT_TRUE(queue.Take());
  EXPECT_EQ(num_woken, 1);
  EXPECT_TRUE(queue.EndStep());
  queue.BeginAll();
  for (uint64_t i = 1; i < 10; ++i) store(i);  // more than it holds: all of it goes
  EXPECT_FALSE(queue.EndStep());
  const auto all = queue.Take();
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->is_all);
  EXPECT_EQ(all->events.size(), 9u);
  EXPECT_EQ(queue.counts().num_retold, 1u);
}

// What a step pays for a watched block, beside the milliseconds that it takes: printed, and bounded
// loosely enough for a machine that does other things.
TEST(EventQueue, CostsTheEngineLittle) {
  EventQueue queue(1'000'000, [] {});
  queue.Connect(testing::SmallLayout(4, 0, 0), nullptr);
  const std::vector<Token> tokens(16, 1);
  constexpr int kSteps = 2000, kBlocks = 32;  // a step of 512 prompt tokens
  const auto began = std::chrono::steady_clock::now();
  for (uint64_t step = 0; step < kSteps; ++step) {
    for (uint64_t i = 0; i < kBlocks; ++i) {
      queue.OnStored("", {0, {step, i}, {step, i - 1}, tokens});
      queue.OnRemoved("", 0, {step, i});
    }
    queue.EndStep();
    queue.Take();
  }
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
  std::printf("%.3f us a step of %d blocks stored and %d removed, %.1f ns an event\n",
              took.count() / kSteps, kBlocks, kBlocks, took.count() * 1e3 / kSteps / kBlocks / 2);
  EXPECT_LT(took.count() / kSteps, 500.0);  // 1 % of a step of 50 ms
}

}  // namespace
}  // namespace hearth
