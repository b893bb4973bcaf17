// SPDX-License-Identifier: Apache-2.0
#include "scene.h"

#include "base/result.h"

namespace hearth::testing {
namespace {

std::string Words(SimRandom& random, uint64_t seed, int bytes) {
  // Begins with what nobody else says: an answer to another's question is never the right one.
  std::string text = Printf("%llx %llx ", static_cast<unsigned long long>(seed),
                            static_cast<unsigned long long>(random.Next() & 0xffffff));
  while (static_cast<int>(text.size()) < bytes) text += static_cast<char>(random.Between('a', 'z'));
  return text;
}

Ask RandomAsk(SimRandom& random, uint64_t seed) {
  Ask ask;
  if (random.Chance(0.08)) {
    ask.what = Ask::What::kHealth;
    return ask;
  }
  ask.tongue = static_cast<Tongue>(random.Between(0, 4));
  ask.streams = random.Chance(0.55);
  ask.max_tokens = random.Around(1, 24);
  ask.prompt = Words(random, seed, random.Chance(0.1) ? 600 : random.Around(12, 120));
  if (ask.tongue == Tongue::kResponses) {
    ask.background = random.Chance(0.4);
    ask.stores = ask.background || random.Chance(0.6);
  }
  return ask;
}

Visitor RandomVisitor(SimRandom& random, uint64_t seed, int64_t span_us) {
  Visitor visitor;
  visitor.key = random.Between(0, kNumKeys - 1);
  visitor.begins_us = random.BetweenUs(0, span_us);
  visitor.tick_us = random.Around(2'000, 30'000);
  visitor.send_piece = random.Chance(0.7) ? 100'000 : static_cast<size_t>(random.Around(20, 300));
  visitor.read_piece = random.Chance(0.7) ? 65'536 : static_cast<size_t>(random.Around(200, 4'000));
  visitor.pipelines = random.Chance(0.3);
  const int count = random.Between(1, 3);
  for (int i = 0; i < count; ++i) visitor.asks.push_back(RandomAsk(random, seed));
  const double manner = random.Share();
  if (manner < 0.12) {
    visitor.manner = Visitor::Manner::kSlowReader;
    visitor.read_piece = static_cast<size_t>(random.Around(1, 200));
    visitor.tick_us = random.Around(100'000, 3'000'000);
    visitor.leaves_us = random.Around(1'000'000, 60'000'000);
  } else if (manner < 0.3) {
    visitor.manner = Visitor::Manner::kLeaver;
    visitor.leaves_us = random.Around(1, 400'000);
    visitor.tick_us = random.Around(500, 20'000);
    if (random.Chance(0.3)) visitor.asks.back().Lengthen();
  } else if (manner < 0.36) {
    visitor.manner = Visitor::Manner::kHalfBody;
  }
  return visitor;
}

}  // namespace

Scene SceneOf(uint64_t seed) {
  SimRandom random(seed);
  Scene scene;
  scene.os.seed = seed;
  const double yields[] = {0, 0.01, 0.05, 0.2};
  scene.os.yield_share = random.Pick(yields, 4);
  scene.os.cpu_ns_per_look = random.Chance(0.2) ? 60'000'000 : 20'000;
  scene.os.send_buffer = random.Chance(0.5) ? 1 : 0;  // as little as the kernel takes
  scene.os.store_fail_share = random.Chance(0.15) ? 0.2 : 0;
  scene.full_blocks = random.Around(60, 300);
  scene.max_sequences = random.Around(1, 16);
  scene.max_step_tokens = random.Around(32, 512);
  scene.step_us = random.Around(500, 20'000);
  scene.token_us = random.Between(0, 100);
  scene.fail_share = random.Chance(0.1) ? 0.03 : 0;
  scene.budget_bytes = random.Chance(0.3) ? random.Around(1'000, 16'000) : 64 << 20;
  scene.max_unread = static_cast<size_t>(random.Chance(0.2) ? random.Between(2, 6) : 1024);
  scene.max_unsent_bytes = random.Chance(0.2) ? 4'000 : size_t{8} << 20;
  scene.max_queued = random.Chance(0.15) ? random.Between(1, 4) : 1'000;
  scene.num_lanes = random.Chance(0.2) ? 2 : 1;
  if (random.Chance(0.2)) scene.limits.max_concurrent = random.Between(1, 3);
  if (random.Chance(0.1)) scene.limits.requests_per_minute = random.Between(2, 6);
  const int64_t span_us = random.Around(1'000, 500'000);
  if (random.Chance(0.2)) scene.drain_at_us = random.BetweenUs(1'000, span_us + 300'000);
  scene.drain_bound_us = random.Around(1'000, 2'000'000);
  const int count = random.Between(2, 7);
  for (int i = 0; i < count; ++i) {
    scene.visitors.push_back(RandomVisitor(random, seed, span_us));
  }
  return scene;
}

}  // namespace hearth::testing
