// SPDX-License-Identifier: Apache-2.0
// A prefix cache that lives through a random history while somebody watches: requests that share
// beginnings come, grow, end and push each other out. What it has at any time is what it says
// itself.
#pragma once
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "kv/block_watch.h"
#include "kv/kv_space.h"
#include "testing/kv_driver.h"
namespace hearth::testing {

// What a cache has in memory: parent and tokens by group and key.
using CacheContent = std::map<std::pair<int, BlockKey>, std::pair<BlockKey, std::vector<Token>>>;

class ContentReader : public BlockWatch {
 public:
  CacheContent content;
  void Connect(const KvLayout&, std::function<void()>) override {}
  void OnStored(std::string_view, const WatchedBlock& block) override {
    content[{block.group, block.key}] = {block.parent, {block.tokens.begin(), block.tokens.end()}};
  }
  void OnRemoved(std::string_view, int, const BlockKey&) override {}
  bool EndStep() override { return false; }
  void BeginAll() override {}
};

class EventHistory {
 public:
  EventHistory(uint64_t seed, const KvLayout& layout, BlockWatch& watch)
      : rng_(seed), watch_(watch), space_(layout, Policy(seed, watch)) {
    watch_.Connect(layout, nullptr);
    for (int i = 0; i < 4; ++i) stems_.push_back(Tokens(Random(120)));
  }
  ~EventHistory() {
    for (Sequence& sequence : running_) space_.Release(sequence.holding);
  }

  // One step of an engine: some requests compute, some end; now and then the cache is dropped.
  void Step() {
    if (running_.size() < 4 && Random(2) == 0) Add();
    for (size_t i = 0; i < running_.size(); ++i) {
      if (!Compute(running_[i])) {
        space_.Release(running_[i].holding);
        running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i--));
      }
    }
    if (Random(60) == 0) space_.DropCache();
    EndStep();
  }
  // A step without work, as when somebody wakes the engine.
  void EndStep() {
    if (!watch_.EndStep()) return;
    watch_.BeginAll();
    space_.TellAll(watch_);
    watch_.EndStep();
  }
  CacheContent Content() const {
    ContentReader reader;
    space_.TellAll(reader);
    return reader.content;
  }

 private:
  struct Sequence {
    KvHolding holding;
    std::vector<Token> tokens;
    int num_computed = 0;
  };
  static KvPolicy Policy(uint64_t seed, BlockWatch& watch) {
    KvPolicy policy;
    policy.key_seed = seed;
    policy.watch = &watch;
    return policy;
  }
  int Random(int below) { return static_cast<int>(rng_() % static_cast<uint64_t>(below)); }
  std::vector<Token> Tokens(int count) {
    std::vector<Token> tokens;
    for (int i = 0; i < count; ++i) tokens.push_back(Random(200'000));
    return tokens;
  }
  void Add() {
    Sequence sequence;
    const std::vector<Token>& stem = stems_[static_cast<size_t>(Random(4))];
    sequence.tokens.assign(stem.begin(), stem.begin() + Random(static_cast<int>(stem.size()) + 1));
    for (const Token token : Tokens(1 + Random(60))) sequence.tokens.push_back(token);
    sequence.holding.domain.salt = static_cast<uint64_t>(Random(2));
    const int limit = static_cast<int>(sequence.tokens.size()) - 1;
    sequence.num_computed = space_.Match(sequence.tokens, limit, sequence.holding).tokens;
    running_.push_back(std::move(sequence));
  }
  // False: it is done, or finds no room.
  bool Compute(Sequence& sequence) {
    const int left = static_cast<int>(sequence.tokens.size()) - sequence.num_computed;
    const int count = std::min(left, 1 + Random(40));
    if (count == 0 || !space_.Reserve(sequence.holding, sequence.num_computed, count)) return false;
    sequence.num_computed += count;
    space_.Commit(sequence.holding, sequence.tokens, sequence.num_computed);
    return true;
  }

  std::mt19937_64 rng_;
  BlockWatch& watch_;
  KvSpace space_;
  std::vector<std::vector<Token>> stems_;
  std::vector<Sequence> running_;
};

// Layouts with a full group, with windows beside it, and with windows alone.
inline KvLayout HistoryLayout(uint64_t seed) {
  const int blocks = 12 + static_cast<int>(seed % 30);
  if (seed % 3 == 0) return SmallLayout(blocks, 0, 0);
  return SmallLayout(seed % 3 == 1 ? blocks : 0, blocks, 32);
}

}  // namespace hearth::testing
