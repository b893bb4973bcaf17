// SPDX-License-Identifier: Apache-2.0
#include "run_seed.h"

#include <algorithm>

namespace hearth::testing {
namespace {

SimScenario Make(Family family, uint64_t seed) {
  switch (family) {
    case Family::kRandom:
      return RandomScenario(seed);
    case Family::kStarvation:
      return StarvationScenario(seed);
    case Family::kLongPrompt:
      return LongPromptScenario(seed);
    case Family::kChat:
      return ChatScenario(seed);
    case Family::kQuiet:
      return QuietTenantScenario(seed, Neighbour::kFlood);
    case Family::kShare:
      return ShareScenario(seed);
    case Family::kPrompts:
      return PromptsAtOnceScenario(seed);
    case Family::kTier:
      return TierScenario(seed);
    case Family::kSlowTier:
      return SlowTierScenario(seed);
    case Family::kInLine:
      return InLineScenario(seed);
    case Family::kBelow:
      return BelowScenario(seed);
    case Family::kQuota:
      return QuotaScenario(seed);
    case Family::kNewcomer:
      return NewcomerScenario(seed, seed % 2 == 0 ? Crowd::kPrompts : Crowd::kStreams);
  }
  return RandomScenario(seed);
}

// Those that are not urgent grow urgent with age, and then nothing younger goes first.
std::string CheckStarvation(const SimScenario& scenario, const SimOutcome& outcome) {
  // Some rounds of the flood's answers, 24 tokens at up to 60 ms each, and the own one.
  constexpr int64_t kServiceUs = 6'000'000;
  for (size_t i = 0; i < scenario.clients.size(); ++i) {
    const SimFate& fate = outcome.fates[i];
    const int own_class = static_cast<int>(scenario.clients[i].request.priority);
    if (own_class == 0) continue;
    if (!fate.admission.ok()) return Printf("client %zu was refused", i);
    const SchedulerOptions& options = scenario.options.scheduler;
    const int64_t bound_us = own_class * options.aging_us + options.patience_us + kServiceUs;
    const int64_t life_us = fate.record.ended_us - fate.record.arrived_us;
    if (life_us > bound_us) {
      return Printf("client %zu of class %d took %.2f s, more than %.2f", i, own_class,
                    static_cast<double>(life_us) * 1e-6, static_cast<double>(bound_us) * 1e-6);
    }
  }
  return {};
}

// No stream waits for a long prompt.
std::string CheckLongPrompt(const SimScenario& scenario, const SimOutcome& outcome) {
  std::vector<int64_t> gaps;
  for (size_t i = 0; i < 8; ++i) {
    const std::vector<int64_t>& heard = outcome.fates[i].heard_us;
    for (size_t k = 1; k < heard.size(); ++k) gaps.push_back(heard[k] - heard[k - 1]);
  }
  if (gaps.size() < 800) return "the streams ended early";
  std::sort(gaps.begin(), gaps.end());
  const double p99_us = static_cast<double>(gaps[gaps.size() * 99 / 100]);
  const auto bound_us = static_cast<double>(scenario.options.scheduler.itl_target_us);
  if (p99_us > 1.5 * bound_us) {
    return Printf("p99 between tokens is %.1f ms with a bound of %.1f", p99_us * 1e-3,
                  bound_us * 1e-3);
  }
  return {};
}

// Sixteen prompts beside them change nothing of that, and are read in the time that is left.
std::string CheckPrompts(const SimScenario& scenario, const SimOutcome& outcome) {
  // 8,000 tokens in steps of 20, each as long as the bound.
  const int64_t most_us = 8000 / 20 * scenario.options.scheduler.itl_target_us;
  for (size_t i = 8; i < outcome.fates.size(); ++i) {
    const RequestRecord& record = outcome.fates[i].record;
    if (record.first_token_us - record.arrived_us > most_us) {
      return Printf("client %zu waited %.2f s for its first token", i,
                    static_cast<double>(record.first_token_us - record.arrived_us) * 1e-6);
    }
  }
  return CheckLongPrompt(scenario, outcome);
}

// What a next turn could find of the turn before it: whole blocks of what was computed.
int CouldFind(const SimScenario& scenario, const SimOutcome& outcome, size_t client) {
  const int follows = scenario.clients[client].follows;
  const SimFate& before = outcome.fates[static_cast<size_t>(follows)];
  const auto computed = static_cast<int>(before.prompt.size() + before.heard.size()) - 1;
  return computed / kDefaultBlockTokens * kDefaultBlockTokens;
}

// A next turn finds all of the turn before it.
std::string CheckChat(const SimScenario& scenario, const SimOutcome& outcome) {
  for (size_t i = 0; i < scenario.clients.size(); ++i) {
    if (scenario.clients[i].follows < 0) continue;
    const int could = CouldFind(scenario, outcome, i);
    if (outcome.fates[i].record.num_cached < could) {
      return Printf("client %zu found %d of %d tokens", i, outcome.fates[i].record.num_cached,
                    could);
    }
  }
  return {};
}

// What memory has no room for comes back from the tier: next turns find nearly all of those before.
std::string CheckTier(const SimScenario& scenario, const SimOutcome& outcome) {
  double found = 0, could = 0, loaded = 0;
  for (size_t i = 0; i < scenario.clients.size(); ++i) {
    if (scenario.clients[i].follows < 0) continue;
    could += CouldFind(scenario, outcome, i);
    found += outcome.fates[i].record.num_cached;
    loaded += outcome.fates[i].record.num_loaded;
  }
  if (found >= 0.9 * could && loaded >= 0.3 * could) return {};
  return Printf("of %.0f tokens %.0f were found, %.0f of them in the tier", could, found, loaded);
}

// A tier that computing is faster than is left alone soon: few wait for it.
std::string CheckSlowTier(const SimScenario& scenario, const SimOutcome& outcome) {
  int waited = 0, count = 0;
  for (size_t i = 0; i < scenario.clients.size(); ++i) {
    if (scenario.clients[i].follows < 0) continue;
    ++count;
    waited += outcome.fates[i].record.loading_us > 0;
  }
  if (waited <= count / 3) return {};
  return Printf("%d of %d waited for a tier that is slower than computing", waited, count);
}

// Who is in line is fetched for meanwhile: the second half of the clients finds its blocks, and few
// of it wait for them when their turn comes.
std::string CheckInLine(const SimScenario& scenario, const SimOutcome& outcome) {
  const size_t half = scenario.clients.size() / 2;
  int loaded = 0, waited = 0;
  for (size_t i = half; i < scenario.clients.size(); ++i) {
    loaded += outcome.fates[i].record.num_loaded > 0;
    waited += outcome.fates[i].record.loading_us > 0;
  }
  const auto count = static_cast<int>(half);
  if (loaded >= count * 2 / 3 && waited <= count / 3) return {};
  return Printf("of %d in line %d were fetched for, and %d waited for it at their turn", count,
                loaded, waited);
}

// Blocks that no tier has stay in memory longer than those that can be fetched.
std::string CheckBelow(const SimScenario& scenario, const SimOutcome& outcome) {
  double found[3] = {}, could[3] = {};
  for (size_t i = 12; i < scenario.clients.size(); ++i) {
    const uint32_t tenant = scenario.clients[i].request.domain.tenant;
    could[tenant] += static_cast<double>(outcome.fates[i - 12].prompt.size());
    found[tenant] += outcome.fates[i].record.num_cached;
  }
  if (found[2] >= 0.5 * could[2] && found[1] >= 0.8 * could[1]) return {};
  return Printf("found %.2f of what the tier has, and %.2f of what memory alone has",
                found[1] / could[1], found[2] / could[2]);
}

// A flood of another tenant does not push out of the tier what is one's own.
std::string CheckQuota(const SimScenario& scenario, const SimOutcome& outcome) {
  double found = 0, could = 0;
  for (size_t i = 0; i < 4; ++i) {
    const size_t again = scenario.clients.size() - 4 + i;
    could += static_cast<double>(outcome.fates[again].prompt.size());
    found += outcome.fates[again].record.num_loaded;
  }
  // The last tokens of each are computed, and the tier takes whole blocks.
  if (found >= 0.85 * could) return {};
  return Printf("found %.2f of what was stored before the flood", found / could);
}

// Whoever used little waits for one layer of what others have under way, and for a step of its own.
std::string CheckNewcomer(const SimScenario& scenario, const SimOutcome& outcome) {
  const int64_t layer_us = outcome.longest_step_us / SimBackend::kLayers;
  for (size_t i = 0; i < kNewcomerAsks; ++i) {
    const RequestRecord& record = outcome.fates[i].record;
    const auto tokens = static_cast<int64_t>(scenario.clients[i].request.prompt.size());
    const double step_us = scenario.timing.StepUs({.tokens = tokens, .rows = 1});
    // A step has noise, and a chunk is cut where the model of the machine says.
    const int64_t most_us = layer_us + static_cast<int64_t>(1.6 * step_us);
    const int64_t us = record.first_token_us - record.arrived_us;
    if (record.first_token_us > 0 && us <= most_us) continue;
    return Printf("client %zu waited %.1f ms for its first token, more than %.1f", i,
                  static_cast<double>(us) * 1e-3, static_cast<double>(most_us) * 1e-3);
  }
  return {};
}

// Whoever asks for more gets no more: tokens computed for either tenant while both had requests.
std::string CheckShare(const SimOutcome& outcome) {
  double tokens[3] = {};
  for (const SimFate& fate : outcome.fates) {
    const RequestRecord& record = fate.record;
    if (!fate.admission.ok() || record.started_us > kStartUs + 10'000'000) continue;
    tokens[record.domain.tenant] += static_cast<double>(record.num_computed);
  }
  const double ratio = tokens[2] / tokens[1];
  if (ratio < 1.5 && ratio > 1 / 1.5) return {};
  return Printf("the greedy tenant got %.2f times what the other got", ratio);
}

// Until the first token, over the quiet tenant's requests; -1 when one of them never had one.
double QuietUs(const SimOutcome& outcome) {
  double sum = 0;
  for (const SimFate& fate : outcome.fates) {
    if (fate.record.domain.tenant != 1) continue;
    if (fate.record.first_token_us == 0) return -1;
    sum += static_cast<double>(fate.record.first_token_us - fate.record.arrived_us);
  }
  return sum;
}

}  // namespace

const char* NameOf(Family family) {
  constexpr const char* kNames[] = {"random", "starvation", "long",    "chat", "quiet",
                                    "share",  "prompts",    "tier",    "slow", "inline",
                                    "below",  "quota",      "newcomer"};
  return kNames[static_cast<size_t>(family)];
}

void SimCounts::Add(const SimCounts& other) {
  clients += other.clients;
  refused += other.refused;
  steps += other.steps;
  tokens += other.tokens;
  failed_steps += other.failed_steps;
  preemptions += other.preemptions;
  cached += other.cached;
  loaded += other.loaded;
  paused += other.paused;
  drafted += other.drafted;
  accepted += other.accepted;
  for (size_t i = 0; i < finishes.size(); ++i) finishes[i] += other.finishes[i];
}

namespace {

SimCounts CountsOf(const SimOutcome& outcome) {
  SimCounts counts;
  counts.clients = static_cast<int64_t>(outcome.fates.size());
  counts.steps = outcome.num_steps;
  counts.tokens = outcome.num_tokens;
  counts.failed_steps = outcome.num_failed_steps;
  for (const SimFate& fate : outcome.fates) {
    counts.refused += fate.admission.ok() ? 0 : 1;
    if (!fate.admission.ok()) continue;
    counts.preemptions += fate.record.num_preempted;
    counts.cached += fate.record.num_cached;
    counts.loaded += fate.record.num_loaded;
    counts.drafted += fate.record.num_drafted;
    counts.accepted += fate.record.num_accepted;
    counts.paused += fate.record.paused_us > 0 ? 1 : 0;
    ++counts.finishes[static_cast<size_t>(fate.record.finish)];
  }
  return counts;
}

}  // namespace

SeedResult RunSeed(Family family, uint64_t seed, const Simulation::Trace& trace) {
  const SimScenario scenario = Make(family, seed);
  const SimOutcome outcome = Simulation(scenario, trace).Play();
  SeedResult result;
  result.failure = outcome.failure;
  result.counts = CountsOf(outcome);
  if (!result.failure.empty()) return result;
  if (family == Family::kStarvation) result.failure = CheckStarvation(scenario, outcome);
  if (family == Family::kPrompts) result.failure = CheckPrompts(scenario, outcome);
  if (family == Family::kLongPrompt) result.failure = CheckLongPrompt(scenario, outcome);
  if (family == Family::kChat) result.failure = CheckChat(scenario, outcome);
  if (family == Family::kTier) result.failure = CheckTier(scenario, outcome);
  if (family == Family::kSlowTier) result.failure = CheckSlowTier(scenario, outcome);
  if (family == Family::kInLine) result.failure = CheckInLine(scenario, outcome);
  if (family == Family::kBelow) result.failure = CheckBelow(scenario, outcome);
  if (family == Family::kQuota) result.failure = CheckQuota(scenario, outcome);
  if (family == Family::kNewcomer) result.failure = CheckNewcomer(scenario, outcome);
  if (family == Family::kShare) result.failure = CheckShare(outcome);
  if (family == Family::kQuiet) {
    for (const Neighbour neighbour : {Neighbour::kNone, Neighbour::kPolite, Neighbour::kFlood}) {
      const SimScenario again = QuietTenantScenario(seed, neighbour);
      const SimOutcome other = Simulation(again).Play();
      const double us = QuietUs(other);
      if (result.failure.empty()) result.failure = other.failure;
      if (us < 0) result.failure = "the quiet tenant starved";
      result.quiet_us[static_cast<size_t>(neighbour)] = us;
    }
  }
  // Nothing but the seed decides.
  if (family == Family::kRandom && seed % 64 == 0 && result.failure.empty()) {
    if (Simulation(scenario).Play().digest != outcome.digest) result.failure = "played differently";
  }
  return result;
}

}  // namespace hearth::testing
