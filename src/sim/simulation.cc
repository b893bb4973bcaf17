// SPDX-License-Identifier: Apache-2.0
#include "sim/simulation.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace hearth {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

}  // namespace

// Takes a client's tokens, at its reader's pace.
class Simulation::Sink : public EventSink {
 public:
  Sink(Simulation& world, int client)
      : world_(world), client_(client), reader_(world.scenario_.clients[Index()].reader) {}
  int Room() const override {
    const int room = std::max(0, reader_.capacity - unread_);
    if (room == 0) fate().was_full = true;
    return room;
  }
  void OnToken(const TokenEvent& event) override {
    SimFate& mine = fate();
    if (mine.num_finishes > 0) world_.Broken("a token after the end");
    if (event.index != static_cast<int>(mine.heard.size())) {
      world_.Broken(Printf("client %d heard token %d when %zu was next", client_, event.index,
                           mine.heard.size()));
    }
    if (Room() == 0) world_.Broken(Printf("client %d got a token without room", client_));
    mine.heard.push_back(event.token);
    mine.heard_us.push_back(world_.clock_.now_us());
    if (!reader_.takes_at_once()) ++unread_;
    world_.Note(static_cast<uint64_t>(event.token) << 20 | static_cast<uint64_t>(client_));
    world_.Tell("client %d hears token %d: %d", client_, event.index, event.token);
  }
  void OnFinish(const RequestRecord& record) override {
    SimFate& mine = fate();
    mine.record = record;
    ++mine.num_finishes;
    const int64_t since_us = record.ended_us - world_.scenario_.options.slow_reader_us;
    for (const int64_t us : freed_us_) {
      if (record.finish != Finish::kSlowReader || us <= since_us || us > record.ended_us) continue;
      world_.Broken(Printf("client %d is dropped although it has read", client_));
    }
    world_.Note(static_cast<uint64_t>(record.finish) << 40 | static_cast<uint64_t>(client_));
    world_.Tell("client %d ends: %s %s, %d tokens, %d cached, %d times preempted", client_,
                NameOf(record.finish), record.detail.c_str(), record.num_generated,
                record.num_cached, record.num_preempted);
    world_.OnEnded(client_);
  }
  void Read() {
    const auto heard = static_cast<int>(fate().heard.size());
    const int most = reader_.stops_after < 0 ? heard : std::min(heard, reader_.stops_after);
    if (heard - most < unread_) freed_us_.push_back(world_.clock_.now_us());
    unread_ = std::min(unread_, heard - most);
  }

 private:
  size_t Index() const { return static_cast<size_t>(client_); }
  SimFate& fate() const { return world_.outcome_.fates[Index()]; }
  Simulation& world_;
  const int client_;
  const SimReader reader_;
  int unread_ = 0;
  std::vector<int64_t> freed_us_;  // when it read
};

Simulation::Simulation(const SimScenario& scenario, Trace trace)
    : scenario_(scenario),
      trace_(std::move(trace)),
      random_(scenario.seed ^ 0x7fb5d329728ea185),
      backend_(scenario.layout, scenario.vocab, scenario.seed, *this) {
  clock_.Advance(kStartUs);
  backend_.set_habit(scenario.habit);
  if (scenario.tier.exists) {
    const auto later = [this](int64_t delay_us, TransferId id) {
      events_.push({clock_.now_us() + delay_us, next_order_++, Kind::kTransfer, -1, id});
    };
    tier_ = std::make_unique<SimTier>(scenario.tier, scenario.seed, later);
  }
  core_ = std::make_unique<EngineCore>(backend_, scenario.options, clock_, nullptr, tier_.get());
  const size_t count = scenario.clients.size();
  outcome_.fates.resize(count);
  sinks_.resize(count);
  followers_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const SimClient& client = scenario.clients[i];
    if (client.follows >= 0) {
      followers_[static_cast<size_t>(client.follows)].push_back(static_cast<int>(i));
    } else {
      Schedule(clock_.now_us() + client.arrives_us, Kind::kArrive, static_cast<int>(i));
    }
  }
  if (scenario.drains_us >= 0) Schedule(clock_.now_us() + scenario.drains_us, Kind::kDrain, -1);
}

