// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet_route.h"

#include <algorithm>
#include <cmath>

#include "base/result.h"

namespace hearth {
namespace {

// With kPrecise, all replicas are asked up to this many; above it those that lately got a prompt
// with the same pages, and the least loaded.
constexpr size_t kAskAll = 64;
constexpr int kLeastLoadedAsked = 4;
constexpr size_t kHolderSlots = size_t{1} << 24;
// What a running reply costs a newcomer, in tokens of prompt.
constexpr double kStreamTokens = 64;

std::vector<std::string> Addresses(size_t count) {
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) {
    out.push_back(Printf("10.%d.%d.%d:8080", static_cast<int>(i >> 16),
                         static_cast<int>(i >> 8) & 255, static_cast<int>(i & 255)));
  }
  return out;
}

// The fastest has HAProxy's 100.
std::vector<int> Weights(const std::vector<double>& speeds) {
  const double most = *std::max_element(speeds.begin(), speeds.end());
  std::vector<int> out;
  for (const double speed : speeds) {
    out.push_back(std::max(1, static_cast<int>(std::lround(100 * speed / most))));
  }
  return out;
}

}  // namespace

const char* NameOf(FleetPolicy policy) {
  switch (policy) {
    case FleetPolicy::kRoundRobin:
      return "round robin";
    case FleetPolicy::kLeast:
      return "least loaded";
    case FleetPolicy::kSession:
      return "session hash";
    case FleetPolicy::kPrecise:
      return "precise";
  }
  return "";
}

FleetRouter::FleetRouter(Options options)
    : options_(std::move(options)),
      ring_(options_.policy == FleetPolicy::kSession ? Addresses(options_.speeds.size())
                                                     : std::vector<std::string>(),
            Weights(options_.speeds), options_.bounded_load),
      served_(options_.speeds.size(), 0),
      backlog_(options_.speeds.size(), 0),
      is_up_(options_.speeds.size(), 0),
      turns_(options_.speeds.size(), 0) {
  for (size_t i = 0; i < served_.size(); ++i) SetUp(static_cast<int>(i), true);
  if (options_.policy == FleetPolicy::kPrecise && served_.size() > kAskAll) {
    holders_.resize(kHolderSlots);
  }
}

void FleetRouter::Reorder(int replica, const std::function<void()>& change) {
  const auto i = static_cast<size_t>(replica);
  const auto place = [&] {
    const double load =
        options_.policy == FleetPolicy::kRoundRobin
            ? 0
            : (served_[i] + static_cast<double>(backlog_[i]) / kStreamTokens *
                                (options_.policy == FleetPolicy::kPrecise ? 1 : 0)) /
                  options_.speeds[i];
    return Place{load, turns_[i], replica};
  };
  if (is_up_[i] != 0) by_load_.erase(place());
  change();
  if (is_up_[i] != 0) by_load_.insert(place());
}

void FleetRouter::SetUp(int replica, bool is_up) {
  Reorder(replica, [&] { is_up_[static_cast<size_t>(replica)] = is_up ? 1 : 0; });
}

int FleetRouter::OnSent(int replica, const FleetAsk& ask) {
  const auto i = static_cast<size_t>(replica);
  int tokens = ask.prompt;
  if (options_.policy == FleetPolicy::kPrecise) tokens -= options_.cached(replica, ask);
  Reorder(replica, [&] {
    ++served_[i];
    backlog_[i] += tokens;
    turns_[i] = ++turn_;
  });
  if (holders_.empty()) return tokens;
  for (int page = 0; page < ask.prompt / options_.page; ++page) {
    const uint64_t name = ask.content.Page(page, options_.page);
    Holders& slot = holders_[name % kHolderSlots];
    if (slot.name != name) slot = {name, {-1, -1, -1, -1}};
    if (std::find(slot.who.begin(), slot.who.end(), replica) != slot.who.end()) continue;
    std::rotate(slot.who.begin(), slot.who.end() - 1, slot.who.end());
    slot.who[0] = static_cast<int16_t>(replica);
  }
  return tokens;
}

void FleetRouter::OnFirst(int replica, int tokens) {
  Reorder(replica, [&] { backlog_[static_cast<size_t>(replica)] -= tokens; });
}

void FleetRouter::OnGone(int replica) {
  Reorder(replica, [&] { --served_[static_cast<size_t>(replica)]; });
}

double FleetRouter::Cost(int replica, const FleetAsk& ask) const {
  const auto i = static_cast<size_t>(replica);
  const double own = ask.prompt - options_.cached(replica, ask);
  return (own + static_cast<double>(backlog_[i]) + kStreamTokens * served_[i]) / options_.speeds[i];
}

int FleetRouter::PickPrecise(const FleetAsk& ask) {
  std::set<int> asked;
  if (holders_.empty()) {
    for (size_t i = 0; i < is_up_.size(); ++i) asked.insert(static_cast<int>(i));
  } else {
    for (const Place& place : by_load_) {
      if (static_cast<int>(asked.size()) >= kLeastLoadedAsked) break;
      asked.insert(std::get<2>(place));
    }
    for (int page = (ask.prompt - 1) / options_.page - 1; page >= 0; --page) {
      const uint64_t name = ask.content.Page(page, options_.page);
      const Holders& slot = holders_[name % kHolderSlots];
      if (slot.name != name) continue;
      for (const int16_t who : slot.who) {
        if (who >= 0) asked.insert(who);
      }
      break;
    }
  }
  int best = -1;
  double least = 0;
  for (const int replica : asked) {
    if (is_up_[static_cast<size_t>(replica)] == 0) continue;
    const double cost = Cost(replica, ask);
    const bool is_better =
        best < 0 || cost < least ||
        (cost == least && turns_[static_cast<size_t>(replica)] < turns_[static_cast<size_t>(best)]);
    if (!is_better) continue;
    best = replica;
    least = cost;
  }
  return best;
}

int FleetRouter::Pick(const FleetAsk& ask) {
  if (by_load_.empty()) return -1;
  switch (options_.policy) {
    case FleetPolicy::kRoundRobin:
    case FleetPolicy::kLeast:
      return std::get<2>(*by_load_.begin());
    case FleetPolicy::kSession:
      return ring_.Pick(Printf("%016llx", static_cast<unsigned long long>(ask.key)),
                        {served_, is_up_});
    case FleetPolicy::kPrecise:
      return PickPrecise(ask);
  }
  return -1;
}

}  // namespace hearth
