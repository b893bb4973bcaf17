// SPDX-License-Identifier: Apache-2.0
// What the KV room costs the engine thread, next to the step it belongs to: a repeated turn's match
// and publish, with and without eviction, and a decode step's bookkeeping.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "kv/kv_space.h"
namespace hearth {
namespace {

constexpr int kPromptTokens = 8000;
constexpr int kPromptBlocks = kPromptTokens / kDefaultBlockTokens;

std::vector<Token> Prompt(uint64_t seed) {
  std::vector<Token> tokens(kPromptTokens);
  for (Token& token : tokens) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    token = static_cast<Token>(seed >> 47);
  }
  return tokens;
}

// gpt-oss's groups, window blocks for every checkpoint and multiple of 512.
KvLayout Layout(int full_blocks) {
  KvLayout layout;
  layout.groups = {{.window = 0, .block_bytes = 393216, .num_blocks = full_blocks},
                   {.window = 128, .block_bytes = 393216, .num_blocks = full_blocks / 2 + 1000}};
  return layout;
}

// Prefill in steps of 512; returns the tokens reused.
int Serve(KvSpace& space, const std::vector<Token>& tokens) {
  KvHolding holding;
  const int size = static_cast<int>(tokens.size());
  const int reused = space.Match(tokens, size - 1, holding).tokens;
  for (int done = reused; done < size;) {
    const int count = std::min(512, size - done);
    if (!space.Reserve(holding, done, count)) break;
    done += count;
    space.Commit(holding, tokens, done);
  }
  space.KeepCheckpoint(holding, size);
  space.Release(holding);
  return reused;
}

std::unique_ptr<KvSpace> Filled(int num_blocks, int pool_blocks) {
  auto space = std::make_unique<KvSpace>(Layout(pool_blocks), KvPolicy());
  for (int i = 0; i < num_blocks / kPromptBlocks; ++i) Serve(*space, Prompt(i));
  return space;
}

// A chat's next turn: an 8,000-token prompt of which all but the end is known. Another chat every
// time, so that nothing is warm in the processor's caches.
void BM_RepeatedTurn(benchmark::State& state) {
  const int num_blocks = static_cast<int>(state.range(0));
  const auto space = Filled(num_blocks, num_blocks + 2000);
  const int num_chats = num_blocks / kPromptBlocks;
  std::vector<std::vector<Token>> prompts;
  for (int i = 0; i < num_chats; ++i) prompts.push_back(Prompt(i));
  int64_t reused = 0, turn = 0;
  for (auto _ : state) reused += Serve(*space, prompts[turn++ * 37 % num_chats]);
  state.counters["reused"] = double(reused) / double(turn);
}
BENCHMARK(BM_RepeatedTurn)->Arg(10000)->Arg(100000)->Arg(600000)->Unit(benchmark::kMicrosecond);

// A prompt nobody has seen, in a full pool: 500 blocks evicted, 500 published.
void BM_NewPromptEvicting(benchmark::State& state) {
  const int num_blocks = static_cast<int>(state.range(0));
  const auto space = Filled(num_blocks + 500, num_blocks);
  std::vector<Token> tokens = Prompt(1);
  int64_t turn = 0;
  for (auto _ : state) {
    tokens[0] = static_cast<Token>(300000 + turn++);  // a new first token makes every block new
    Serve(*space, tokens);
  }
}
BENCHMARK(BM_NewPromptEvicting)->Arg(100000)->Arg(600000)->Unit(benchmark::kMicrosecond);

// One decode step of 64 sequences: Reserve and Commit of one token each.
void BM_DecodeStep64(benchmark::State& state) {
  const auto space = Filled(100000, 120000);
  struct Running {
    KvHolding holding;
    std::vector<Token> tokens;
    int num_computed = 0;
  };
  std::vector<Running> running(64);
  const auto start = [&](Running& r, int i) {
    r.tokens = Prompt(i);
    r.num_computed = space->Match(r.tokens, kPromptTokens - 1, r.holding).tokens;
    r.tokens.resize(r.num_computed);
  };
  for (int i = 0; i < 64; ++i) start(running[i], i);
  for (auto _ : state) {
    for (int i = 0; i < 64; ++i) {
      Running& r = running[i];
      if (r.tokens.size() > kPromptTokens + 2000) {
        space->Release(r.holding);
        start(r, i);
      }
      r.tokens.push_back(i);
      benchmark::DoNotOptimize(space->Reserve(r.holding, r.num_computed, 1));
      space->Commit(r.holding, r.tokens, ++r.num_computed);
    }
  }
  for (Running& r : running) space->Release(r.holding);
}
BENCHMARK(BM_DecodeStep64)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace hearth

BENCHMARK_MAIN();