Simulation::~Simulation() = default;

template <class... Args>
void Simulation::Tell(const char* format, Args... args) {
  if (!trace_) return;
  char text[256];
  std::snprintf(text, sizeof text, format, args...);
  trace_(clock_.now_us(), text);
}

void Simulation::Broken(const std::string& what) {
  if (!outcome_.failure.empty()) return;
  outcome_.failure =
      Printf("at %.3f ms, step %lld: %s", static_cast<double>(clock_.now_us()) * 1e-3,
             static_cast<long long>(outcome_.num_steps), what.c_str());
  Tell("BROKEN: %s", what.c_str());
  if (trace_) TellState();
}

// What is there, for whoever reads the trace.
void Simulation::TellState() {
  const EngineSnapshot now = core_->TakeSnapshot();
  for (const auto& [name, window, block_bytes, counts] : now.kv) {
    Tell("%s blocks: %d free, %d held, %d cached, %d pinned of %d", name.c_str(), counts.free,
         counts.held, counts.cached, counts.pinned, counts.total);
  }
  constexpr const char* kStates[] = {"waits", "prefills", "decodes", "is paused", "loads"};
  for (const SequenceRow& row : now.rows) {
    Tell("client %d %s: tenant %u, class %d, %d prompt, %d generated, %d computed, preempted %d",
         clients_.at(row.id), kStates[static_cast<size_t>(row.state)], row.tenant,
         static_cast<int>(row.priority), row.num_prompt, row.num_generated, row.num_computed,
         row.num_preempted);
  }
}

void Simulation::Schedule(int64_t at_us, Kind kind, int client) {
  events_.push({at_us, next_order_++, kind, client, 0});
}

void Simulation::DeliverUntil(int64_t us) {
  while (!events_.empty() && events_.top().at_us <= us) {
    const Event event = events_.top();
    events_.pop();
    clock_.Advance(std::max<int64_t>(0, event.at_us - clock_.now_us()));
    Deliver(event);
  }
  clock_.Advance(std::max<int64_t>(0, us - clock_.now_us()));
}

void Simulation::Deliver(const Event& event) {
  const auto index = static_cast<size_t>(event.client);
  switch (event.kind) {
    case Kind::kArrive:
      return Arrive(event.client);
    case Kind::kCancel: {
      SimFate& fate = outcome_.fates[index];
      if (fate.cancelled_us < 0) fate.cancelled_us = clock_.now_us();
      Tell("client %d cancels", event.client);
      return core_->Cancel(fate.admission.id);
    }
    case Kind::kRead:
      if (outcome_.fates[index].num_finishes > 0) return;
      sinks_[index]->Read();
      return Schedule(
          clock_.now_us() + std::max<int64_t>(1, scenario_.clients[index].reader.every_us),
          Kind::kRead, event.client);
    case Kind::kTransfer:
      return tier_->Answer(event.transfer);
    case Kind::kDrain:
      Tell("drain, %lld ms", static_cast<long long>(scenario_.drain_bound_us / 1000));
      return core_->Drain(scenario_.drain_bound_us);
  }
}

