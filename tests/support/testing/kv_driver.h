// SPDX-License-Identifier: Apache-2.0
// Drives a KvSpace at random and compares it with a naive model: what was written where, and which
// prefixes were ever committed. Says what went wrong first; used by unit tests and by mutants.
#pragma once
#include <algorithm>
#include <array>
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
    memory_[0].resize(options.layout.full.num_blocks);
    memory_[1].resize(options.layout.window.num_blocks);
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
  struct Pinned {
    KvGroup group;
    BlockId id;
    std::array<uint64_t, kBlockTokens> bytes;
  };
  using Contents = std::array<uint64_t, kBlockTokens>;

  int Random(size_t below) { return static_cast<int>(rng_() % std::max<size_t>(below, 1)); }
  bool Chance(int percent) { return Random(100) < percent; }
  void Wrong(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }
  bool has_full() const { return options_.layout.full.block_bytes > 0; }
  bool has_window() const { return options_.layout.window.block_bytes > 0; }
  Contents& At(KvGroup group, BlockId id) {
    return memory_[static_cast<int>(group)].at(static_cast<size_t>(id));
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
    if (dice < 80) return space_.KeepCut(s.holding, Random(s.num_computed + 1));
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
    while (known + kBlockTokens <= limit &&
           committed_.contains(s->stamps[known + kBlockTokens - 1])) {
      known += kBlockTokens;
    }
    if (match.tokens % kBlockTokens != 0 || match.tokens > limit) Wrong("match past its limit");
    if (match.tokens > known) Wrong("matched what nobody committed");
    if (options_.is_ample && match.tokens < known) Wrong("forgot what there was room for");
    CheckMiss(match, *s, limit);
    for (int i = 0; i < static_cast<int>(s->holding.window.size()); ++i) {
      const int end = (i + 1) * kBlockTokens;
      const bool seen = end > match.tokens - options_.layout.window.window + 1;
      if (seen != (s->holding.window[i] != BlockId::kNone)) Wrong("window blocks do not fit");
    }
    sequences_.push_back(std::move(s));
  }

  void CheckMiss(const KvMatch& match, const Sequence& s, int limit) {
    const bool complete = match.tokens + kBlockTokens > limit;
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
    const auto before = s.holding.full.size() + s.holding.window.size();
    if (room < count) {
      if (space_.Reserve(s.holding, s.num_computed, count)) Wrong("reserved more than the room");
      if (s.holding.full.size() + s.holding.window.size() != before) Wrong("took from too little");
      if (options_.is_ample) Wrong("no room in an ample pool");
      count = room;
      if (count == 0) return;
    }
    if (!space_.Reserve(s.holding, s.num_computed, count)) return Wrong("less room than promised");
    CheckSequence(s);
    const size_t size = (s.num_computed + count + kBlockTokens - 1) / kBlockTokens;
    if ((has_full() && s.holding.full.size() < size) ||
        (has_window() && s.holding.window.size() < size)) {
      return Wrong("the tables do not cover the step");
    }
    for (int p = s.num_computed; p < s.num_computed + count; ++p) {
      if (has_full()) Write(KvGroup::kFull, s.holding.full, p, s.stamps[p]);
      if (has_window()) Write(KvGroup::kWindow, s.holding.window, p, s.stamps[p]);
    }
    CheckRoom(s, s.num_computed, count);
    s.num_computed += count;
    // Also sequences that ask for logits no number are never committed.
    if (Chance(3)) return ReleaseOne(IndexOf(s));
    space_.Commit(s.holding, s.tokens, s.num_computed);
    for (int p = kBlockTokens - 1; p < s.num_computed; p += kBlockTokens) {
      committed_.insert(s.stamps[p]);
    }
  }

  // What admission counted on must cover what a step really holds.
  void CheckRoom(const Sequence& s, int num_computed, int count) {
    int held = 0;
    for (const BlockId id : s.holding.window) held += id != BlockId::kNone;
    if (held > space_.BlocksFor(KvGroup::kWindow, num_computed + count, count)) {
      Wrong("a step holds more window blocks than BlocksFor says");
    }
    if (static_cast<int>(s.holding.full.size()) >
        space_.BlocksFor(KvGroup::kFull, static_cast<int>(s.tokens.size()), count)) {
      Wrong("a step holds more full blocks than BlocksFor says");
    }
  }

  void Write(KvGroup group, const BlockTable& table, int position, uint64_t stamp) {
    const BlockId id = table[position / kBlockTokens];
    if (id == BlockId::kNone) return Wrong("nowhere to write");
    At(group, id)[position % kBlockTokens] = stamp;
  }

  void TrimOne(Sequence& s) {
    const int want = s.num_computed - Random(std::min(s.num_computed + 1, Chance(80) ? 20 : 200));
    const int kept = space_.Trim(s.holding, want);
    if (kept > want || (kept < want && kept % kBlockTokens != 0)) Wrong("trimmed oddly");
    s.num_computed = kept;
    s.tokens.resize(kept);
    s.stamps.resize(kept);
    for (int more = 1 + Random(20); more > 0; --more) s.tokens.push_back(Random(2));
    Stamp(s);
  }

  void PinOne(const Sequence& s) {
    const KvGroup group = Chance(50) ? KvGroup::kFull : KvGroup::kWindow;
    const BlockTable& table = group == KvGroup::kFull ? s.holding.full : s.holding.window;
    const int i = Random(s.num_computed / kBlockTokens);
    if ((i + 1) * kBlockTokens > s.num_computed || i >= static_cast<int>(table.size())) return;
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
    if (!sequences_[i]->holding.full.empty() || !sequences_[i]->holding.keys.empty()) {
      Wrong("released but not empty");
    }
    sequences_.erase(sequences_.begin() + i);
  }

  // Everything that the next token of a sequence would see is what was computed for it.
  void CheckSequence(const Sequence& s) {
    const int window = options_.layout.window.window;
    for (int p = 0; p < s.num_computed; ++p) {
      if (has_full() && !Holds(KvGroup::kFull, s.holding.full, p, s.stamps[p])) {
        return Wrong("a full block holds something else");
      }
      if (has_window() && p > s.num_computed - window &&
          !Holds(KvGroup::kWindow, s.holding.window, p, s.stamps[p])) {
        return Wrong("a window block holds something else");
      }
    }
  }
  bool Holds(KvGroup group, const BlockTable& table, int position, uint64_t stamp) {
    const size_t i = position / kBlockTokens;
    return i < table.size() && table[i] != BlockId::kNone &&
           At(group, table[i])[position % kBlockTokens] == stamp;
  }

  void CheckAll() {
    std::vector<const KvHolding*> holdings;
    for (const auto& s : sequences_) {
      CheckSequence(*s);
      holdings.push_back(&s->holding);
    }
    if (Status status = space_.SelfCheck(holdings); !status.ok()) Wrong(status.message());
    for (const KvGroup group : {KvGroup::kFull, KvGroup::kWindow}) {
      const KvCounts c = space_.counts(group);
      if (c.free + c.held + c.cached + c.pinned != c.total) Wrong("the counts do not add up");
    }
  }

  // With nobody there, every block must be free or cached, and all of them must be to be had.
  void Finish() {
    while (!sequences_.empty()) ReleaseOne(0);
    while (!pinned_.empty()) UnpinOne();
    CheckAll();
    for (const KvGroup group : {KvGroup::kFull, KvGroup::kWindow}) {
      const KvCounts c = space_.counts(group);
      if (c.held != 0 || c.pinned != 0) Wrong("blocks leaked");
    }
    KvHolding all;
    const int blocks =
        std::min(has_full() ? options_.layout.full.num_blocks : INT32_MAX / kBlockTokens,
                 has_window() ? options_.layout.window.num_blocks : INT32_MAX / kBlockTokens);
    if (!space_.Reserve(all, 0, blocks * kBlockTokens)) Wrong("cached blocks cannot be reclaimed");
    space_.Release(all);
    space_.DropCache();
    CheckAll();
    for (const KvGroup group : {KvGroup::kFull, KvGroup::kWindow}) {
      const KvCounts c = space_.counts(group);
      if (c.free != c.total) Wrong("the cache was dropped but holds blocks");
    }
  }

  KvDriverOptions options_;
  std::mt19937_64 rng_;
  KvSpace space_;
  std::vector<Contents> memory_[2];
  std::vector<std::vector<Token>> stems_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<Pinned> pinned_;
  std::unordered_set<uint64_t> committed_;
  std::string wrong_;
};

// A model with the groups asked for; 0 blocks: no such layer.
inline KvLayout SmallLayout(int full_blocks, int window_blocks, int window) {
  KvLayout layout = {};
  if (full_blocks > 0) layout.full = {.block_bytes = 64, .num_blocks = full_blocks, .window = 0};
  if (window_blocks > 0) {
    layout.window = {.block_bytes = 64, .num_blocks = window_blocks, .window = window};
  }
  return layout;
}

}  // namespace hearth::testing
