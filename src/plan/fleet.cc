// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>

namespace hearth {
namespace {

constexpr int kMoments = 60;
constexpr double kWarmUp = 0.1;  // of the requests
// A balancer with no replica to send to tries again after this.
constexpr int64_t kRetryUs = 1'000'000;

// Plays one fleet once. Thread: one.
class FleetPlayer {
 public:
  FleetPlayer(FleetLoad load, const FleetSetup& setup, const ServerShape& server,
              const TimingModel& timing)
      : load_(std::move(load)),
        setup_(setup),
        shared_(setup.tier.is_shared ? setup.tier.tokens / setup.page() : 0),
        slow_(timing),
        fast_(timing.Times(1 / setup.fast_times)),
        server_(server),
        router_(RouterOptions()) {
    for (int i = 0; i < setup.replicas; ++i) {
      const TimingModel& mine = i < setup.fast_replicas ? fast_ : slow_;
      Replica replica;
      replica.sim = setup.is_modelled()
                        ? MakeModelReplica(server_, mine, setup.tier, setup.page(), &shared_)
                        : MakeEngineReplica(server_, mine);
      replicas_.push_back(std::move(replica));
    }
    const FleetIncident& incident = setup.incident;
    if (incident.fail_at_s >= 0) Later(InUs(incident.fail_at_s), Kind::kFail, 0);
    if (incident.deploy_at_s >= 0) Later(InUs(incident.deploy_at_s), Kind::kWave, 0);
  }

  Result<FleetOutcome> Play() {
    Pull();
    while (!events_.empty() && open_ + pulled_ + resending_ > 0) {
      const Event event = events_.top();
      events_.pop();
      now_us_ = event.at_us;
      HEARTH_TRY(On(event));
    }
    return Outcome();
  }

 private:
  enum class Kind : uint8_t { kStep, kAsk, kSend, kFail, kWave, kDrained, kUp };
  struct Event {
    int64_t at_us = 0;
    uint64_t order = 0;
    Kind kind = Kind::kStep;
    int64_t what = 0;   // a replica, or a request
    uint32_t life = 0;  // of the replica: one that has restarted is another
    bool operator>(const Event& other) const {
      return at_us != other.at_us ? at_us > other.at_us : order > other.order;
    }
  };
  struct Replica {
    std::unique_ptr<FleetReplicaSim> sim;
    uint32_t life = 0;
    bool is_stepping = false, is_draining = false, is_down = false;
    int64_t requests = 0;
  };
  // A request from its ask to its end.
  struct Open {
    FleetAsk ask;
    int replica = -1;
    int64_t first_us = 0;  // of its first life that was heard
    int backlog = 0;       // tokens that the router counts for it until its first one comes
  };

  static int64_t InUs(double seconds) { return static_cast<int64_t>(1e6 * seconds); }

  FleetRouter::Options RouterOptions() {
    FleetRouter::Options options;
    options.policy = setup_.policy;
    options.bounded_load = setup_.bounded_load;
    options.page = setup_.page();
    for (int i = 0; i < setup_.replicas; ++i) {
      options.speeds.push_back(i < setup_.fast_replicas ? setup_.fast_times : 1);
    }
    options.cached = [this](int replica, const FleetAsk& ask) {
      return At(replica).sim->Cached(ask);
    };
    return options;
  }

  Replica& At(int64_t index) { return replicas_[static_cast<size_t>(index)]; }
  void Later(int64_t at_us, Kind kind, int64_t what, uint32_t life = 0) {
    events_.push({at_us, ++order_, kind, what, life});
  }

  // The next that comes by itself; one at a time, so that the queue stays short.
  void Pull() {
    std::optional<FleetAsk> ask = load_.Next();
    if (!ask) return;
    ++pulled_;
    next_ = std::move(ask);
    Later(next_->at_us, Kind::kAsk, 0);
  }

  Status On(const Event& event) {
    switch (event.kind) {
      case Kind::kAsk: {
        --pulled_;
        const int64_t number = Admit(std::move(*next_));
        Pull();
        return Send(number);
      }
      case Kind::kSend:
        --resending_;
        return Send(event.what);
      case Kind::kStep:
        if (event.life == At(event.what).life) StepEnded(static_cast<int>(event.what));
        break;
      case Kind::kFail:
        Fail();
        break;
      case Kind::kWave:
        BeginWave();
        break;
      case Kind::kDrained:
        if (event.life == At(event.what).life) TakeDown(static_cast<int>(event.what));
        break;
      case Kind::kUp:
        ComeUp(static_cast<int>(event.what));
        break;
    }
    return Status();
  }

