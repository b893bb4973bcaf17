// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario.h"

#include <algorithm>
#include <array>

#include "sim/random.h"

namespace hearth {
namespace {

std::vector<Token> RandomTokens(SimRandom& random, int vocab, int count) {
  std::vector<Token> out(static_cast<size_t>(count));
  for (Token& token : out) token = random.Between(0, vocab - 1);
  return out;
}

// Full and window layers, or only one kind; windows of several lengths now and then, and blocks of
// other sizes; pools from hardly enough for one request to ample.
KvLayout RandomLayout(SimRandom& random) {
  KvLayout layout;
  const int kind = random.Between(0, 9);
  if (kind != 0) layout.groups.push_back({0, 64, random.Around(5, 300)});
  if (kind == 0 || kind >= 4) {
    constexpr int kWindows[] = {1, 5, 8, 16, 17, 24, 40};
    const int blocks = random.Around(5, 150);
    layout.groups.push_back({random.Pick(kWindows, 7), 64, blocks});
    for (int longer = 50; random.Chance(0.3); longer += 30) {
      layout.groups.push_back({longer, 64, random.Around(8, 150)});
    }
  }
  constexpr int kSizes[] = {4, 8, 32};
  if (random.Chance(0.3)) layout.block_tokens = random.Pick(kSizes, 3);
  return layout;
}

EngineOptions RandomOptions(SimRandom& random, double step_us) {
  EngineOptions options;
  SchedulerOptions& scheduler = options.scheduler;
  scheduler.max_sequences = random.Around(1, 32);
  scheduler.max_step_tokens = random.Around(24, 256);
  scheduler.min_chunk = random.Around(1, 16);
  scheduler.max_context = random.Chance(0.3) ? random.Between(48, 200) : 800;
  scheduler.itl_target_us = static_cast<int64_t>(step_us * (1 + 4 * random.Share()));
  scheduler.quiet_step_us = 5 * scheduler.itl_target_us;
  scheduler.aging_us = static_cast<int64_t>(step_us * random.Around(5, 500));
  scheduler.patience_us = static_cast<int64_t>(step_us * random.Around(1, 300));
  scheduler.quantum = random.Around(8, 256);
  scheduler.max_preemptions = random.Between(1, 3);
  scheduler.headroom_blocks = random.Between(0, 3);
  if (random.Chance(0.25)) options.admission.max_requests = random.Between(1, 12);
  if (random.Chance(0.15)) options.admission.max_tokens = random.Between(100, 1000);
  if (random.Chance(0.15)) options.admission.max_wait_s = step_us * 1e-6 * random.Between(2, 60);
  options.kv.key_seed = random.Next();
  constexpr int kEvery[] = {16, 32, 48, 512};
  options.kv.window_every = random.Pick(kEvery, 4);
  if (random.Chance(0.3)) options.kv.tenant_share = 0.2 + 0.8 * random.Share();
  // Keys this short collide all the time; the tokens are what must be compared.
  if (random.Chance(0.1)) options.kv.key_bits = random.Between(3, 10);
  options.slow_reader_us = static_cast<int64_t>(step_us * random.Around(3, 60));
  options.self_check_every = 0;
  return options;
}

TimingModel RandomTiming(SimRandom& random) {
  const double step = random.Around(1'000, 100'000);
  const double per_token = step * 0.02 * (0.2 + random.Share());
  return TimingModel({{1, step}, {33, step + 32 * per_token}}, step * 1e-4 * random.Share());
}

SimReader RandomReader(SimRandom& random, double step_us) {
  SimReader reader;
  const int kind = random.Between(0, 19);
  if (kind >= 4) return reader;
  reader.capacity = random.Between(1, 8);
  reader.every_us = static_cast<int64_t>(step_us * random.Around(1, 12));
  if (kind == 0) reader.stops_after = random.Between(0, 12);
  return reader;
}

struct Population {
  int tenants = 1;
  bool shares_salt = false;
  std::vector<std::vector<Token>> preambles;
  bool mixes_priorities = false, cancels = false, expires = false, reads_slowly = false,
       goes_bad = false;
};

Population RandomPopulation(SimRandom& random, int vocab) {
  Population people;
  people.tenants = random.Between(1, 4);
  people.shares_salt = random.Chance(0.5);
  for (int i = random.Between(1, 4); i > 0; --i) {
    people.preambles.push_back(RandomTokens(random, vocab, random.Between(0, 60)));
  }
  people.mixes_priorities = random.Chance(0.5);
  people.cancels = random.Chance(0.6);
  people.expires = random.Chance(0.4);
  people.reads_slowly = random.Chance(0.4);
  people.goes_bad = random.Chance(0.3);
  return people;
}

Request RandomRequest(SimRandom& random, int vocab, const Population& people, bool follows) {
  Request request;
  if (!follows)
    request.prompt =
        random.Pick(people.preambles.data(), static_cast<int>(people.preambles.size()));
  const auto checkpoint = static_cast<int>(request.prompt.size());
  const std::vector<Token> own = RandomTokens(random, vocab, random.Around(1, 160));
  request.prompt.insert(request.prompt.end(), own.begin(), own.end());
  if (checkpoint > 0 && random.Chance(0.5)) request.checkpoints.push_back(checkpoint);
  request.max_tokens = random.Chance(0.05) ? 0 : random.Around(1, 60);
  if (random.Chance(0.5)) request.sampling.stop_tokens = {random.Between(0, vocab - 1)};
  if (random.Chance(0.5)) request.sampling.temperature = 0;
  request.sampling.seed = random.Next();
  request.domain.tenant = static_cast<uint32_t>(random.Between(0, people.tenants - 1));
  request.domain.salt = people.shares_salt ? 7 : request.domain.tenant;
  if (people.mixes_priorities) request.priority = static_cast<Priority>(random.Between(0, 3));
  return request;
}

// `until_us`: about when the last one arrives.
std::vector<SimClient> RandomClients(SimRandom& random, int vocab, double step_us,
                                     int64_t& until_us) {
  const Population people = RandomPopulation(random, vocab);
  const int count = random.Around(3, 80);
  const double gap_us = step_us * random.Around(1, 40);
  const bool bursts = random.Chance(0.3);
  std::vector<SimClient> clients;
  double now_us = 0;
  for (int i = 0; i < count; ++i) {
    SimClient client;
    if (i > 0 && random.Chance(0.35)) client.follows = random.Between(std::max(0, i - 6), i - 1);
    client.request = RandomRequest(random, vocab, people, client.follows >= 0);
    if (!bursts || random.Chance(0.15)) now_us += random.Exponential(gap_us * (bursts ? 8 : 1));
    client.arrives_us = static_cast<int64_t>(now_us);
    if (client.follows >= 0) {
      // A conversation keeps its tenant, or nothing could be found again.
      client.request.domain = clients[static_cast<size_t>(client.follows)].request.domain;
      client.arrives_us = static_cast<int64_t>(random.Exponential(gap_us));
    }
    const auto life_us = static_cast<int64_t>(step_us * random.Around(1, 200));
    if (people.cancels && random.Chance(0.25)) client.cancels_us = random.BetweenUs(0, life_us);
    if (people.expires && random.Chance(0.3)) client.request.timeout_us = 1 + life_us;
    if (people.reads_slowly) client.reader = RandomReader(random, step_us);
    if (people.goes_bad && random.Chance(0.15)) client.bad_position = random.Between(0, 150);
    clients.push_back(std::move(client));
  }
  until_us = static_cast<int64_t>(now_us);
  return clients;
}

void AddTroubles(SimRandom& random, double step_us, int64_t until_us, SimScenario& scenario) {
  if (random.Chance(0.5)) scenario.noise = 0.3 * random.Share();
  if (random.Chance(0.15)) {
    scenario.stall_share = 0.03;
    scenario.stall_us = static_cast<int64_t>(step_us * random.Around(10, 300));
  }
  if (random.Chance(0.15)) scenario.fail_share = 0.03 * random.Share();
  if (random.Chance(0.1)) {
    scenario.jump_share = 0.02;
    scenario.jump_us = static_cast<int64_t>(step_us * random.Around(10, 1000));
  }
  if (random.Chance(0.2)) {
    scenario.drains_us = random.BetweenUs(0, until_us + static_cast<int64_t>(50 * step_us));
    scenario.drain_bound_us = static_cast<int64_t>(step_us * random.Between(0, 200));
  }
}

// Drafts in most scenarios, and text in which they hold: never, often, nearly always.
void AddHabits(SimRandom& random, SimScenario& scenario) {
  SchedulerOptions& scheduler = scenario.options.scheduler;
  scheduler.speculates = random.Chance(0.75);
  if (random.Chance(0.3)) scheduler.fixed_draft = random.Between(1, kMaxDraft);
  constexpr float kHabits[] = {0, 4, 6, 9};
  scenario.habit = random.Pick(kHabits, 4);
}

// Mixtures of experts, which the engine mostly knows of.
void AddExperts(SimRandom& random, double step_us, SimScenario& scenario) {
  if (!random.Chance(0.4)) return;
  ExpertTiming experts;
  experts.counts.total = random.Around(2, 128);
  experts.counts.active = random.Between(1, std::min(8, experts.counts.total));
  experts.us = step_us * 4 * random.Share();
  const TimingModel& dense = scenario.timing;
  scenario.timing = TimingModel(dense.points(), dense.us_per_position(), experts);
  if (random.Chance(0.8)) scenario.options.scheduler.experts = experts.counts;
}

// Every other machine has a tier, from a good one to one that is no use at all. With random numbers
// of its own: a seed means the same in everything else.
void AddTier(double step_us, SimScenario& scenario) {
  SimRandom random(scenario.seed ^ 0x9e6c63d0876a9a47);
  if (random.Chance(0.5)) return;
  SimTierOptions& tier = scenario.tier;
  tier.exists = true;
  scenario.options.kv.key_bits = 128;  // beyond this process there is nothing but keys to go by
  const auto step = static_cast<int>(step_us) + 1;
  tier.latency_us = random.Around(std::max(1, step / 20), 20 * step);
  tier.us_per_byte = random.Chance(0.5) ? 0 : step_us * random.Share() / 4096;
  tier.capacity = random.Chance(0.3) ? random.Around(1, 64) : 1 << 20;
  double* const troubles[] = {&tier.lose, &tier.repeat, &tier.fail, &tier.damage,
                              &tier.swap, &tier.stall,  &tier.lie,  &tier.copy_fails};
  for (double* share : troubles) {
    if (random.Chance(0.3)) *share = random.Chance(0.1) ? 1 : 0.3 * random.Share();
  }
  tier.copy_fails *= 0.1;  // each costs everybody in the step its answer
  tier.stall_us = random.BetweenUs(step, 100 * int64_t{step});
  TierOptions& options = scenario.options.tier;
  options.max_loading = random.Around(1, 8);
  options.max_stores = random.Around(1, 64);
  options.stores_per_step = random.Around(1, 16);
  options.max_load_us = random.BetweenUs(step, 50 * int64_t{step});
  options.max_store_us = random.BetweenUs(step, 200 * int64_t{step});
  if (random.Chance(0.3)) options.max_staged_bytes = random.Around(500, 50'000);
  tier.asks = random.Chance(0.3);
  options.max_ask_us = random.BetweenUs(step, 20 * int64_t{step});
  options.max_ahead = random.Chance(0.2) ? 0 : random.Around(1, 8);
  if (random.Chance(0.3)) options.max_ahead_bytes = random.Around(200, 5'000);
}

}  // namespace

SimScenario RandomScenario(uint64_t seed) {
  SimRandom random(seed);
  SimScenario scenario;
  scenario.seed = seed;
  scenario.vocab = random.Between(2, 24);
  scenario.layout = RandomLayout(random);
  scenario.timing = RandomTiming(random);
  const double step_us = scenario.timing.points().front().us;
  scenario.options = RandomOptions(random, step_us);
  int64_t until_us = 0;
  scenario.clients = RandomClients(random, scenario.vocab, step_us, until_us);
  AddTroubles(random, step_us, until_us, scenario);
  AddHabits(random, scenario);
  AddExperts(random, step_us, scenario);
  AddTier(step_us, scenario);
  return scenario;
}

std::string Describe(const SimScenario& scenario) {
  const SchedulerOptions& s = scenario.options.scheduler;
  std::string groups;
  for (int i = 0; i < scenario.layout.num_groups(); ++i) {
    const KvGroupLayout& group = scenario.layout.group(i);
    groups += Printf(" %d %s (window %d)", group.num_blocks,
                     NameOfGroup(scenario.layout, i).c_str(), group.window);
  }
  std::string out = Printf(
      "seed %llu: %zu clients, vocabulary %d, blocks of %d tokens:%s\n"
      "steps of %d tokens and %d sequences at most, context %d, chunk %d, target %.1f ms, "
      "aging %.1f ms, quantum %d, %d preemptions, headroom %d, habit %.0f, %s drafts\n"
      "a step takes %.2f ms and more\n",
      static_cast<unsigned long long>(scenario.seed), scenario.clients.size(), scenario.vocab,
      scenario.layout.block_tokens, groups.c_str(), s.max_step_tokens, s.max_sequences,
      s.max_context, s.min_chunk, static_cast<double>(s.itl_target_us) * 1e-3,
      static_cast<double>(s.aging_us) * 1e-3, s.quantum, s.max_preemptions, s.headroom_blocks,
      static_cast<double>(scenario.habit), s.speculates ? "with" : "no",
      scenario.timing.points().front().us * 1e-3);
  return out;
}

}  // namespace hearth
