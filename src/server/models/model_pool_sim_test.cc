// SPDX-License-Identifier: Apache-2.0
// Random crowds against the pool: whatever happens, the budget holds, pinned models stay, and
// everybody who waits is served in bounded time.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <utility>

#include "server/models/model_pool.h"

namespace hearth {
namespace {

using Kind = PoolAction::Kind;
constexpr int64_t kPatience = 2000, kMaxLoad = 3000, kMaxRun = 4000;

// One world: a clock, things that will happen, and the pool in the middle.
class World {
 public:
  explicit World(uint32_t seed) : random_(seed) {
    const int num_models = Draw(1, 8);
    int64_t most = 0, sum = 0;
    for (int i = 0; i < num_models; ++i) {
      sizes_.push_back(Draw(1, 20));
      most = std::max(most, sizes_.back());
      sum += sizes_.back();
    }
    pinned_ = Draw(0, 3) == 0 ? Draw(0, num_models - 1) : -1;
    const int64_t pinned = pinned_ < 0 ? 0 : sizes_[static_cast<size_t>(pinned_)];
    budget_ = pinned + most + Draw(0, static_cast<int>(sum));
    fails_ = Draw(0, 4) == 0 ? Draw(0, num_models - 1) : -1;
    num_clients_ = Draw(0, 2) == 0 ? 1 : Draw(2, 5);
    pool_ =
        std::make_unique<ModelPool>(PoolOptions{.budget_bytes = budget_, .patience_us = kPatience});
    for (int i = 0; i < num_models; ++i) {
      pool_->Offer(std::to_string(i), i == pinned_, Draw(0, 2) == 0 ? -1 : Draw(0, 9000));
    }
  }

  // Empty, or what went wrong.
  std::string Run(int num_requests) {
    int64_t arrives = 0;
    for (int i = 0; i < num_requests; ++i) {
      arrives += Draw(0, 3) == 0 ? Draw(0, 3000) : Draw(0, 100);
      After(arrives, [this] { Arrive(); });
    }
    Do([this](PoolActions& out) { pool_->Tick(now_, out); });
    while (problem_.empty()) {
      const auto next = events_.begin();
      const int64_t tick = pool_->NextTickUs();
      if (tick < 0 && next == events_.end()) break;
      if (tick >= 0 && (next == events_.end() || tick <= next->first)) {
        if (tick <= now_) return "a tick that has been";
        now_ = tick;
        Do([this](PoolActions& out) { pool_->Tick(now_, out); });
        continue;
      }
      now_ = next->first;
      const std::function<void()> happens = std::move(next->second);
      events_.erase(next);
      happens();
    }
    if (problem_.empty() && !asked_.empty()) problem_ = "somebody waits for ever";
    return problem_;
  }