void Simulation::Arrive(int client) {
  const auto index = static_cast<size_t>(client);
  const SimClient& plan = scenario_.clients[index];
  SimFate& fate = outcome_.fates[index];
  Request request = plan.request;
  if (plan.follows >= 0 && plan.continues) {
    const SimFate& before = outcome_.fates[static_cast<size_t>(plan.follows)];
    std::vector<Token> tokens = before.prompt;
    tokens.insert(tokens.end(), before.heard.begin(), before.heard.end());
    tokens.insert(tokens.end(), request.prompt.begin(), request.prompt.end());
    request.prompt = std::move(tokens);
  }
  fate.arrived = true;
  fate.arrived_us = clock_.now_us();
  fate.prompt = request.prompt;
  sinks_[index] = std::make_shared<Sink>(*this, client);
  fate.admission = core_->Submit(std::move(request), sinks_[index]);
  Note(static_cast<uint64_t>(fate.admission.ok()) << 50 | static_cast<uint64_t>(client));
  Tell("client %d arrives: %zu tokens, tenant %u, class %d: %s", client, fate.prompt.size(),
       plan.request.domain.tenant, static_cast<int>(plan.request.priority),
       fate.admission.ok() ? "let in" : fate.admission.status.message().c_str());
  if (!fate.admission.ok()) return OnEnded(client);
  if (!clients_.emplace(fate.admission.id, client).second) Broken("an id given twice");
  ++num_open_;
  if (!plan.reader.takes_at_once()) {
    Schedule(clock_.now_us() + std::max<int64_t>(1, plan.reader.every_us), Kind::kRead, client);
  }
  if (plan.cancels_us >= 0) Schedule(clock_.now_us() + plan.cancels_us, Kind::kCancel, client);
}

void Simulation::OnEnded(int client) {
  if (outcome_.fates[static_cast<size_t>(client)].num_finishes == 1) --num_open_;
  for (const int follower : followers_[static_cast<size_t>(client)]) {
    Schedule(clock_.now_us() + scenario_.clients[static_cast<size_t>(follower)].arrives_us,
             Kind::kArrive, follower);
  }
}

bool Simulation::GoesBad(SeqId seq, int position) {
  const auto found = clients_.find(seq);
  if (found == clients_.end()) return false;
  const auto index = static_cast<size_t>(found->second);
  if (scenario_.clients[index].bad_position != position) return false;
  SimFate& fate = outcome_.fates[index];
  if (!std::exchange(fate.went_bad, true)) fate.heard_before_bad = fate.heard.size();
  return true;
}

uint64_t Simulation::SaltOf(SeqId seq) const {
  const auto found = clients_.find(seq);
  if (found == clients_.end()) return ~uint64_t{0};
  return scenario_.clients[static_cast<size_t>(found->second)].request.domain.salt;
}

void Simulation::CheckPlan(const StepPlan& plan) {
  const SchedulerOptions& options = scenario_.options.scheduler;
  if (static_cast<int>(plan.tokens.size()) > options.max_step_tokens) {
    Broken(Printf("a step of %zu tokens; the budget is %d", plan.tokens.size(),
                  options.max_step_tokens));
  }
  if (static_cast<int>(core_->scheduler().running().size()) > options.max_sequences) {
    Broken("more sequences run than may");
  }
  for (const SeqSlice& slice : plan.slices) {
    const auto found = clients_.find(slice.seq);
    if (found == clients_.end()) return Broken("a sequence in the step that nobody asked for");
    const SimFate& fate = outcome_.fates[static_cast<size_t>(found->second)];
    if (fate.num_finishes > 0) return Broken("a sequence in the step that has ended");
    // What was in the inbox when the step began has been read.
    if (fate.cancelled_us >= 0)
      return Broken(Printf("client %d is computed although it cancelled", found->second));
    planned_.push_back(found->second);
  }
}

Simulation::Course Simulation::OnStep(const StepPlan& plan) {
  planned_.clear();
  CheckPlan(plan);
  CheckOldest();
  outcome_.num_tokens += static_cast<int64_t>(plan.tokens.size());
  double us = scenario_.timing.StepUs(plan);
  us *= 1 + scenario_.noise * (2 * random_.Share() - 1);
  const int64_t since_us = clock_.now_us() - kStartUs;
  if (since_us >= scenario_.slow_from_us && since_us < scenario_.slow_to_us) {
    outcome_.lost_us += static_cast<int64_t>(us * (scenario_.slow_factor - 1));
    us *= scenario_.slow_factor;
  }
  if (random_.Chance(scenario_.stall_share)) {
    us += static_cast<double>(scenario_.stall_us);
    outcome_.lost_us += scenario_.stall_us;
  }
  const bool fails = random_.Chance(scenario_.fail_share);
  const auto step_us = std::max<int64_t>(1, static_cast<int64_t>(us));
  outcome_.longest_step_us = std::max(outcome_.longest_step_us, step_us);
  Note(plan.tokens.size() << 16 | plan.slices.size());
  Tell("step: %zu tokens of %zu sequences, %.2f ms%s", plan.tokens.size(), plan.slices.size(),
       us * 1e-3, fails ? ", fails" : "");
  for (const int client : planned_) {
    if (fails) outcome_.fates[static_cast<size_t>(client)].was_in_failed_step = true;
  }
  if (!fails) return {step_us, Status()};
  ++outcome_.num_failed_steps;
  return {step_us, Error(Code::kIo, "the step failed")};
}

