// SPDX-License-Identifier: Apache-2.0
// A replica that is the engine: its loop, scheduler, admission and cache, with steps that take what
// the timing model says.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "backend/immediate_backend.h"
#include "plan/fleet_replica.h"

namespace hearth {
namespace {

constexpr int kVocab = 64;
constexpr int64_t kStartUs = 1'000'000;  // 0 means "did not happen" in records
constexpr KvDomain kEverybody{.tenant = 0, .salt = 1};

// Says what the content wants said, so that a chat's next prompt begins with its replies.
class ScriptedBackend : public ImmediateBackend {
 public:
  ScriptedBackend(const KvLayout& layout, const TimingModel& timing, VirtualClock& clock,
                  FleetReplicaSim& counts)
      : layout_(layout), timing_(timing), clock_(clock), counts_(counts) {}
  std::string_view name() const override { return "scripted"; }
  KvLayout kv_layout() const override { return layout_; }
  int vocab_size() const override { return kVocab; }
  std::unordered_map<SeqId, FleetContent> scripts;

 protected:
  Status Compute(const StepPlan& plan, std::span<float> logits) override {
    std::fill(logits.begin(), logits.end(), 0.0f);
    int decoding = 0;
    for (const SeqSlice& slice : plan.slices) {
      decoding += slice.count == 1 ? 1 : 0;
      const auto script = scripts.find(slice.seq);
      if (slice.num_rows == 0 || script == scripts.end()) continue;
      const int row = slice.first_row + slice.num_rows - 1;
      const Token next = script->second.At(slice.num_computed + slice.count, kVocab);
      logits[static_cast<size_t>(row) * kVocab + static_cast<size_t>(next)] = 1;
    }
    const auto us = std::max<int64_t>(1, static_cast<int64_t>(timing_.StepUs(plan)));
    clock_.Advance(us);
    ++counts_.steps;
    counts_.decoded += decoding;
    return Status();
  }

 private:
  const KvLayout layout_;
  const TimingModel& timing_;
  VirtualClock& clock_;
  FleetReplicaSim& counts_;
};

class EngineReplica : public FleetReplicaSim {
 public:
  EngineReplica(const ServerShape& server, const TimingModel& timing)
      : server_(server), timing_(timing) {
    Open();
  }
  ~EngineReplica() override { is_closing_ = true; }

  Status Submit(int64_t number, const FleetAsk& ask, int64_t now_us) override {
    AdvanceTo(now_us);
    Request request;
    for (int i = 0; i < ask.prompt; ++i) request.prompt.push_back(ask.content.At(i, kVocab));
    if (ask.content.shared > 0 && ask.content.shared < ask.prompt) {
      request.checkpoints = {ask.content.shared};
    }
    request.max_tokens = ask.reply;
    request.sampling.temperature = 0;
    request.speculates = false;
    request.domain = kEverybody;
    const auto reader = std::make_shared<Reader>(*this, number);
    const Admission admission = core_->Submit(std::move(request), reader);
    if (!admission.ok()) return admission.status;
    reader->id = admission.id;
    backend_->scripts.emplace(admission.id, ask.content);
    live_.emplace(number, reader);
    return Status();
  }

  int64_t Step(int64_t now_us) override {
    AdvanceTo(now_us);
    if (core_->Step()) return clock_->now_us() - kStartUs;
    if (core_->is_idle()) return -1;
    const int64_t sleep_us = core_->SleepUs();
    return sleep_us < 0 ? -1 : now_us + std::max<int64_t>(1, sleep_us);
  }

  std::vector<FleetEnd> TakeEnded() override { return std::exchange(ended_, {}); }

  int Cached(const FleetAsk& ask) const override {
    std::vector<Token> tokens;
    for (int i = 0; i < ask.prompt; ++i) tokens.push_back(ask.content.At(i, kVocab));
    std::vector<BlockKey> keys;
    return core_->kv().Peek(kEverybody, tokens, ask.prompt - 1, keys);
  }

  std::vector<Lost> Restart() override {
    std::vector<Lost> lost;
    for (const auto& [number, reader] : live_) {
      lost.push_back({number, reader->heard == 0 ? 0 : reader->first_us});
    }
    std::sort(lost.begin(), lost.end(),
              [](const Lost& a, const Lost& b) { return a.number < b.number; });
    is_closing_ = true;
    const int64_t now_us = clock_->now_us() - kStartUs;
    core_.reset();
    is_closing_ = false;
    live_.clear();
    ended_.clear();
    begun_.clear();
    Open();
    AdvanceTo(now_us);
    return lost;
  }

 private:
  // One request's life.
  class Reader : public EventSink {
   public:
    Reader(EngineReplica& replica, int64_t number) : replica_(replica), number_(number) {}
    int Room() const override { return 1 << 20; }
    void OnToken(const TokenEvent&) override {
      const int64_t now_us = replica_.clock_->now_us() - kStartUs;
      if (heard++ == 0) {
        first_us = now_us;
        replica_.begun_.push_back(number_);
      } else {
        replica_.gaps.Add(now_us - last_us_, 1);
      }
      last_us_ = now_us;
    }
    void OnFinish(const RequestRecord& record) override {
      if (replica_.is_closing_) return;
      replica_.ended_.push_back({number_, first_us, replica_.clock_->now_us() - kStartUs,
                                 record.num_cached, record.num_loaded});
      replica_.backend_->scripts.erase(id);
      replica_.live_.erase(number_);
    }
    SeqId id{};
    int64_t first_us = 0;
    int heard = 0;

   private:
    EngineReplica& replica_;
    const int64_t number_;
    int64_t last_us_ = 0;
  };

  void Open() {
    clock_ = std::make_unique<VirtualClock>();
    clock_->Advance(kStartUs);
    backend_ = std::make_unique<ScriptedBackend>(server_.kv, timing_, *clock_, *this);
    core_ = std::make_unique<EngineCore>(*backend_, server_.options, *clock_);
  }
  void AdvanceTo(int64_t now_us) {
    const int64_t behind = now_us + kStartUs - clock_->now_us();
    if (behind > 0) clock_->Advance(behind);
  }

  const ServerShape server_;
  const TimingModel& timing_;
  std::unordered_map<int64_t, std::shared_ptr<Reader>> live_;
  std::vector<FleetEnd> ended_;
  bool is_closing_ = false;
  std::unique_ptr<VirtualClock> clock_;
  std::unique_ptr<ScriptedBackend> backend_;
  std::unique_ptr<EngineCore> core_;  // goes first
};

}  // namespace

void GapHistogram::Add(int64_t us, int64_t count) {
  const double octave = std::log2(static_cast<double>(std::max<int64_t>(1, us)));
  const int bin = std::min(kBins - 1, static_cast<int>(octave * kPerOctave));
  bins_[static_cast<size_t>(bin)] += count;
  count_ += count;
}

void GapHistogram::Add(const GapHistogram& other) {
  for (size_t i = 0; i < bins_.size(); ++i) bins_[i] += other.bins_[i];
  count_ += other.count_;
}

double GapHistogram::SecondsAt(double share) const {
  int64_t below = 0;
  for (int bin = 0; bin < kBins; ++bin) {
    below += bins_[static_cast<size_t>(bin)];
    if (count_ > 0 && static_cast<double>(below) >= share * static_cast<double>(count_)) {
      return 1e-6 * std::exp2((bin + 0.5) / kPerOctave);
    }
  }
  return 0;
}

std::unique_ptr<FleetReplicaSim> MakeEngineReplica(const ServerShape& server,
                                                   const TimingModel& timing) {
  return std::make_unique<EngineReplica>(server, timing);
}

}  // namespace hearth