 private:
  int Draw(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  void After(int64_t us, std::function<void()> happens) {
    events_.emplace(now_ + us, std::move(happens));
  }
  void Arrive() {
    const int model = Draw(0, pool_->size() - 1);
    const ModelTicket ticket = ++last_ticket_;
    const std::string client(1, static_cast<char>('a' + Draw(0, num_clients_ - 1)));
    asked_[ticket] = {now_, client};
    const auto keep = Draw(0, 3) == 0 ? std::optional<int64_t>(Draw(-1, 2000)) : std::nullopt;
    Do([&](PoolActions& out) { pool_->Ask(model, client, ticket, keep, now_, out); });
    if (Draw(0, 9) == 0) {
      After(Draw(0, 2000), [this, ticket] {
        if (asked_.erase(ticket) == 0) return;
        Do([&](PoolActions& out) { pool_->Forget(ticket, now_, out); });
      });
    }
    if (Draw(0, 19) == 0) {
      Do([&](PoolActions& out) {
        if (pool_->Unload(model, now_, out).ok() == (model == pinned_)) problem_ = "unload";
      });
    }
    if (Draw(0, 29) == 0) {
      Do([&](PoolActions& out) { pool_->Load(model, {}, {}, now_, out); });
    }
  }
  void Do(const std::function<void(PoolActions&)>& event) {
    PoolActions out;
    event(out);
    for (const PoolAction& action : out) Obey(action);
    Check();
  }
  void Obey(const PoolAction& action) {
    const int model = action.model;
    if (action.kind <= Kind::kUnload && std::exchange(is_busy_, true)) problem_ = "two jobs";
    if (action.kind == Kind::kUnload && model == pinned_) problem_ = "the pinned one left";
    if (action.kind == Kind::kUnload && users_[model] > 0) problem_ = "unloaded under its users";
    switch (action.kind) {
      case Kind::kMeasure:
        return After(Draw(0, 50), [this, model] {
          is_busy_ = false;
          Do([&](PoolActions& out) {
            pool_->OnMeasured(model, sizes_[static_cast<size_t>(model)], now_, out);
          });
        });
      case Kind::kLoad:
        return After(Draw(1, kMaxLoad), [this, model] {
          is_busy_ = false;
          const bool fails = model == fails_ && Draw(0, 2) == 0;
          const Status status = fails ? Status(Code::kIo, "no") : Status();
          Do([&](PoolActions& out) { pool_->OnLoaded(model, status, now_, out); });
        });
      case Kind::kUnload:
        return After(Draw(0, 300), [this, model] {
          is_busy_ = false;
          Do([&](PoolActions& out) { pool_->OnUnloaded(model, now_, out); });
        });
      case Kind::kGrant: {
        if (pool_->at(model).state != ModelState::kLoaded) problem_ = "granted what is not there";
        const std::string client = End(action.ticket);
        ++users_[model];
        return After(Draw(0, kMaxRun), [this, model, client] {
          --users_[model];
          if (!client.empty()) {
            Do([&](PoolActions& out) { pool_->Release(model, client, now_, out); });
          }
        });
      }
      case Kind::kRefuse:
        if (action.model != fails_) problem_ = "refused: " + action.why.message();
        End(action.ticket);
        return;
    }
  }
  // Whose it was.
  std::string End(ModelTicket ticket) {
    const auto found = asked_.find(ticket);
    if (found == asked_.end()) {
      problem_ = "an answer to nobody";
      return "";
    }
    const Asked asked = found->second;
    // Every model ahead in line may wait out its patience, those at work, and its own loading. With
    // other clients about, each of its own may wait for theirs as long as anybody has to.
    const int64_t others = num_clients_ == 1 ? 0 : 32 * 2 * kMaxLoad;
    const int64_t bound =
        kPatience + (pool_->size() + 1) * (kPatience + kMaxRun + 9 * 300 + kMaxLoad + 50 + others);
    if (now_ - asked.at_us > bound) problem_ = "waited too long";
    asked_.erase(found);
    return asked.client;
  }
  void Check() {
    if (pool_->used_bytes() > budget_) problem_ = "beyond the budget";
    if (pool_->num_waiting() != static_cast<int>(asked_.size())) problem_ = "lost a request";
    if (is_busy_) return;
    for (int i = 0; i < pool_->size(); ++i) {
      const PoolEntry& each = pool_->at(i);
      const bool waits = !each.waiters.empty() && each.state == ModelState::kLoaded;
      if (waits && !each.is_claimed && !each.is_leaving) problem_ = "waits for what is there";
    }
  }

  std::mt19937 random_;
  std::vector<int64_t> sizes_;
  int64_t budget_ = 0, now_ = 0;
  int pinned_ = -1, fails_ = -1, num_clients_ = 1;
  std::unique_ptr<ModelPool> pool_;
  std::multimap<int64_t, std::function<void()>> events_;
  struct Asked {
    int64_t at_us = 0;
    std::string client;
  };
  std::map<ModelTicket, Asked> asked_;
  std::map<int, int> users_;
  ModelTicket last_ticket_ = 0;
  bool is_busy_ = false;
  std::string problem_;
};

TEST(ModelPoolSimulation, NobodyStarvesAndTheBudgetHolds) {
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    ASSERT_EQ(World(seed).Run(60), "") << "seed " << seed;
  }
}

TEST(ModelPoolSimulation, NorInALongCrowd) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    ASSERT_EQ(World(1'000'000 + seed).Run(5000), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace hearth
