// SPDX-License-Identifier: Apache-2.0
#include "load/target.h"

#include <unordered_map>
#include <utility>

#include "engine/engine.h"

namespace hearth {

void LoadBell::Ring() {
  {
    const MutexLock lock(mutex_);
    is_rung_ = true;
  }
  rung_.NotifyOne();
}

void LoadBell::Wait(std::chrono::steady_clock::time_point until) {
  const MutexLock lock(mutex_);
  rung_.WaitUntil(mutex_, until, [&]() HEARTH_REQUIRES(mutex_) { return is_rung_; });
  is_rung_ = false;
}

LoadStream::LoadStream(const LoadClock& clock, LoadBell& bell, int num_prompt)
    : clock_(clock), bell_(bell) {
  reply_.sent_s = clock.now_s();
  reply_.num_prompt = num_prompt;
}

void LoadStream::Hear(Token token, std::string_view text) {
  const MutexLock lock(mutex_);
  reply_.heard_s.push_back(clock_.now_s());
  reply_.tokens.push_back(token);
  reply_.text += text;
}

void LoadStream::End(LoadEnd end) {
  {
    const MutexLock lock(mutex_);
    reply_.ended_s = clock_.now_s();
    reply_.num_cached = end.num_cached;
    reply_.num_preempted = end.num_preempted;
    if (end.num_prompt >= 0) reply_.num_prompt = end.num_prompt;
    reply_.num_generated =
        end.num_generated >= 0 ? end.num_generated : static_cast<int>(reply_.tokens.size());
    reply_.problem = std::move(end.problem);
    has_ended_ = true;
  }
  bell_.Ring();
}

size_t LoadStream::num_heard() const {
  const MutexLock lock(mutex_);
  return reply_.tokens.size();
}

bool LoadStream::has_ended() const {
  const MutexLock lock(mutex_);
  return has_ended_;
}

LoadReply LoadStream::reply() const {
  const MutexLock lock(mutex_);
  return reply_;
}

namespace {

class StreamSink : public EventSink {
 public:
  explicit StreamSink(std::shared_ptr<LoadStream> stream) : stream_(std::move(stream)) {}
  int Room() const override { return 1 << 20; }
  void OnToken(const TokenEvent& event) override { stream_->Hear(event.token); }
  void OnFinish(const RequestRecord& record) override {
    const bool natural = record.finish == Finish::kStop || record.finish == Finish::kLength;
    LoadEnd end;
    end.num_cached = record.num_cached;
    end.num_preempted = record.num_preempted;
    if (!natural) end.problem = NameOf(record.finish);
    stream_->End(std::move(end));
  }

 private:
  std::shared_ptr<LoadStream> stream_;
};

class EngineTarget : public LoadTarget {
 public:
  EngineTarget(Engine& engine, int vocab_size) : engine_(engine), vocab_size_(vocab_size) {}
  Status Send(LoadRequest request, std::shared_ptr<LoadStream> stream) override {
    Request wish;
    wish.prompt = std::move(request.prompt);
    wish.checkpoints = std::move(request.checkpoints);
    wish.max_tokens = request.max_tokens;
    wish.domain = {.tenant = request.tenant, .salt = 0};
    wish.sampling.seed = request.seed;
    const Admission admission =
        engine_.Submit(std::move(wish), std::make_shared<StreamSink>(stream));
    if (!admission.ok()) return admission.status;
    ids_[stream.get()] = admission.id;
    return Status();
  }
  void Cancel(const LoadStream& stream) override {
    const auto found = ids_.find(&stream);
    if (found != ids_.end()) engine_.Cancel(found->second);
  }
  int vocab_size() const override { return vocab_size_; }
  int num_computed(const LoadStream& stream) const override {
    const auto found = ids_.find(&stream);
    if (found == ids_.end()) return -1;
    const std::shared_ptr<const EngineSnapshot> now = engine_.snapshot();
    for (const SequenceRow& row : now->rows) {
      if (row.id == found->second) return row.num_computed;
    }
    return -1;
  }

 private:
  Engine& engine_;
  const int vocab_size_;
  std::unordered_map<const LoadStream*, SeqId> ids_;
};

}  // namespace

std::unique_ptr<LoadTarget> MakeEngineTarget(Engine& engine, int vocab_size) {
  return std::make_unique<EngineTarget>(engine, vocab_size);
}

}  // namespace hearth