// No table names a block twice or one that is not there, and every block in a table counts as held.
void Simulation::CheckTables() {
  const auto check = [&](int group, const KvGroupLayout& layout) {
    const KvCounts counts = core_->kv().counts(group);
    uses_.assign(static_cast<size_t>(layout.num_blocks), 0);
    int held = 0, owner = 0;
    for (const Sequence* sequence : core_->scheduler().running()) {
      ++owner;
      if (sequence->kv.tables.empty()) continue;
      for (const BlockId id : sequence->kv.tables[static_cast<size_t>(group)]) {
        const auto block = static_cast<int>(id);
        if (block < 0) continue;
        if (block >= layout.num_blocks) return Broken("a table names a block that is not there");
        int& use = uses_[static_cast<size_t>(block)];
        if (use == owner) return Broken("a table names a block twice");
        if (use == 0) ++held;
        use = owner;
      }
    }
    if (held != counts.held) {
      Broken(Printf("tables hold %d blocks, %d are counted", held, counts.held));
    }
    if (counts.total != layout.num_blocks ||
        counts.free + counts.held + counts.cached + counts.pinned != counts.total) {
      Broken("blocks do not add up");
    }
  };
  for (int group = 0; group < scenario_.layout.num_groups(); ++group) {
    check(group, scenario_.layout.group(group));
  }
}

// The oldest that runs is never the one that is preempted: so somebody always gets on.
void Simulation::CheckOldest() {
  const auto found = clients_.find(oldest_);
  if (found == clients_.end()) return;
  const SimFate& fate = outcome_.fates[static_cast<size_t>(found->second)];
  if (fate.num_finishes > 0 || fate.cancelled_us >= 0) return;
  for (const Sequence* sequence : core_->scheduler().running()) {
    // It runs, or an older one began to run, or to be read again.
    if (sequence->id == oldest_ || (sequence->id < oldest_ && !sequence->paused)) return;
  }
  const int64_t timeout_us =
      scenario_.clients[static_cast<size_t>(found->second)].request.timeout_us;
  if (timeout_us > 0 && clock_.now_us() >= fate.arrived_us + timeout_us) return;
  Broken(Printf("client %d was preempted although it was the oldest", found->second));
}

// After a step: who is the oldest now.
SeqId Simulation::Oldest() const {
  SeqId oldest{};
  for (const Sequence* sequence : core_->scheduler().running()) {
    if (sequence->paused) continue;
    if (oldest == SeqId{} || sequence->id < oldest) oldest = sequence->id;
  }
  return oldest;
}

void Simulation::CheckAfterStep() {
  if (!backend_.failure().empty()) return Broken(backend_.failure());
  CheckTables();
  oldest_ = Oldest();
  std::vector<const KvHolding*> holdings;
  for (const Sequence* sequence : core_->scheduler().running()) holdings.push_back(&sequence->kv);
  const Status status = core_->kv().SelfCheck(holdings);
  if (!status.ok()) Broken(status.message());
  const AdmissionLimits& limits = scenario_.options.admission;
  if (num_open_ > limits.max_requests + scenario_.options.scheduler.max_sequences) {
    Broken("more were let in than the door allows");
  }
}

// Nothing to compute: until somebody comes, or the engine said it wants to look again.
void Simulation::Rest() {
  int64_t next_us = events_.empty() ? kNever : events_.top().at_us;
  const int64_t sleep_us = core_->SleepUs();
  if (sleep_us >= 0) next_us = std::min(next_us, clock_.now_us() + std::max<int64_t>(1, sleep_us));
  if (next_us == kNever) return Broken("work waits and the engine sleeps for ever");
  DeliverUntil(next_us);
}

