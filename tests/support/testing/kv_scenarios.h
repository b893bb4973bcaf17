// SPDX-License-Identifier: Apache-2.0
// Small stories about what a KvSpace keeps and what it lets go, each a function that says what went
// wrong, or nothing. Unit tests run them one by one; mutants must be caught by one of them.
#pragma once
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/result.h"
#include "kv/kv_space.h"
#include "testing/kv_driver.h"
namespace hearth::testing {

inline std::vector<Token> RandomTokens(int count, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<Token> tokens(count);
  for (Token& token : tokens) token = static_cast<Token>(rng() % 50000);
  return tokens;
}

// One request from beginning to end: what is found, then the rest in steps of `step_tokens`.
// Returns the tokens reused; -1 when there was no room.
inline int Serve(KvSpace& space, const std::vector<Token>& tokens, KvDomain domain = {},
                 int step_tokens = 64, const std::vector<int>& checkpoints = {}) {
  KvHolding holding;
  holding.domain = domain;
  const int size = static_cast<int>(tokens.size());
  const int reused = space.Match(tokens, size - 1, holding).tokens;
  for (int done = reused; done < size;) {
    const int count = std::min(step_tokens, size - done);
    if (!space.Reserve(holding, done, count)) {
      space.Release(holding);
      return -1;
    }
    done += count;
    space.Commit(holding, tokens, done);
    for (const int checkpoint : checkpoints) {
      if (checkpoint > done - count && checkpoint <= done)
        space.KeepCheckpoint(holding, checkpoint);
    }
  }
  space.Release(holding);
  return reused;
}

// How many tokens would be reused now.
inline int Probe(KvSpace& space, const std::vector<Token>& tokens, KvDomain domain = {}) {
  KvHolding holding;
  holding.domain = domain;
  const int reused = space.Match(tokens, static_cast<int>(tokens.size()), holding).tokens;
  space.Release(holding);
  return reused;
}

inline std::string Differs(const char* what, int found, int expected) {
  return found == expected ? "" : Printf("%s: %d instead of %d", what, found, expected);
}

// A tenant that fills the cache pays before a tenant that used a little of it, long ago.
inline std::string OverShareGoesFirst() {
  KvSpace space(SmallLayout(100, 0, 0), {.tenant_share = 0.3});
  const auto quiet = RandomTokens(10 * kDefaultBlockTokens, 1);
  Serve(space, quiet, {.tenant = 1});
  for (int i = 0; i < 9; ++i) {
    Serve(space, RandomTokens(10 * kDefaultBlockTokens, 100 + i), {.tenant = 2});
  }
  // Twelve times what was free: only tenant 2's blocks can have gone for it.
  for (int i = 0; i < 6; ++i) {
    Serve(space, RandomTokens(10 * kDefaultBlockTokens, 200 + i), {.tenant = 3 + uint32_t(i)});
  }
  return Differs("the quiet tenant keeps", Probe(space, quiet, {.tenant = 1}),
                 static_cast<int>(quiet.size()));
}

// Without pressure from others a tenant may use the whole pool.
inline std::string AloneATenantMayUseEverything() {
  KvSpace space(SmallLayout(100, 0, 0), {.tenant_share = 0.1});
  for (int i = 0; i < 10; ++i) {
    Serve(space, RandomTokens(10 * kDefaultBlockTokens, i), {.tenant = 1});
  }
  return Differs("cached", space.counts(0).cached, 100);
}

// The last window before a checkpoint outlives other window blocks.
inline std::string CheckpointsAreKeptLonger() {
  KvSpace space(SmallLayout(1000, 60, 128), {.window_every = 0});
  const auto chat = RandomTokens(1000, 1);
  Serve(space, chat, {}, 64, {500});
  // Two requests' worth of window blocks: all plain ones are gone.
  Serve(space, RandomTokens(1000, 2));
  auto branch = chat;
  branch.resize(520);
  for (const Token token : RandomTokens(300, 3)) branch.push_back(token);
  if (auto wrong = Differs("reused at the end", Probe(space, chat), 992); !wrong.empty()) {
    return wrong;
  }
  return Differs("reused at the checkpoint", Probe(space, branch), 496);
}

// While things fit, a branch anywhere finds window blocks at most 512 tokens back.
inline std::string BranchAnywhereCostsAtMostAStride() {
  // A quarter of the window blocks, the checkpoints and one step fit; plain blocks do not.
  KvSpace space(SmallLayout(1000, 130, 128), {});
  const auto chat = RandomTokens(4096 + 100, 1);
  Serve(space, chat);
  Serve(space, RandomTokens(2048, 2));
  for (int at = 16; at < 4096; at += 37) {
    KvHolding holding;
    const int reused = space.Match(chat, at, holding).tokens;
    space.Release(holding);
    if (at - reused > 512) return Printf("branch at %d reuses %d", at, reused);
  }
  return "";
}

// Where two prompts part, the third finds window blocks although nobody named the place a
// checkpoint.
inline std::string SharedPreambleBecomesACheckpoint() {
  KvSpace space(SmallLayout(1000, 60, 128), {.window_every = 0});
  const auto preamble = RandomTokens(700, 1);
  const auto prompt = [&](int user) {
    auto tokens = preamble;
    for (const Token token : RandomTokens(150, 10 + user)) tokens.push_back(token);
    return tokens;
  };
  Serve(space, prompt(1));
  Serve(space, prompt(2));
  Serve(space, RandomTokens(800, 2));  // sweeps plain window blocks away
  return Differs("reused of the preamble", Probe(space, prompt(3)), 700 / 16 * 16);
}

// What is used again and again stays, however much passes by once.
inline std::string UsedAgainStays() {
  KvSpace space(SmallLayout(64, 0, 0), {});
  const auto favourite = RandomTokens(8 * kDefaultBlockTokens, 1);
  Serve(space, favourite);
  for (int i = 0; i < 600; ++i) {
    Serve(space, RandomTokens(20 * kDefaultBlockTokens, 100 + i));
    const int reused = Probe(space, favourite);
    if (reused != 8 * kDefaultBlockTokens) return Printf("round %d: reused %d of 128", i, reused);
  }
  return "";
}

// What was popular once and is no longer asked for makes room in the end.
inline std::string PastPopularityFades() {
  KvSpace space(SmallLayout(64, 0, 0), {});
  const auto favourite = RandomTokens(8 * kDefaultBlockTokens, 1);
  for (int i = 0; i < 100; ++i) Serve(space, favourite);
  for (int i = 0; i < 100; ++i) Serve(space, RandomTokens(20 * kDefaultBlockTokens, 100 + i));
  return Differs("left after 30 turnovers of the pool", Probe(space, favourite), 0);
}

// Among equals the least recently used goes first, from its end.
inline std::string OldestTailGoesFirst() {
  KvSpace space(SmallLayout(30, 0, 0), {});
  const auto a = RandomTokens(10 * kDefaultBlockTokens, 1),
             b = RandomTokens(10 * kDefaultBlockTokens, 2),
             c = RandomTokens(10 * kDefaultBlockTokens, 3);
  for (const auto* tokens : {&a, &b, &c}) Serve(space, *tokens);
  Serve(space, RandomTokens(4 * kDefaultBlockTokens, 4));
  KvHolding holding;
  const auto find = [&](const std::vector<Token>& tokens) {
    const int reused = space.Match(tokens, 10 * kDefaultBlockTokens, holding).tokens;
    space.Release(holding);
    return reused / kDefaultBlockTokens;
  };
  if (find(b) != 10 || find(c) != 10) return "younger chains went first";
  return Differs("blocks left of the oldest", find(a), 6);
}

// A block deep in a context costs more to compute again and stays longer.
inline std::string DeepBlocksStayLonger() {
  KvSpace space(SmallLayout(120, 0, 0), {.attention_knee = 100});
  const auto deep = RandomTokens(60 * kDefaultBlockTokens, 1);
  Serve(space, deep);
  for (int i = 0; i < 12; ++i) Serve(space, RandomTokens(10 * kDefaultBlockTokens, 10 + i));
  return Differs("deep blocks left", Probe(space, deep), static_cast<int>(deep.size()));
}

// Two sequences compute the same at once: both go on with the older's block, and what the younger
// holds is no more than it would hold alone.
inline std::string EqualBlocksAtOnce() {
  KvSpace space(SmallLayout(40, 40, 32), {});
  const auto tokens = RandomTokens(100, 1);
  KvHolding a, b, c;
  for (KvHolding* holding : {&a, &b}) {
    space.Match(tokens, 99, *holding);
    if (!space.Reserve(*holding, 0, 100)) return "no room";
  }
  const BlockTable older = a.tables[0];
  space.Commit(a, tokens, 100);
  space.Commit(b, tokens, 100);
  if (a.tables[0] != older) return "the older block went";
  space.Match(tokens, 99, c);
  if (c.tables[0][0] != older[0] || b.tables[0][0] != older[0]) return "not the older block";
  const KvHolding* all[] = {&a, &b, &c};
  if (Status status = space.SelfCheck(all); !status.ok()) return status.message();
  space.Release(a);
  space.Release(c);
  auto longer = tokens;
  for (const Token token : RandomTokens(60, 2)) longer.push_back(token);
  if (!space.Reserve(b, 100, 60)) return "no room";
  space.Commit(b, longer, 160);
  const int room = space.Room(b, 160, 100000);
  if (room != 30 * kDefaultBlockTokens) return Printf("room for %d tokens instead of 480", room);
  space.Release(b);
  if (Status status = space.SelfCheck({}); !status.ok()) return status.message();
  return Differs("cached", space.counts(0).cached, 10);
}

// Without full layers a sequence keeps its own window blocks beside the cache's. When those go, its
// own take their place with the next block it fills.
inline std::string OwnBlocksAreOfferedAgain() {
  KvSpace space(SmallLayout(0, 40, 32), {});
  const auto tokens = RandomTokens(160, 1);
  KvHolding a, b;
  for (KvHolding* holding : {&a, &b}) {
    if (!space.Reserve(*holding, 0, 96)) return "no room";
    space.Commit(*holding, tokens, 96);
  }
  space.Release(a);
  space.DropCache();
  if (!space.Reserve(b, 96, 64)) return "no room";
  space.Commit(b, tokens, 160);
  space.Release(b);
  return Differs("reused", Probe(space, tokens), 160);
}

// What a transfer reads stays, and so does what leads to it.
inline std::string PinsReachUp() {
  KvSpace space(SmallLayout(10, 0, 0), {});
  const auto tokens = RandomTokens(160, 1);
  KvHolding holding;
  if (!space.Reserve(holding, 0, 160)) return "no room";
  space.Commit(holding, tokens, 160);
  const BlockId last = holding.tables[0][9];
  space.Pin(0, last);
  space.Release(holding);
  if (const int room = space.Room(holding, 0, 1000); room != 0) return Printf("room %d", room);
  space.Unpin(0, last);
  return Differs("room", space.Room(holding, 0, 1000), 160);
}

struct KvScenario {
  const char* name;
  std::string (*run)();
};

inline constexpr KvScenario kKvScenarios[] = {
    {"OverShareGoesFirst", OverShareGoesFirst},
    {"AloneATenantMayUseEverything", AloneATenantMayUseEverything},
    {"CheckpointsAreKeptLonger", CheckpointsAreKeptLonger},
    {"BranchAnywhereCostsAtMostAStride", BranchAnywhereCostsAtMostAStride},
    {"SharedPreambleBecomesACheckpoint", SharedPreambleBecomesACheckpoint},
    {"UsedAgainStays", UsedAgainStays},
    {"PastPopularityFades", PastPopularityFades},
    {"OldestTailGoesFirst", OldestTailGoesFirst},
    {"DeepBlocksStayLonger", DeepBlocksStayLonger},
    {"EqualBlocksAtOnce", EqualBlocksAtOnce},
    {"OwnBlocksAreOfferedAgain", OwnBlocksAreOfferedAgain},
    {"PinsReachUp", PinsReachUp},
};

}  // namespace hearth::testing
