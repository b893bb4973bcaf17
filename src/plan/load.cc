// SPDX-License-Identifier: Apache-2.0
#include "plan/load.h"

#include <algorithm>
#include <map>
#include <queue>

#include "backend/immediate_backend.h"
#include "base/spread.h"
#include "sim/random.h"

namespace hearth {
namespace {

constexpr int kVocab = 64;
constexpr int kLeastReplies = 96;        // of all users: a median of fewer is chance
constexpr int64_t kStartUs = 1'000'000;  // 0 means "did not happen" in records

// Computes nothing: a step takes what the timing model says.
class TimedBackend : public ImmediateBackend {
 public:
  TimedBackend(const KvLayout& layout, const TimingModel& timing, VirtualClock& clock)
      : layout_(layout), timing_(timing), clock_(clock) {}
  std::string_view name() const override { return "timed"; }
  KvLayout kv_layout() const override { return layout_; }
  int vocab_size() const override { return kVocab; }
  double decoded = 0, decode_steps = 0;

 protected:
  Status Compute(const StepPlan& plan, std::span<float> logits) override {
    std::fill(logits.begin(), logits.end(), 0.0f);
    const auto us = static_cast<int64_t>(timing_.StepUs(plan));
    clock_.Advance(std::max<int64_t>(1, us));
    int decoding = 0;
    for (const SeqSlice& slice : plan.slices) decoding += slice.count == 1 ? 1 : 0;
    decoded += decoding;
    decode_steps += decoding > 0 ? 1 : 0;
    return Status();
  }

 private:
  const KvLayout layout_;
  const TimingModel& timing_;
  VirtualClock& clock_;
};

// Plays a load once. Thread: one.
class Player {
 public:
  Player(const UserLoad& load, const ServerShape& server, const TimingModel& timing)
      : load_(load),
        asks_(std::max(load.asks, 1 + (kLeastReplies + load.users - 1) / load.users)),
        random_(load.seed),
        prompts_(load.seed, EvenSpread::kGolden),
        replies_(load.seed, EvenSpread::kRootTwo),
        backend_(server.kv, timing, clock_),
        core_(backend_, server.options, clock_) {
    clock_.Advance(kStartUs);
    for (int i = 0; i < load.shared; ++i) preamble_.push_back(random_.Between(0, kVocab - 1));
    asked_.resize(static_cast<size_t>(load.users));
    for (int user = 0; user < load.users; ++user) {
      Later(static_cast<int64_t>(random_.Exponential(1e6 * load.think_s)), user);
    }
  }

  Result<LoadOutcome> Play() {
    while (!events_.empty() || !core_.is_idle()) {
      HEARTH_TRY(Deliver());
      most_running_ =
          std::max<int>(most_running_, static_cast<int>(core_.scheduler().running().size()));
      if (!core_.Step()) Rest();
    }
    return Outcome();
  }

 private:
  // One request's life.
  class Reader : public EventSink {
   public:
    Reader(Player& player, int user) : player_(player), user_(user) {}
    int Room() const override { return 1 << 20; }
    void OnToken(const TokenEvent&) override { heard_us_.push_back(player_.clock_.now_us()); }
    void OnFinish(const RequestRecord& record) override { player_.OnEnd(user_, record, heard_us_); }

   private:
    Player& player_;
    const int user_;
    std::vector<int64_t> heard_us_;
  };

  struct Ask {
    int64_t at_us = 0;
    int user = 0;
    bool operator>(const Ask& other) const {
      return at_us != other.at_us ? at_us > other.at_us : user > other.user;
    }
  };

  void Later(int64_t after_us, int user) { events_.push({clock_.now_us() + after_us, user}); }

  // What is not alike and the reply vary in length. Users in step with each other, which equal
  // lengths make, would all wait for all prompts.
  Admission Send(int user, int own, int reply) {
    Request request;
    request.prompt = preamble_;
    for (; own > 0; --own) request.prompt.push_back(random_.Between(0, kVocab - 1));
    if (load_.shared > 0) request.checkpoints = {load_.shared};
    request.max_tokens = reply;
    request.sampling.temperature = 0;
    request.speculates = false;
    // As on a server without keys: all are one tenant, and who comes first is served first.
    request.domain = {.tenant = 0, .salt = 1};
    return core_.Submit(std::move(request), std::make_shared<Reader>(*this, user));
  }

  Status Deliver() {
    while (!events_.empty() && events_.top().at_us <= clock_.now_us()) {
      const int user = events_.top().user;
      events_.pop();
      Admission admission =
          Send(user, prompts_.Around(load_.prompt - load_.shared), replies_.Around(load_.reply));
      // One that is longer than the others may be too long for the model.
      if (admission.status.code() == Code::kInvalid) {
        admission = Send(user, load_.prompt - load_.shared, load_.reply);
      }
      if (admission.ok()) continue;
      if (admission.status.code() == Code::kInvalid) return admission.status;
      ++refused_;
      Later(static_cast<int64_t>(1e6 * std::max(1.0, admission.retry_after_s)), user);
    }
    return Status();
  }