  int64_t Admit(FleetAsk ask) {
    const int64_t number = ++num_asked_;
    ++open_;
    requests_.emplace(number, Open{std::move(ask), -1, 0, 0});
    return number;
  }

  Status Send(int64_t number) {
    Open& open = requests_.at(number);
    const int index = router_.Pick(open.ask);
    if (index < 0) {
      ++resending_;
      Later(now_us_ + kRetryUs, Kind::kSend, number);
      return Status();
    }
    Replica& replica = At(index);
    const Status status = replica.sim->Submit(number, open.ask, now_us_);
    if (!status.ok()) {
      if (status.code() == Code::kInvalid) return status;
      ++refused_;
      --open_;
      requests_.erase(number);
      return Status();
    }
    open.replica = index;
    ++replica.requests;
    open.backlog = router_.OnSent(index, open.ask);
    if (!replica.is_stepping) Step(index);
    return Status();
  }

  void Step(int index) {
    Replica& replica = At(index);
    const int64_t ends_us = replica.sim->Step(now_us_);
    replica.is_stepping = ends_us >= 0;
    if (replica.is_stepping) Later(ends_us, Kind::kStep, index, replica.life);
  }

  // What the step brought is known to the fleet when the step has ended.
  void StepEnded(int index) {
    Replica& replica = At(index);
    OnBegun(replica);
    for (const FleetEnd& end : replica.sim->TakeEnded()) OnEnd(end);
    replica.is_stepping = false;
    Step(index);
    if (!replica.is_stepping && replica.is_draining) TakeDown(index);
  }

  void OnBegun(Replica& replica) {
    for (const int64_t number : replica.sim->TakeBegun()) {
      Open& open = requests_.at(number);
      router_.OnFirst(open.replica, std::exchange(open.backlog, 0));
    }
  }

  void OnEnd(const FleetEnd& end) {
    const auto found = requests_.find(end.number);
    Open& open = found->second;
    if (open.first_us == 0) open.first_us = end.first_us;
    Forget(open);
    Count(open, end);
    std::optional<FleetAsk> next = load_.After(open.ask, end.ended_us);
    requests_.erase(found);
    --open_;
    if (!next) return;
    const int64_t at_us = std::max(next->at_us, now_us_);
    ++resending_;
    Later(at_us, Kind::kSend, Admit(std::move(*next)));
  }

  // The router's numbers, when a replica is done with it one way or the other.
  void Forget(Open& open) {
    router_.OnFirst(open.replica, std::exchange(open.backlog, 0));
    router_.OnGone(open.replica);
    open.replica = -1;
  }

  void Count(const Open& open, const FleetEnd& end) {
    const double waited_s = 1e-6 * static_cast<double>(open.first_us - open.ask.at_us);
    samples_.push_back(
        {open.ask.at_us, static_cast<float>(waited_s),
         static_cast<float>(1e-6 * static_cast<double>(end.ended_us - open.ask.at_us)),
         open.ask.prompt, end.cached, end.fetched, open.ask.reply});
  }

  // --- what happens to replicas ---

  void Fail() {
    int left = setup_.incident.fail_count;
    for (int i = 0; i < setup_.replicas && left > 0; ++i) {
      if (At(i).is_down) continue;
      TakeDown(i);
      --left;
    }
  }

  void BeginWave() {
    const int size = std::max(1, static_cast<int>(setup_.incident.wave_share * setup_.replicas));
    for (int i = 0; i < size && next_in_wave_ < setup_.replicas; ++i) {
      const int index = next_in_wave_++;
      Replica& replica = At(index);
      if (replica.is_down) continue;
      ++in_wave_;
      replica.is_draining = true;
      router_.SetUp(index, false);
      NoteUp(-1);
      Later(now_us_ + InUs(setup_.incident.drain_s), Kind::kDrained, index, replica.life);
      if (!replica.is_stepping) TakeDown(index);
    }
  }

