// SPDX-License-Identifier: Apache-2.0
// Clients of several kinds against the pool of models under a virtual clock: what one of them may
// cost the others by having models loaded. For the simulation and for its planted bugs.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/models/model_pool.h"
namespace hearth::testing {

inline constexpr int64_t kMs = 1000, kSecond = 1'000'000;

// What somebody's connection does for ever: asks for one of its models, rests, asks again.
struct Habit {
  std::string client;
  std::vector<int> models;  // in turns
  int64_t run_us = 5 * kMs;
  int64_t rest_us = 0;
  bool leaves_early = false;  // hangs up a little later, whatever has happened
};

// There is room for `room` models of ordinary size; the last one may be twice as large. Each takes
// its time to load.
class Household {
 public:
  Household(std::vector<int64_t> load_us, int room, uint32_t seed, bool has_large = false)
      : load_us_(std::move(load_us)), has_large_(has_large), random_(seed) {
    pool_ = std::make_unique<ModelPool>(PoolOptions{.budget_bytes = 10 * room + 5});
    for (size_t i = 0; i < load_us_.size(); ++i) pool_->Offer(std::to_string(i), false, -1);
    Do([this](PoolActions& out) { pool_->Tick(now_, out); });
  }
  void Add(const Habit& habit, int64_t from_us = 0) {
    After(from_us, [this, habit] { Ask(habit, 0); });
  }
  void RunUntil(int64_t until_us) {
    while (true) {
      const int64_t tick = pool_->NextTickUs();
      const int64_t next = events_.empty() ? until_us : events_.begin()->first;
      if (std::min(next, tick < 0 ? next : tick) >= until_us) break;
      if (tick >= 0 && tick < next) {
        ASSERT_GT(tick, now_);
        now_ = tick;
        Do([this](PoolActions& out) { pool_->Tick(now_, out); });
        continue;
      }
      now_ = next;
      const auto happens = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      happens();
    }
    now_ = until_us;
  }
  // Of requests of `client` that began since `since_us`: how long each waited for its model. Those
  // that wait still count so far.
  std::vector<int64_t> Waits(const std::string& client, int64_t since_us = 0) const {
    std::vector<int64_t> waits;
    for (const Wait& each : waits_) {
      if (each.client == client && each.at_us >= since_us) waits.push_back(each.us);
    }
    for (const auto& [ticket, request] : asked_) {
      if (request.habit.client == client && request.at_us >= since_us) {
        waits.push_back(now_ - request.at_us);
      }
    }
    return waits;
  }
  int num_loads(int model) const { return loads_.contains(model) ? loads_.at(model) : 0; }
  int num_loads() const {
    int sum = 0;
    for (const auto& [model, count] : loads_) sum += count;
    return sum;
  }
  const ModelPool& pool() const { return *pool_; }

 private:
  using Kind = PoolAction::Kind;
  struct Request {
    Habit habit;
    size_t number = 0;
    int64_t at_us = 0;
  };
  struct Wait {
    std::string client;
    int64_t at_us = 0, us = 0;
  };
  void After(int64_t us, std::function<void()> happens) {
    events_.emplace(now_ + us, std::move(happens));
  }
  void Ask(const Habit& habit, size_t number) {
    const ModelTicket ticket = ++last_ticket_;
    asked_[ticket] = {habit, number, now_};
    const int model = habit.models[number % habit.models.size()];
    Do([&](PoolActions& out) { pool_->Ask(model, habit.client, ticket, {}, now_, out); });
    if (!habit.leaves_early) return;
    After(Near(kSecond), [this, ticket] {
      const auto found = asked_.find(ticket);
      if (found == asked_.end()) return;
      const Request request = found->second;
      asked_.erase(found);
      Do([&](PoolActions& out) { pool_->Forget(ticket, now_, out); });
      Ask(request.habit, request.number + 1);
    });
  }
  // So that nothing falls into step.
  int64_t Near(int64_t us) {
    return us + std::uniform_int_distribution<int64_t>(0, us / 4 + 10)(random_);
  }
  void Do(const std::function<void(PoolActions&)>& event) {
    PoolActions out;
    event(out);
    for (const PoolAction& action : out) Obey(action);
  }
  void Obey(const PoolAction& action) {
    const int model = action.model;
    if (action.kind == Kind::kMeasure) {
      return After(kMs, [this, model] {
        const bool is_large = has_large_ && model == pool_->size() - 1;
        Do([&](PoolActions& out) { pool_->OnMeasured(model, is_large ? 20 : 10, now_, out); });
      });
    }
    if (action.kind == Kind::kLoad) {
      ++loads_[model];
      return After(load_us_[static_cast<size_t>(model)], [this, model] {
        Do([&](PoolActions& out) { pool_->OnLoaded(model, Status(), now_, out); });
      });
    }
    if (action.kind == Kind::kUnload) {
      return After(kMs, [this, model] {
        Do([&](PoolActions& out) { pool_->OnUnloaded(model, now_, out); });
      });
    }
    ASSERT_EQ(action.kind, Kind::kGrant);
    const Request request = asked_.at(action.ticket);
    asked_.erase(action.ticket);
    waits_.push_back({request.habit.client, request.at_us, now_ - request.at_us});
    After(Near(request.habit.run_us), [this, model, request] {
      Do([&](PoolActions& out) { pool_->Release(model, request.habit.client, now_, out); });
      After(request.habit.rest_us == 0 ? 0 : Near(request.habit.rest_us),
            [this, request] { Ask(request.habit, request.number + 1); });
    });
  }