  void Rest() {
    int64_t until = events_.empty() ? clock_.now_us() : events_.top().at_us;
    const int64_t sleep = core_.SleepUs();
    if (sleep >= 0 && !core_.is_idle()) until = std::min(until, clock_.now_us() + sleep);
    clock_.Advance(std::max<int64_t>(1, until - clock_.now_us()));
  }

  // Everybody goes on until the last one has asked as often as is wanted: what is measured is a
  // machine with all its users.
  void OnEnd(int user, const RequestRecord& record, const std::vector<int64_t>& heard_us) {
    const int number = asked_[static_cast<size_t>(user)]++;
    if (until_us_ > 0) return;
    if (number > 0 && !heard_us.empty()) {
      first_s_.push_back(1e-6 * static_cast<double>(heard_us.front() - record.arrived_us));
      reply_s_.push_back(1e-6 * static_cast<double>(record.ended_us - record.arrived_us));
      for (size_t i = 1; i < heard_us.size(); ++i) {
        gap_s_.push_back(1e-6 * static_cast<double>(heard_us[i] - heard_us[i - 1]));
      }
    }
    if (from_us_ > 0) {
      tokens_ += static_cast<double>(heard_us.size());
      requests_ += 1;
    }
    if (number == 0 && ++begun_ == load_.users) from_us_ = clock_.now_us();
    if (number + 1 == asks_ && ++ended_ == load_.users) {
      until_us_ = clock_.now_us();
      events_ = {};
      return;
    }
    Later(static_cast<int64_t>(random_.Exponential(1e6 * load_.think_s)), user);
  }

  LoadOutcome Outcome() {
    LoadOutcome out;
    out.first_token_s = PlanPercentilesOf(first_s_);
    out.gap_s = PlanPercentilesOf(gap_s_);
    out.reply_s = PlanPercentilesOf(reply_s_);
    const double seconds = 1e-6 * static_cast<double>(std::max<int64_t>(1, until_us_ - from_us_));
    out.tokens_per_second = tokens_ / seconds;
    out.requests_per_second = requests_ / seconds;
    if (backend_.decode_steps > 0) out.mean_batch = backend_.decoded / backend_.decode_steps;
    out.most_running = most_running_;
    out.refused = refused_;
    out.preemptions = core_.scheduler().totals().num_preemptions;
    return out;
  }

  const UserLoad load_;
  const int asks_;  // of each user at least
  VirtualClock clock_;
  SimRandom random_;
  EvenSpread prompts_, replies_;  // their lengths
  TimedBackend backend_;
  EngineCore core_;
  std::vector<Token> preamble_;
  std::vector<int> asked_;  // by user: how many of its requests have ended
  std::priority_queue<Ask, std::vector<Ask>, std::greater<>> events_;
  std::vector<double> first_s_, gap_s_, reply_s_;
  double tokens_ = 0, requests_ = 0;
  int64_t from_us_ = 0, until_us_ = 0;
  int begun_ = 0, ended_ = 0, refused_ = 0, most_running_ = 0;
};

UserLoad ShareOf(const UserLoad& load, int replicas) {
  UserLoad share = load;
  share.users = (load.users + replicas - 1) / replicas;
  return share;
}

}  // namespace

PlanPercentiles PlanPercentilesOf(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const auto index = static_cast<size_t>(share * static_cast<double>(values.size()));
    return values[std::min(index, values.size() - 1)];
  };
  return {at(0.50), at(0.95), at(0.99)};
}

Result<LoadOutcome> SimulateLoad(const UserLoad& load, const ServerShape& server,
                                 const TimingModel& timing) {
  return Player(load, server, timing).Play();
}

bool Meets(const LoadOutcome& outcome, const LoadTarget95& target) {
  return outcome.refused == 0 && outcome.first_token_s.p95 <= target.first_token_s &&
         outcome.gap_s.p95 <= target.gap_s;
}

Result<ReplicaPlan> PlanReplicas(const UserLoad& load, const ServerShape& server,
                                 const TimingModel& timing, const LoadTarget95& target) {
  std::map<int, LoadOutcome> played;  // by replicas
  const auto meets = [&](int replicas) -> Result<bool> {
    if (!played.contains(replicas)) {
      HEARTH_ASSIGN(played[replicas], SimulateLoad(ShareOf(load, replicas), server, timing));
    }
    return Meets(played[replicas], target);
  };
  int most = 1;
  for (;; most = std::min(2 * most, load.users)) {
    HEARTH_ASSIGN(const bool enough, meets(most));
    if (enough) break;
    if (most >= load.users) return ReplicaPlan{0, 1, played[most]};
  }
  int least = most / 2;  // not enough, or 0
  while (most - least > 1) {
    const int middle = least + (most - least) / 2;
    HEARTH_ASSIGN(const bool enough, meets(middle));
    (enough ? most : least) = middle;
  }
  return ReplicaPlan{most, ShareOf(load, most).users, played[most]};
}

}  // namespace hearth
