// SPDX-License-Identifier: Apache-2.0
// Drives a KvSpace at random and compares it with a naive model: what was written where, and which
// prefixes were ever committed. Says what went wrong first; used by unit tests and by mutants.
#pragma once
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "kv/kv_space.h"
namespace hearth::testing {

struct KvDriverOptions {
  KvLayout layout = {};
  KvPolicy policy = {};
  uint64_t seed = 1;
  int num_actions = 300;
  int max_sequences = 6;
  int max_tokens = 200;   // of one sequence
  bool is_ample = false;  // everything fits: then nothing may be forgotten
};

class KvDriver {
 public:
  explicit KvDriver(const KvDriverOptions& options)
      : options_(options), rng_(options.seed), space_(options.layout, options.policy) {
    block_tokens_ = options.layout.block_tokens;
    for (const KvGroupLayout& group : options.layout.groups) {
      memory_.emplace_back(group.num_blocks, Contents(block_tokens_));
    }
    for (int i = 0; i < 4; ++i) {
      std::vector<Token>& stem = stems_.emplace_back();
      const int size = Random(options.max_tokens);
      if (i > 0) stem.assign(stems_[0].begin(), stems_[0].begin() + Random(stems_[0].size() + 1));
      while (static_cast<int>(stem.size()) < size) stem.push_back(Random(2));
    }
  }

  // Empty when all went well.
  std::string Run() {
    for (int i = 0; i < options_.num_actions && wrong_.empty(); ++i) {
      Act();
      CheckAll();
      if (!wrong_.empty()) wrong_ += " (action " + std::to_string(i) + ")";
    }
    if (wrong_.empty()) Finish();
    return wrong_;
  }

 private:
  struct Sequence {
    KvHolding holding;
    std::vector<Token> tokens;
    std::vector<uint64_t> stamps;  // entry p stands for the salt and tokens [0, p]
    int num_computed = 0;
  };
  using Contents = std::vector<uint64_t>;  // of a block, a stamp for each position
  struct Pinned {
    int group;
    BlockId id;
    Contents bytes;
  };

  int Random(size_t below) { return static_cast<int>(rng_() % std::max<size_t>(below, 1)); }
  bool Chance(int percent) { return Random(100) < percent; }
  void Wrong(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }
  int num_groups() const { return options_.layout.num_groups(); }
  int WindowOf(int group) const { return options_.layout.group(group).window; }
  Contents& At(int group, BlockId id) { return memory_[group].at(static_cast<size_t>(id)); }
  // Entries of all tables.
  static size_t Entries(const KvHolding& holding) {
    size_t entries = 0;
    for (const BlockTable& table : holding.tables) entries += table.size();
    return entries;
  }

  void Stamp(Sequence& s) {
    uint64_t h = s.stamps.empty() ? s.holding.domain.salt * 77 + 5 : s.stamps.back();
    for (size_t p = s.stamps.size(); p < s.tokens.size(); ++p) {
      h = (h ^ static_cast<uint64_t>(s.tokens[p] + 1)) * 0x9e3779b97f4a7c15u;
      h ^= h >> 29;
      s.stamps.push_back(h);
    }
  }

  void Act() {
    const int dice = Random(100);
    if (sequences_.empty() || (dice < 15 && Size() < options_.max_sequences)) return Add();
    Sequence& s = *sequences_[Random(sequences_.size())];
    if (dice < 75) return Step(s);
    if (dice < 80) return space_.KeepCheckpoint(s.holding, Random(s.num_computed + 1));
    if (dice < 85) return TrimOne(s);
    if (dice < 88) return PinOne(s);
    if (dice < 90) return UnpinOne();
    if (dice < 91 && !options_.is_ample) return space_.DropCache();
    if (dice < 96) return;
    ReleaseOne(Random(sequences_.size()));
  }
  int Size() const { return static_cast<int>(sequences_.size()); }

