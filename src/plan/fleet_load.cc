// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet_load.h"

#include <algorithm>
#include <cmath>

#include "base/mix.h"

namespace hearth {
namespace {

constexpr int kLeastTokens = 8;
constexpr double kMostTimesMean = 6;

uint64_t Fold(uint64_t a, uint64_t b) { return MixBits(MixBits(a ^ kGoldenRatio) ^ b); }

// Exponential around the mean, without the absurdly long.
int Length(double mean, SimRandom& random) {
  const double drawn = std::min(random.Exponential(mean), kMostTimesMean * mean);
  return std::max(kLeastTokens, static_cast<int>(drawn));
}

}  // namespace

uint64_t FleetContent::Page(int index, int page) const {
  const int64_t end = int64_t{index + 1} * page;
  if (names != nullptr && end <= static_cast<int64_t>(names->size()) * unit) {
    const uint64_t name = (*names)[static_cast<size_t>((end - 1) / unit)];
    return Fold(name, static_cast<uint64_t>(index));
  }
  return Fold(names == nullptr && end <= shared ? app : session, static_cast<uint64_t>(index));
}

Token FleetContent::At(int position, int vocab) const {
  uint64_t name = position < shared && names == nullptr ? app : session;
  if (names != nullptr && position < static_cast<int64_t>(names->size()) * unit) {
    name = (*names)[static_cast<size_t>(position / unit)];
  }
  return static_cast<Token>(Fold(name, static_cast<uint64_t>(position)) %
                            static_cast<uint64_t>(vocab));
}

FleetLoad::FleetLoad(const FleetChats& chats)
    : chats_(chats), random_(chats.seed), total_(chats.requests) {
  double sum = 0;
  for (int app = 0; app < chats.apps; ++app) app_shares_.push_back(sum += 1.0 / (app + 1));
  for (double& share : app_shares_) share /= sum;
}

FleetLoad::FleetLoad(std::vector<FleetAsk> recorded)
    : recorded_(std::move(recorded)), total_(static_cast<int64_t>(recorded_.size())) {
  std::stable_sort(recorded_.begin(), recorded_.end(),
                   [](const FleetAsk& a, const FleetAsk& b) { return a.at_us < b.at_us; });
}

FleetAsk FleetLoad::Turn(int chat, int turn, int history, int64_t at_us) {
  // A chat's own numbers: the same whichever replica is slow and whoever else comes between.
  SimRandom draw(Fold(chats_.seed, Fold(static_cast<uint64_t>(chat), static_cast<uint64_t>(turn))));
  SimRandom once(Fold(chats_.seed, Fold(static_cast<uint64_t>(chat), ~uint64_t{0})));
  const auto place = std::lower_bound(app_shares_.begin(), app_shares_.end(), once.Share());
  const auto app = static_cast<uint64_t>(place - app_shares_.begin());
  FleetAsk ask;
  ask.at_us = at_us;
  ask.chat = chat;
  ask.turn = turn;
  ask.content.app = Fold(chats_.seed, app + 1);
  ask.content.session = ask.key = Fold(ask.content.app, static_cast<uint64_t>(chat));
  ask.content.shared = chats_.system;
  ask.prompt = (turn == 0 ? chats_.system : history) + Length(chats_.message, draw);
  ask.reply = Length(chats_.reply, draw);
  return ask;
}

std::optional<FleetAsk> FleetLoad::Next() {
  if (!recorded_.empty()) {
    if (next_recorded_ == recorded_.size()) return std::nullopt;
    return std::move(recorded_[next_recorded_++]);
  }
  if (begun_ >= chats_.requests) return std::nullopt;
  ++begun_;
  clock_us_ += static_cast<int64_t>(random_.Exponential(1e6 * chats_.turns / chats_.rate));
  return Turn(num_chats_++, 0, 0, clock_us_);
}

std::optional<FleetAsk> FleetLoad::After(const FleetAsk& ask, int64_t ended_us) {
  if (ask.chat < 0 || begun_ >= chats_.requests) return std::nullopt;
  SimRandom draw(
      Fold(~chats_.seed, Fold(static_cast<uint64_t>(ask.chat), static_cast<uint64_t>(ask.turn))));
  if (draw.Share() >= 1 - 1 / chats_.turns) return std::nullopt;
  ++begun_;
  const auto think_us = static_cast<int64_t>(draw.Exponential(1e6 * chats_.think_s));
  return Turn(ask.chat, ask.turn + 1, ask.prompt + ask.reply, ended_us + think_us);
}

}  // namespace hearth