  void TakeDown(int index) {
    Replica& replica = At(index);
    if (replica.is_down) return;
    if (!replica.is_draining) {
      router_.SetUp(index, false);
      NoteUp(-1);
    }
    OnBegun(replica);
    for (const FleetEnd& end : replica.sim->TakeEnded()) OnEnd(end);  // of the step under way
    std::vector<int64_t> again;
    for (const FleetReplicaSim::Lost& lost : replica.sim->Restart()) {
      Open& open = requests_.at(lost.number);
      if (lost.first_us > 0 && open.first_us == 0) open.first_us = lost.first_us;
      ++(lost.first_us > 0 ? broken_ : resent_);
      Forget(open);
      again.push_back(lost.number);
    }
    ++replica.life;
    replica.is_stepping = false;
    replica.is_down = true;
    Later(now_us_ + InUs(setup_.incident.restart_s), Kind::kUp, index);
    for (const int64_t number : again) {
      ++resending_;
      Later(now_us_, Kind::kSend, number);
    }
  }

  void ComeUp(int index) {
    Replica& replica = At(index);
    const bool was_in_wave = replica.is_draining;
    replica.is_down = replica.is_draining = false;
    router_.SetUp(index, true);
    NoteUp(1);
    if (was_in_wave && --in_wave_ == 0 && next_in_wave_ < setup_.replicas) BeginWave();
  }

  void NoteUp(int change) {
    num_down_ -= change;
    ups_.push_back({now_us_, setup_.replicas - num_down_});
  }

  // --- what it came to ---

  struct Sample {
    int64_t at_us;
    float first_s, reply_s;
    int prompt, cached, fetched, said;
  };

  FleetOutcome Outcome() {
    FleetOutcome out;
    out.policy = setup_.policy;
    out.replicas = setup_.replicas;
    out.is_modelled = setup_.is_modelled();
    out.requests = num_asked_;
    out.refused = refused_;
    out.broken = broken_;
    out.resent = resent_;
    out.simulated_s = 1e-6 * static_cast<double>(now_us_);
    std::sort(samples_.begin(), samples_.end(),
              [](const Sample& a, const Sample& b) { return a.at_us < b.at_us; });
    const auto from = static_cast<size_t>(kWarmUp * static_cast<double>(samples_.size()));
    AddSums(out, from);
    AddReplicas(out);
    AddMoments(out);
    return out;
  }

  void AddSums(FleetOutcome& out, size_t from) const {
    std::vector<double> first, reply;
    double prompt = 0, cached = 0, fetched = 0, said = 0;
    for (size_t i = from; i < samples_.size(); ++i) {
      const Sample& s = samples_[i];
      first.push_back(s.first_s);
      reply.push_back(s.reply_s);
      prompt += s.prompt;
      cached += s.cached;
      fetched += s.fetched;
      said += s.said;
    }
    out.counted = static_cast<int64_t>(first.size());
    if (first.empty()) return;
    out.hit_share = cached / prompt;
    out.fetched_share = fetched / prompt;
    const double seconds =
        1e-6 * static_cast<double>(std::max<int64_t>(1, now_us_ - samples_[from].at_us));
    out.tokens_per_second = said / seconds;
    out.requests_per_second = static_cast<double>(first.size()) / seconds;
    out.first_token_s = PlanPercentilesOf(std::move(first));
    out.reply_s = PlanPercentilesOf(std::move(reply));
  }

  void AddReplicas(FleetOutcome& out) const {
    GapHistogram gaps;
    double steps = 0, decoded = 0, most = 0, all = 0;
    for (const Replica& replica : replicas_) {
      gaps.Add(replica.sim->gaps);
      steps += static_cast<double>(replica.sim->steps);
      decoded += static_cast<double>(replica.sim->decoded);
      most = std::max(most, static_cast<double>(replica.requests));
      all += static_cast<double>(replica.requests);
    }
    out.gap_s = {gaps.SecondsAt(0.50), gaps.SecondsAt(0.95), gaps.SecondsAt(0.99)};
    if (steps > 0) out.mean_batch = decoded / steps;
    if (all > 0) out.busiest = most * setup_.replicas / all;
  }