  void Add() {
    auto s = std::make_unique<Sequence>();
    s->holding.domain = {static_cast<uint32_t>(Random(3)), static_cast<uint64_t>(Random(2))};
    const std::vector<Token>& stem = stems_[Random(stems_.size())];
    s->tokens.assign(stem.begin(), stem.begin() + Random(stem.size() + 1));
    const int size = 1 + Random(options_.max_tokens);
    while (static_cast<int>(s->tokens.size()) < size) s->tokens.push_back(Random(2));
    Stamp(*s);
    const int limit = Chance(70) ? static_cast<int>(s->tokens.size()) - 1 : Random(size);
    const KvMatch match = space_.Match(s->tokens, limit, s->holding);
    s->num_computed = match.tokens;
    int known = 0;  // tokens of the longest prefix that was ever committed
    while (known + block_tokens_ <= limit &&
           committed_.contains(s->stamps[known + block_tokens_ - 1])) {
      known += block_tokens_;
    }
    if (match.tokens % block_tokens_ != 0 || match.tokens > limit) Wrong("match past its limit");
    if (match.tokens > known) Wrong("matched what nobody committed");
    if (options_.is_ample && match.tokens < known) Wrong("forgot what there was room for");
    CheckMiss(match, *s, limit);
    for (int group = 0; group < num_groups(); ++group) {
      const BlockTable& table = s->holding.tables[group];
      for (int i = 0; i < static_cast<int>(table.size()); ++i) {
        const int end = (i + 1) * block_tokens_;
        const bool seen = WindowOf(group) == 0 || end > match.tokens - WindowOf(group) + 1;
        if (seen != (table[i] != BlockId::kNone)) Wrong("reused blocks do not fit the window");
      }
    }
    sequences_.push_back(std::move(s));
  }

  void CheckMiss(const KvMatch& match, const Sequence& s, int limit) {
    const bool complete = match.tokens + block_tokens_ > limit;
    if ((match.miss.why == KvMiss::Why::kNone) != complete) Wrong("a miss without a reason");
    if (match.miss.position != match.tokens) Wrong("the miss is somewhere else");
    const int agreed = match.miss.position + match.miss.branch_tokens;
    if (agreed > static_cast<int>(s.tokens.size())) Wrong("a branch agrees past the end");
    if (options_.is_ample && !complete && match.miss.why != KvMiss::Why::kNeverSeen) {
      Wrong("nothing was evicted, yet a miss says so");
    }
  }

  void Step(Sequence& s) {
    if (s.num_computed == static_cast<int>(s.tokens.size())) {
      s.tokens.push_back(Random(2));
      Stamp(s);
    }
    const int left = static_cast<int>(s.tokens.size()) - s.num_computed;
    int count = 1 + (Chance(50) ? Random(left) : Random(std::min(left, 20)));
    const int room = space_.Room(s.holding, s.num_computed, count);
    const size_t before = Entries(s.holding);
    if (room < count) {
      if (space_.Reserve(s.holding, s.num_computed, count)) Wrong("reserved more than the room");
      if (Entries(s.holding) != before) Wrong("took from too little");
      if (options_.is_ample) Wrong("no room in an ample pool");
      count = room;
      if (count == 0) return;
    }
    if (!space_.Reserve(s.holding, s.num_computed, count)) return Wrong("less room than promised");
    CheckSequence(s);
    const size_t size = (s.num_computed + count + block_tokens_ - 1) / block_tokens_;
    for (const BlockTable& table : s.holding.tables) {
      if (table.size() < size) return Wrong("the tables do not cover the step");
    }
    for (int p = s.num_computed; p < s.num_computed + count; ++p) {
      for (int group = 0; group < num_groups(); ++group) Write(group, s.holding, p, s.stamps[p]);
    }
    CheckRoom(s, s.num_computed, count);
    s.num_computed += count;
    // Also sequences that ask for logits no number are never committed.
    if (Chance(3)) return ReleaseOne(IndexOf(s));
    space_.Commit(s.holding, s.tokens, s.num_computed);
    for (int p = block_tokens_ - 1; p < s.num_computed; p += block_tokens_) {
      committed_.insert(s.stamps[p]);
    }
  }

  // What admission counted on must cover what a step really holds.
  void CheckRoom(const Sequence& s, int num_computed, int count) {
    for (int group = 0; group < num_groups(); ++group) {
      int held = 0;
      for (const BlockId id : s.holding.tables[group]) held += id != BlockId::kNone;
      if (held > space_.BlocksFor(group, num_computed + count, count)) {
        Wrong("a step holds more blocks than BlocksFor says");
      }
    }
  }

  void Write(int group, const KvHolding& holding, int position, uint64_t stamp) {
    const BlockId id = holding.tables[group][position / block_tokens_];
    if (id == BlockId::kNone) return Wrong("nowhere to write");
    At(group, id)[position % block_tokens_] = stamp;
  }

  void TrimOne(Sequence& s) {
    const int want = s.num_computed - Random(std::min(s.num_computed + 1, Chance(80) ? 20 : 200));
    const int kept = space_.Trim(s.holding, want);
    if (kept > want || (kept < want && kept % block_tokens_ != 0)) Wrong("trimmed oddly");
    s.num_computed = kept;
    s.tokens.resize(kept);
    s.stamps.resize(kept);
    for (int more = 1 + Random(20); more > 0; --more) s.tokens.push_back(Random(2));
    Stamp(s);
  }