  const std::vector<int64_t> load_us_;
  const bool has_large_;
  std::mt19937 random_;
  int64_t now_ = 0;
  std::unique_ptr<ModelPool> pool_;
  std::multimap<int64_t, std::function<void()>> events_;
  std::map<ModelTicket, Request> asked_;
  std::vector<Wait> waits_;
  std::map<int, int> loads_;
  ModelTicket last_ticket_ = 0;
};

inline int64_t At(std::vector<int64_t> waits, double part) {
  std::sort(waits.begin(), waits.end());
  return waits.empty() ? -1
                       : waits[static_cast<size_t>(part * static_cast<double>(waits.size() - 1))];
}
inline int64_t CountAbove(const std::vector<int64_t>& waits, int64_t us) {
  return std::count_if(waits.begin(), waits.end(), [&](int64_t each) { return each > us; });
}
inline int64_t Sum(const std::vector<int64_t>& waits) {
  int64_t sum = 0;
  for (const int64_t each : waits) sum += each;
  return sum;
}

inline constexpr int64_t kLoad = 500 * kMs;
inline constexpr int64_t kLong = 600 * kSecond;
// What one loss costs: the other model's load, and its own.
inline constexpr int64_t kCost = 2 * kLoad;
inline const Habit kVictim{"victim", {0}, 5 * kMs, 20 * kMs};

// Both models, with four connections.
inline void AddStorm(Household& house, bool leaves_early = false) {
  for (int i = 0; i < 4; ++i) {
    Habit rival{"rival", {0, 1}, 5 * kMs, 0, leaves_early};
    if (i % 2 == 1) std::swap(rival.models[0], rival.models[1]);
    house.Add(rival, kSecond);
  }
}

// Empty, or which promise is broken: a victim that asks all the time loses its model at most once
// in sixteen times what that costs it, and then has it back after the other's load and its own.
inline std::string WhatVictimMisses(const Household& house) {
  const std::vector<int64_t> waits = house.Waits("victim", kSecond);
  if (waits.size() < kLong / (50 * kMs)) return "it is hardly served";
  if (At(waits, 0.99) > 0) return "more than one in a hundred of its requests waits";
  if (CountAbove(waits, 0) > kLong / (16 * kCost) + 2) return "it waits too often";
  if (At(waits, 1) > kCost + 2 * kSecond + 50 * kMs) return "it waits too long at once";
  if (Sum(waits) > kLong / 16 + 3 * kCost) return "it waits too long altogether";
  return "";
}

inline std::string StormOfTwo(uint32_t seed, bool leaves_early) {
  Household house({kLoad, kLoad}, 1, seed);
  house.Add(kVictim);
  AddStorm(house, leaves_early);
  house.RunUntil(kLong);
  if (leaves_early) return WhatVictimMisses(house);
  // The attack is one: it has its model loaded again and again, and is not starved either.
  if (house.num_loads(1) < kLong / (20 * kCost)) return "the other one hardly loads anything";
  if (At(house.Waits("rival"), 1) > 33 * kCost) return "the other one starves";
  return WhatVictimMisses(house);
}

inline std::string StormOfMany() {
  Household house(std::vector<int64_t>(9, kLoad), 1, 2);
  house.Add(kVictim);
  for (int i = 1; i < 9; ++i) house.Add({"rival", {i, 0}, 5 * kMs}, kSecond);
  house.RunUntil(kLong);
  return WhatVictimMisses(house);
}

// As before there were shares: nobody waits for anything but the loads themselves.
inline std::string Alone() {
  Household house({kLoad, kLoad}, 1, 3);
  house.Add({"alone", {0, 1}, 5 * kMs});
  house.RunUntil(kLong);
  if (house.num_loads() < kLong / (kLoad + 12 * kMs)) return "fewer loads than there is time for";
  if (At(house.Waits("alone"), 1) > kLoad + 3 * kMs) return "it waits for more than a load";
  return house.pool().num_deferred() == 0 ? "" : "it is deferred";
}

// One that needs the room of two, beside people whose small models come and go at different times.
inline std::string LargeBesideSmall() {
  Household house(std::vector<int64_t>(5, kLoad), 2, 8, true);
  for (int i = 0; i < 4; ++i) {
    house.Add({"client " + std::to_string(i), {i}, 5 * kMs, 20 * kMs}, i * kSecond);
  }
  house.Add({"large", {4}, 5 * kMs, 20 * kMs}, 10 * kSecond);
  house.RunUntil(kLong);
  return At(house.Waits("large"), 1) > 34 * kCost ? "the large one starves" : "";
}

// Endless strangers, each with one request, must not keep anybody from its turn.
inline std::string BesideStrangers() {
  Household house(std::vector<int64_t>(4, kLoad), 1, 7);
  AddStorm(house);
  for (int i = 0; i < 600; ++i) {
    house.Add({"stranger " + std::to_string(i), {2 + i % 2}, 5 * kMs, kLong}, i * kSecond);
  }
  house.RunUntil(kLong);
  if (At(house.Waits("rival"), 1) > 2 * 32 * kCost + 10 * kSecond) return "who owes starves";
  for (int i = 0; i < 560; ++i) {
    if (At(house.Waits("stranger " + std::to_string(i)), 1) > 33 * kCost)
      return "a stranger starves";
  }
  return "";
}

}  // namespace hearth::testing
