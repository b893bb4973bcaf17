// SPDX-License-Identifier: Apache-2.0
#include "play.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "sim_server.h"
#include "visit.h"

namespace hearth::testing {
namespace {

// Who half sends or hardly reads is sent away by then.
constexpr int64_t kAllGoneUs = 300'000'000;
// What the end may take beyond its bound: a step, and the moment that last bytes get.
constexpr int64_t kDrainSlackUs = 3'500'000;

std::string CheckAccounts(const Accounts& accounts) {
  const AccountCounts counts = accounts.counts();
  for (const int64_t bytes : counts.held_bytes) {
    if (bytes < 0) return "an account holds less than nothing";
  }
  // One read of a body, and one prompt, may be beyond before they are refused.
  constexpr int64_t kSlack = 70'000;
  if (counts.held_bytes[0] + counts.held_bytes[1] > counts.budget_bytes + kSlack) {
    return "bodies and prompts hold more than the budget";
  }
  return {};
}

class Player {
 public:
  Player(const Scene& scene, uint64_t seed)
      : scene_(scene),
        name_(Printf("hearth-sim-%d-%llu", static_cast<int>(::getpid()),
                     static_cast<unsigned long long>(seed))) {}

  PlayResult Run() {
    server_ = std::make_unique<SimServer>(scene_, name_);
    SimOs::Get().set_store_fails(true);
    start_us_ = SimOs::Get().now_us();
    for (size_t i = 0; i < scene_.visitors.size(); ++i) {
      visits_.push_back(std::make_unique<Visit>(scene_.visitors[i], static_cast<int>(i), *server_,
                                                name_, result_.counts));
    }
    std::thread operator_thread;
    if (scene_.drain_at_us >= 0) operator_thread = std::thread([this] { DrainInTheMiddle(); });
    Receive();
    if (operator_thread.joinable()) operator_thread.join();
    if (scene_.drain_at_us < 0) EndCalmly();
    Count();
    visits_.clear();
    SimOs::Get().set_store_fails(false);
    const std::string left = server_->Dismantle();
    if (!left.empty()) Fail(left);
    server_ = nullptr;
    return result_;
  }

 private:
  void Fail(const std::string& what) {
    if (result_.failure.empty()) result_.failure = what;
  }

  void Receive() {
    while (result_.failure.empty()) {
      Visit* next = nullptr;
      for (const auto& visit : visits_) {
        if (visit->is_done()) continue;
        if (next == nullptr || visit->next_us() < next->next_us()) next = visit.get();
      }
      if (next == nullptr) return;
      SimOs::Get().SleepUntil(next->next_us() * 1000);
      next->Tick();
      if (SimOs::Get().now_us() - start_us_ > kAllGoneUs) next->GiveUp();
      if (!next->failure().empty()) Fail(next->failure());
      const std::string accounts = CheckAccounts(*server_->accounts);
      if (!accounts.empty()) Fail(accounts);
    }
  }

  void DrainInTheMiddle() {
    std::this_thread::sleep_for(std::chrono::microseconds(scene_.drain_at_us));
    ++result_.counts.drained;
    Drain();
    server_->http = nullptr;  // as the program does when it has drained
  }

  // All have gone: what they left behind goes as well, but for what runs in the background.
  void EndCalmly() {
    const int64_t bound_us = 1'500'000 + 4 * (scene_.step_us + 512 * scene_.token_us);
    if (!HasBackground() && !server_->GetsQuiet(bound_us)) Fail("it works for those who left");
    Drain();
    if (!server_->has_told_all && result_.failure.empty()) Fail("it talks to those who left");
  }

  bool HasBackground() const {
    for (const Visitor& visitor : scene_.visitors) {
      for (const Ask& ask : visitor.asks) {
        if (ask.background) return true;
      }
    }
    return false;
  }

  void Drain() {
    const int64_t us = server_->DrainUs();
    const int64_t bound_us = scene_.drain_bound_us + kDrainSlackUs;
    if (us > bound_us) Fail(Printf("draining took %.3f s", static_cast<double>(us) * 1e-6));
  }

  void Count() {
    PlayCounts& counts = result_.counts;
    counts.cut = server_->accounts->counts().cut;
    counts.failed_steps = server_->num_failed_steps;
    counts.store_failures = SimOs::Get().num_store_failures();
    counts.preempted = static_cast<int64_t>(server_->engine->snapshot()->totals.num_preemptions);
  }

  const Scene& scene_;
  const std::string name_;
  std::unique_ptr<SimServer> server_;
  std::vector<std::unique_ptr<Visit>> visits_;
  int64_t start_us_ = 0;
  PlayResult result_;
};

}  // namespace

void PlayCounts::Add(const PlayCounts& other) {
  const auto add = [&](int64_t PlayCounts::* count) { this->*count += other.*count; };
  for (const auto count :
       {&PlayCounts::asks, &PlayCounts::whole, &PlayCounts::streamed, &PlayCounts::refused,
        &PlayCounts::failed, &PlayCounts::unanswered, &PlayCounts::left, &PlayCounts::stored,
        &PlayCounts::background, &PlayCounts::cancelled, &PlayCounts::cut, &PlayCounts::drained,
        &PlayCounts::failed_steps, &PlayCounts::store_failures, &PlayCounts::preempted,
        &PlayCounts::switches}) {
    add(count);
  }
}

PlayResult Play(uint64_t seed, bool is_tracing) {
  Scene scene = SceneOf(seed);
  scene.os.is_tracing = is_tracing;
  for (Visitor& visitor : scene.visitors) {
    for (Ask& ask : visitor.asks) SimHouse::Get().Foretell(ask);
  }
  SimOs& os = SimOs::Get();
  os.Begin(scene.os);
  const int64_t began_us = os.now_us();
  PlayResult result = Player(scene, seed).Run();
  result.us = os.now_us() - began_us;
  result.digest = os.digest();
  result.counts.switches = static_cast<int64_t>(os.num_switches());
  os.End();
  return result;
}

}  // namespace hearth::testing