  void PinOne(const Sequence& s) {
    if (s.holding.tables.empty()) return;
    const int group = Random(num_groups());
    const BlockTable& table = s.holding.tables[group];
    const int i = Random(s.num_computed / block_tokens_);
    if ((i + 1) * block_tokens_ > s.num_computed || i >= static_cast<int>(table.size())) return;
    if (table[i] == BlockId::kNone || pinned_.size() > 3) return;
    // A committed block only: others are still written.
    if (i >= static_cast<int>(s.holding.keys.size())) return;
    space_.Pin(group, table[i]);
    pinned_.push_back({group, table[i], At(group, table[i])});
  }

  void UnpinOne() {
    if (pinned_.empty()) return;
    const Pinned last = pinned_.back();
    pinned_.pop_back();
    if (At(last.group, last.id) != last.bytes) Wrong("a pinned block was overwritten");
    space_.Unpin(last.group, last.id);
  }

  int IndexOf(const Sequence& s) const {
    int i = 0;
    while (sequences_[i].get() != &s) ++i;
    return i;
  }
  void ReleaseOne(int i) {
    space_.Release(sequences_[i]->holding);
    if (!sequences_[i]->holding.tables.empty() || !sequences_[i]->holding.keys.empty()) {
      Wrong("released but not empty");
    }
    sequences_.erase(sequences_.begin() + i);
  }

  // Everything that the next token of a sequence would see is what was computed for it.
  void CheckSequence(const Sequence& s) {
    for (int group = 0; group < num_groups(); ++group) {
      const int window = WindowOf(group);
      for (int p = window == 0 ? 0 : std::max(0, s.num_computed - window + 1); p < s.num_computed;
           ++p) {
        if (!Holds(group, s.holding, p, s.stamps[p])) {
          return Wrong(NameOfGroup(options_.layout, group) + " block holds something else");
        }
      }
    }
  }
  bool Holds(int group, const KvHolding& holding, int position, uint64_t stamp) {
    const BlockTable& table = holding.tables.at(group);
    const size_t i = position / block_tokens_;
    return i < table.size() && table[i] != BlockId::kNone &&
           At(group, table[i])[position % block_tokens_] == stamp;
  }

  void CheckAll() {
    std::vector<const KvHolding*> holdings;
    for (const auto& s : sequences_) {
      CheckSequence(*s);
      holdings.push_back(&s->holding);
    }
    if (Status status = space_.SelfCheck(holdings); !status.ok()) Wrong(status.message());
    for (int group = 0; group < num_groups(); ++group) {
      const KvCounts c = space_.counts(group);
      if (c.free + c.held + c.cached + c.pinned != c.total) Wrong("the counts do not add up");
    }
  }

  // With nobody there, every block must be free or cached, and all of them must be to be had.
  void Finish() {
    while (!sequences_.empty()) ReleaseOne(0);
    while (!pinned_.empty()) UnpinOne();
    CheckAll();
    for (int group = 0; group < num_groups(); ++group) {
      const KvCounts c = space_.counts(group);
      if (c.held != 0 || c.pinned != 0) Wrong("blocks leaked");
    }
    KvHolding all;
    int blocks = INT32_MAX / block_tokens_;
    for (const KvGroupLayout& group : options_.layout.groups) {
      blocks = std::min(blocks, group.num_blocks);
    }
    if (!space_.Reserve(all, 0, blocks * block_tokens_)) Wrong("cached blocks cannot be reclaimed");
    space_.Release(all);
    space_.DropCache();
    CheckAll();
    for (int group = 0; group < num_groups(); ++group) {
      const KvCounts c = space_.counts(group);
      if (c.free != c.total) Wrong("the cache was dropped but holds blocks");
    }
  }

  KvDriverOptions options_;
  std::mt19937_64 rng_;
  KvSpace space_;
  int block_tokens_ = 0;
  std::vector<std::vector<Contents>> memory_;  // by group and block
  std::vector<std::vector<Token>> stems_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<Pinned> pinned_;
  std::unordered_set<uint64_t> committed_;
  std::string wrong_;
};

// A model with the groups asked for; 0 blocks: no such layer.
inline KvLayout SmallLayout(int full_blocks, int window_blocks, int window) {
  KvLayout layout = {};
  if (full_blocks > 0) {
    layout.groups.push_back({.window = 0, .block_bytes = 64, .num_blocks = full_blocks});
  }
  if (window_blocks > 0) {
    layout.groups.push_back({.window = window, .block_bytes = 64, .num_blocks = window_blocks});
  }
  return layout;
}

}  // namespace hearth::testing
