// SPDX-License-Identifier: Apache-2.0
// Scenarios that ask one question each.
#include "sim/random.h"
#include "sim/scenario.h"

namespace hearth {
namespace {

std::vector<Token> Tokens(SimRandom& random, int count) {
  std::vector<Token> out(static_cast<size_t>(count));
  for (Token& token : out) token = random.Between(0, 15);
  return out;
}

// A machine like the 20b's on two cores, ten times as fast so that a scenario stays short.
SimScenario Machine(uint64_t seed, int full_blocks, int window_blocks) {
  SimScenario scenario;
  scenario.seed = seed;
  scenario.layout.groups = {{.window = 0, .block_bytes = 64, .num_blocks = full_blocks},
                            {.window = 32, .block_bytes = 64, .num_blocks = window_blocks}};
  scenario.timing = TimingModel::TwentyB().Times(0.1);
  scenario.options.scheduler.experts = scenario.timing.experts().counts;
  scenario.noise = 0.05;
  scenario.options.scheduler.itl_target_us = 60'000;
  scenario.options.scheduler.quiet_step_us = 100'000;
  scenario.options.scheduler.max_sequences = 32;
  scenario.options.scheduler.min_chunk = 16;
  return scenario;
}

SimClient Ask(SimRandom& random, double at_us, uint32_t tenant, int prompt, int answer) {
  SimClient client;
  client.arrives_us = static_cast<int64_t>(at_us);
  client.request.prompt = Tokens(random, prompt);
  client.request.max_tokens = answer;
  client.request.domain = {.tenant = tenant, .salt = tenant};
  client.request.sampling.seed = random.Next();
  return client;
}

}  // namespace

SimScenario QuietTenantScenario(uint64_t seed, Neighbour neighbour) {
  SimRandom random(seed);
  SimScenario scenario = Machine(seed, 768, 384);
  double at_us = 500'000;
  for (int i = 0; i < 12; ++i) {
    at_us += 500'000 + random.Exponential(1'000'000);
    scenario.clients.push_back(Ask(random, at_us, 1, random.Between(64, 200), 16));
  }
  if (neighbour == Neighbour::kPolite) {
    // As many chats as half of the machine's sequences; each asks again when it was answered.
    for (int chat = 0; chat < 16; ++chat) {
      for (double us = 0; us < at_us; us += 1'000'000) {
        SimClient client = Ask(random, 20'000, 2, random.Between(64, 400), random.Between(8, 64));
        if (us > 0) client.follows = static_cast<int>(scenario.clients.size()) - 1;
        client.continues = false;
        scenario.clients.push_back(std::move(client));
      }
    }
  }
  if (neighbour == Neighbour::kFlood) {
    // The same requests, several times as many as can be served, whether answered or not.
    for (double us = 0; us < at_us; us += random.Exponential(30'000)) {
      scenario.clients.push_back(
          Ask(random, us, 2, random.Between(64, 400), random.Between(8, 64)));
      scenario.clients.back().request.timeout_us = 5'000'000;
    }
  }
  return scenario;
}

SimScenario NewcomerScenario(uint64_t seed, Crowd crowd) {
  SimRandom random(seed);
  SimScenario scenario = Machine(seed, 4096, 1024);
  double at_us = 1'500'000;  // the steps before teach what steps take
  for (int i = 0; i < kNewcomerAsks; ++i) {
    scenario.clients.push_back(Ask(random, at_us, 1, random.Between(8, 24), 1));
    at_us += 300'000 + random.Exponential(100'000);
  }
  const bool reads = crowd == Crowd::kPrompts;
  for (int i = 0; i < (reads ? 8 : 24); ++i) {
    SimClient client = Ask(random, 1000 * i, 2, reads ? random.Between(1000, 2000) : 32,
                           reads ? 1 : static_cast<int>(at_us / 20'000));
    scenario.clients.push_back(std::move(client));
    // One prompt after the other, for as long as anybody asks.
    for (double us = 0; reads && us < at_us; us += 400'000) {
      SimClient next = Ask(random, 100, 2, random.Between(1000, 2000), 1);
      next.follows = static_cast<int>(scenario.clients.size()) - 1;
      next.continues = false;
      scenario.clients.push_back(std::move(next));
    }
  }
  return scenario;
}

SimScenario ShareScenario(uint64_t seed) {
  SimRandom random(seed);
  SimScenario scenario = Machine(seed, 512, 256);
  scenario.options.scheduler.max_sequences = 8;
  scenario.options.scheduler.quantum = 64;
  for (const uint32_t tenant : {1u, 2u}) {
    const double gap_us = tenant == 1 ? 160'000 : 40'000;
    for (double us = 0; us < 10'000'000; us += random.Exponential(gap_us)) {
      scenario.clients.push_back(
          Ask(random, us, tenant, random.Between(64, 300), random.Between(4, 16)));
      scenario.clients.back().request.timeout_us = 8'000'000;
    }
  }
  return scenario;
}

SimScenario StarvationScenario(uint64_t seed) {
  SimRandom random(seed);
  SimScenario scenario = Machine(seed, 96, 64);
  scenario.options.scheduler.aging_us = 1'000'000;
  scenario.options.scheduler.patience_us = 500'000;
  scenario.options.scheduler.max_sequences = 8;
  const double until_us = 12'000'000;
  for (double us = 0; us < until_us; us += random.Exponential(60'000)) {
    SimClient client = Ask(random, us, static_cast<uint32_t>(random.Between(1, 2)),
                           random.Between(32, 120), random.Between(4, 24));
    client.request.priority = Priority::kUrgent;
    client.request.timeout_us = 6'000'000;
    scenario.clients.push_back(std::move(client));
  }
  for (int i = 0; i < 3; ++i) {
    SimClient client = Ask(random, 100'000 + 50'000 * i, static_cast<uint32_t>(i),
                           random.Between(16, 200), random.Between(4, 24));
    client.request.priority = static_cast<Priority>(1 + i);
    scenario.clients.push_back(std::move(client));
  }
  return scenario;
}

SimScenario LongPromptScenario(uint64_t seed) {
  SimRandom random(seed);
  SimScenario scenario = Machine(seed, 1024, 512);
  for (int i = 0; i < 8; ++i) {
    scenario.clients.push_back(Ask(random, 1000 * i, 1, random.Between(16, 64), 150));
  }
  for (int i = 0; i < 2; ++i) {
    scenario.clients.push_back(
        Ask(random, 700'000 + 1'500'000 * i, 2, random.Between(500, 1500), 8));
  }
  return scenario;
}

SimScenario PromptsAtOnceScenario(uint64_t seed) {
  SimRandom random(seed);
  SimScenario scenario = Machine(seed, 2048, 512);
  scenario.noise = 0.15;
  scenario.options.scheduler.min_chunk = 8;
  for (int i = 0; i < 8; ++i) {
    scenario.clients.push_back(Ask(random, 1000 * i, 1, random.Between(16, 64), 600));
  }
  const double at_us = 1'500'000 + random.Exponential(200'000);
  for (int i = 0; i < 16; ++i) scenario.clients.push_back(Ask(random, at_us, 2, 500, 8));
  return scenario;
}

SimScenario TierScenario(uint64_t seed) {
  SimRandom random(seed);
  SimScenario scenario = Machine(seed, 128, 96);
  scenario.layout.groups[1].window = random.Between(1, 128);
  scenario.tier.exists = true;
  scenario.tier.latency_us = 500;
  constexpr int kChats = 12, kTurns = 4;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int chat = 0; chat < kChats; ++chat) {
      SimClient client = Ask(random, 3'000'000 + 500'000 * chat, 1, random.Between(60, 160),
                             random.Between(1, 40));
      if (turn > 0) client.follows = static_cast<int>(scenario.clients.size()) - kChats;
      scenario.clients.push_back(std::move(client));
    }
  }
  return scenario;
}

SimScenario SlowTierScenario(uint64_t seed) {
  SimScenario scenario = TierScenario(seed);
  scenario.tier.latency_us = 400'000;
  return scenario;
}

SimScenario InLineScenario(uint64_t seed) {
  SimRandom random(seed);
  SimScenario scenario = Machine(seed, 96, 64);
  scenario.options.scheduler.max_sequences = 1;
  scenario.tier.exists = true;
  scenario.tier.latency_us = 5'000;
  constexpr int kChats = 12;
  for (int chat = 0; chat < kChats; ++chat) {
    scenario.clients.push_back(Ask(random, 1'000'000.0 * chat, 1, random.Between(300, 400), 2));
  }
  for (int chat = 0; chat < kChats; ++chat) {
    SimClient again = scenario.clients[static_cast<size_t>(chat)];
    const std::vector<Token> more = Tokens(random, 40);
    again.request.prompt.insert(again.request.prompt.end(), more.begin(), more.end());
    again.request.max_tokens = 8;
    again.arrives_us = 1'000'000 * (kChats + 5) + 100 * chat;
    scenario.clients.push_back(std::move(again));
  }
  return scenario;
}

SimScenario BelowScenario(uint64_t seed) {
  SimRandom random(seed);
  SimScenario scenario = Machine(seed, 128, 96);
  scenario.tier.exists = true;
  scenario.tier.latency_us = 500;
  scenario.tier.refuses = 2;
  constexpr int kChats = 12, kTurns = 6;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int chat = 0; chat < kChats; ++chat) {
      const uint32_t tenant = 1 + static_cast<uint32_t>(chat % 4 == 0);
      SimClient client =
          Ask(random, 1'000'000.0 * (turn * kChats + chat), tenant, random.Between(180, 220), 2);
      // The same chat again, a little longer.
      if (turn > 0) {
        std::vector<Token> before =
            scenario.clients[scenario.clients.size() - kChats].request.prompt;
        client.request.prompt.resize(16);
        before.insert(before.end(), client.request.prompt.begin(), client.request.prompt.end());
        client.request.prompt = std::move(before);
      }
      scenario.clients.push_back(std::move(client));
    }
  }
  return scenario;
}

SimScenario QuotaScenario(uint64_t seed) {
  SimRandom random(seed);
  SimScenario scenario = Machine(seed, 64, 48);
  scenario.tier.exists = true;
  scenario.tier.latency_us = 500;
  scenario.tier.capacity = 400;
  scenario.tier.has_shares = true;
  constexpr int kQuiet = 4, kGreedy = 40;
  double at_us = 0;
  for (int i = 0; i < kQuiet; ++i) {
    scenario.clients.push_back(Ask(random, at_us += 500'000, 1, random.Between(300, 360), 2));
  }
  for (int i = 0; i < kGreedy; ++i) {
    scenario.clients.push_back(Ask(random, at_us += 500'000, 2, random.Between(300, 360), 2));
  }
  for (int i = 0; i < kQuiet; ++i) {
    SimClient again = scenario.clients[static_cast<size_t>(i)];
    again.arrives_us = static_cast<int64_t>(at_us += 500'000);
    scenario.clients.push_back(std::move(again));
  }
  return scenario;
}

SimScenario ChatScenario(uint64_t seed) {
  SimRandom random(seed);
  SimScenario scenario = Machine(seed, 2048, 512);
  scenario.layout.groups[1].window = random.Between(1, 128);
  const std::vector<Token> preamble = Tokens(random, random.Between(16, 100));
  for (int chat = 0; chat < 4; ++chat) {
    for (int turn = 0; turn < 4; ++turn) {
      SimClient client =
          Ask(random, random.Exponential(200'000), 1, random.Between(4, 60), random.Between(1, 40));
      if (turn == 0) {
        std::vector<Token>& prompt = client.request.prompt;
        prompt.insert(prompt.begin(), preamble.begin(), preamble.end());
        client.request.checkpoints = {static_cast<int>(preamble.size())};
        client.arrives_us += 2'000'000 * chat;
      } else {
        client.follows = static_cast<int>(scenario.clients.size()) - 1;
      }
      scenario.clients.push_back(std::move(client));
    }
  }
  return scenario;
}

}  // namespace hearth