Status Simulation::OnCopy() {
  if (!random_.Chance(scenario_.tier.copy_fails)) return Status();
  Tell("%s", "a copy fails");
  for (const auto& [id, client] : clients_) {
    // Whoever is in the step ends with it. Who that is, the backend has not told yet.
    SimFate& fate = outcome_.fates[static_cast<size_t>(client)];
    if (fate.num_finishes == 0) fate.was_in_failed_step = true;
  }
  ++outcome_.num_failed_steps;
  return Error(Code::kIo, "a copy failed");
}

// What was answered before a step is dealt with after it, and nothing is waited for longer than
// was said.
bool Simulation::StepAndCheckTier() {
  if (tier_ == nullptr) return core_->Step();
  const int64_t began_us = clock_.now_us();
  const std::vector<TransferId> answered = tier_->TakeAnswered();
  const bool ran = core_->Step();
  for (const TransferId id : answered) {
    if (core_->traffic()->Awaits(id)) Broken("a transfer was answered, and is waited for");
  }
  CheckTier(began_us);
  return ran;
}

void Simulation::CheckTier(int64_t began_us) {
  const TierOptions& options = scenario_.options.tier;
  const TierCounts counts = core_->traffic()->counts();
  if (core_->traffic()->NumOverdue(began_us) > 0) Broken("a tier is waited for for too long");
  if (counts.loading > options.max_loading) Broken("more sequences load than may");
  if (counts.storing > options.max_stores) Broken("more blocks are being stored than may");
  if (counts.staged_bytes > options.max_staged_bytes) Broken("too many bytes wait in host memory");
  if (counts.ahead > options.max_ahead) Broken("more blocks come for those in line than may");
  if (counts.ahead_bytes > options.max_ahead_bytes) Broken("too many bytes wait for those in line");
  if (!core_->is_idle()) return;
  const bool is_quiet = counts.loading == 0 && counts.fetching == 0 && counts.ahead == 0;
  if (!is_quiet || counts.staged_bytes != 0 || counts.ahead_bytes != 0) {
    Broken("something is left of loads whose sequences are gone");
  }
  for (int group = 0; group < scenario_.layout.num_groups(); ++group) {
    if (core_->kv().counts(group).pinned > 0) Broken("a block stays pinned after its transfer");
  }
}

SimOutcome Simulation::Play() {
  // Some hundred times what the longest scenario takes, looks at slow readers included.
  constexpr int64_t kLimit = 2'000'000;
  for (int64_t i = 0; outcome_.failure.empty(); ++i) {
    if (i > kLimit) Broken("it does not end");
    DeliverUntil(clock_.now_us());
    const int64_t began_us = clock_.now_us();
    const bool ran = StepAndCheckTier();
    outcome_.longest_turn_us = std::max(outcome_.longest_turn_us, clock_.now_us() - began_us);
    outcome_.num_steps += ran ? 1 : 0;
    if (ran || i % 16 == 0) CheckAfterStep();
    if (ran && random_.Chance(scenario_.jump_share)) {
      Tell("the clock jumps by %lld ms", static_cast<long long>(scenario_.jump_us / 1000));
      outcome_.lost_us += scenario_.jump_us;
      DeliverUntil(clock_.now_us() + scenario_.jump_us);
    }
    if (ran) continue;
    if (core_->is_idle() && num_open_ > 0) Broken("the engine is idle and somebody waits");
    if (events_.empty() && core_->is_idle()) break;
    Rest();
  }
  outcome_.total_us = clock_.now_us();
  outcome_.max_sequence_tokens = core_->scheduler().max_sequence_tokens();
  outcome_.last = core_->TakeSnapshot();
  core_.reset();  // it tells whoever is left
  if (outcome_.failure.empty())
    outcome_.failure = CheckFates(scenario_, backend_.model(), outcome_);
  return std::move(outcome_);
}

}  // namespace hearth