  void AddMoments(FleetOutcome& out) const {
    if (samples_.empty()) return;
    const int64_t length = std::max<int64_t>(1, samples_.back().at_us / kMoments + 1);
    size_t next = 0, up = 0;
    int now_up = setup_.replicas;
    for (int i = 0; i < kMoments; ++i) {
      const int64_t end_us = (i + 1) * length;
      FleetMoment moment{.from_s = 1e-6 * static_cast<double>(i * length), .least_up = now_up};
      std::vector<double> first;
      double prompt = 0, cached = 0;
      for (; next < samples_.size() && samples_[next].at_us < end_us; ++next) {
        first.push_back(samples_[next].first_s);
        prompt += samples_[next].prompt;
        cached += samples_[next].cached;
      }
      for (; up < ups_.size() && ups_[up].at_us < end_us; ++up) {
        now_up = ups_[up].count;
        moment.least_up = std::min(moment.least_up, now_up);
      }
      moment.requests = static_cast<int64_t>(first.size());
      moment.hit_share = prompt > 0 ? cached / prompt : 0;
      moment.first_token_p95_s = PlanPercentilesOf(std::move(first)).p95;
      out.moments.push_back(moment);
    }
  }

  struct Up {
    int64_t at_us;
    int count;
  };

  FleetLoad load_;
  const FleetSetup setup_;
  PageCache shared_;
  const TimingModel slow_, fast_;
  const ServerShape server_;
  std::vector<Replica> replicas_;
  FleetRouter router_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::unordered_map<int64_t, Open> requests_;
  std::optional<FleetAsk> next_;
  std::vector<Sample> samples_;
  std::vector<Up> ups_;
  int64_t now_us_ = 0, num_asked_ = 0, open_ = 0, pulled_ = 0, resending_ = 0;
  int64_t refused_ = 0, broken_ = 0, resent_ = 0;
  uint64_t order_ = 0;
  int next_in_wave_ = 0, in_wave_ = 0, num_down_ = 0;
};

}  // namespace

Result<FleetOutcome> SimulateFleet(FleetLoad load, const FleetSetup& setup,
                                   const ServerShape& server, const TimingModel& timing) {
  const auto began = std::chrono::steady_clock::now();
  FleetPlayer player(std::move(load), setup, server, timing);
  HEARTH_ASSIGN(FleetOutcome outcome, player.Play());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  outcome.took_s = took.count();
  return outcome;
}

bool Meets(const FleetOutcome& outcome, const LoadTarget95& target) {
  return outcome.refused == 0 && outcome.counted > 0 &&
         outcome.first_token_s.p95 <= target.first_token_s && outcome.gap_s.p95 <= target.gap_s;
}

Result<FleetSearch> FindReplicas(const std::function<FleetLoad()>& load, FleetSetup setup, int most,
                                 const ServerShape& server, const TimingModel& timing,
                                 const LoadTarget95& target) {
  std::map<int, FleetOutcome> tried;
  const auto is_enough = [&](int replicas) -> Result<bool> {
    setup.replicas = replicas;
    if (!tried.contains(replicas)) {
      HEARTH_ASSIGN(tried[replicas], SimulateFleet(load(), setup, server, timing));
    }
    return Meets(tried[replicas], target);
  };
  int high = 1, low = 0;  // low is not enough
  bool found = false;
  while (true) {
    HEARTH_ASSIGN(found, is_enough(high));
    if (found || high >= most) break;
    low = high;
    high = std::min(2 * high, most);
  }
  // Near enough: a hundredth of a fleet is within what the load itself varies by.
  while (found && high - low > std::max(1, high / 100)) {
    const int middle = low + (high - low) / 2;
    HEARTH_ASSIGN(const bool enough, is_enough(middle));
    (enough ? high : low) = middle;
  }
  FleetSearch search{.replicas = found ? high : 0, .tried = {}};
  for (auto& [replicas, outcome] : tried) search.tried.push_back(std::move(outcome));
  return search;
}

TimingModel TimingOfRates(double prefill, double decode, int batch) {
  const double per_token = 1e6 / prefill;
  const double step = 1e6 * batch / decode;
  const double fixed = std::max(0.0, step - batch * per_token);
  return TimingModel({{1, fixed + per_token}, {513, fixed + 513 * per_token}}, 0);
}

}  // namespace hearth
