// SPDX-License-Identifier: Apache-2.0
// A replica as a model: the engine's steps without its sequences' tokens and blocks.
#include <algorithm>
#include <deque>

#include "engine/chunk_control.h"
#include "plan/fleet_replica.h"

namespace hearth {
namespace {

class ModelReplica : public FleetReplicaSim {
 public:
  ModelReplica(const ServerShape& server, const TimingModel& timing, const FleetTier& tier,
               int page, PageCache* shared)
      : server_(server),
        timing_(timing),
        tier_(tier),
        page_(page),
        shared_(shared),
        disk_(tier.is_shared ? 0 : tier.tokens / page),
        capacity_(server.kv.has_full() ? server.kv.full_tokens() : int64_t{1} << 40) {
    Open();
  }

  Status Submit(int64_t number, const FleetAsk& ask, int64_t now_us) override {
    const SchedulerOptions& limits = server_.options.scheduler;
    const auto most = static_cast<int>(std::min<int64_t>(limits.max_context, capacity_));
    if (ask.prompt + ask.reply > most) {
      return Error(Code::kInvalid, "a request of %d tokens does not fit a context of %d",
                   ask.prompt + ask.reply, most);
    }
    if (static_cast<int>(waiting_.size()) >= server_.options.admission.max_requests) {
      return Error(Code::kExhausted, "too many requests wait");
    }
    Running r;
    r.end.number = number;
    r.ask = ask;
    r.came_us = now_us;
    waiting_.push_back(std::move(r));
    return Status();
  }

  int64_t Step(int64_t now_us) override {
    StartSome(now_us);
    StepShape shape;
    for (const Running& r : running_) {
      if (r.computed < r.ask.prompt) continue;
      ++shape.decode_slices;
      shape.context += r.computed + 1;
    }
    const int64_t positions = shape.context;
    chunks_->Begin(shape);
    bool has_more = false;
    GrantPrompts(now_us, shape, has_more);
    const int tokens = shape.decode_slices + shape.prefill_tokens;
    if (tokens == 0) return NextLoaded(now_us);
    const StepLoad load{.tokens = tokens,
                        .rows = shape.decode_slices,
                        .positions = positions,
                        .prompt_positions = shape.context - positions};
    const auto us = std::max<int64_t>(1, static_cast<int64_t>(timing_.StepUs(load)));
    chunks_->Observe(shape, has_more, us);
    ++steps;
    decoded += shape.decode_slices;
    gaps.Add(us, shape.decode_slices);  // streams are in every step
    Commit(now_us + us);
    return now_us + us;
  }

  std::vector<FleetEnd> TakeEnded() override { return std::exchange(ended_, {}); }

  int Cached(const FleetAsk& ask) const override {
    const int pages = (ask.prompt - 1) / page_;
    int found = 0;
    while (found < pages && cache_->Has(ask.content.Page(found, page_))) ++found;
    return found * page_;
  }

  std::vector<Lost> Restart() override {
    std::vector<Lost> lost;
    for (const Running& r : running_) lost.push_back({r.end.number, r.end.first_us});
    for (const Running& r : waiting_) lost.push_back({r.end.number, 0});
    running_.clear();
    waiting_.clear();
    ended_.clear();
    begun_.clear();
    held_ = 0;
    Open();
    return lost;
  }

 private:
  struct Running {
    FleetEnd end;
    FleetAsk ask;
    int computed = 0, said = 0, granted = 0;
    int64_t came_us = 0, loaded_us = 0;  // loaded_us: a tier brings something until then
    int64_t held = 0;                    // tokens beyond what the cache had
  };

  void Open() {
    const SchedulerOptions& o = server_.options.scheduler;
    chunks_ = std::make_unique<ChunkControl>(
        ChunkOptions{o.min_chunk, o.max_step_tokens, o.itl_target_us, o.quiet_step_us, o.experts});
    cache_ = std::make_unique<PageCache>(capacity_ / page_);
  }

  void StartSome(int64_t now_us) {
    const int places = server_.options.scheduler.max_sequences;
    while (!waiting_.empty() && static_cast<int>(running_.size()) < places) {
      Running& r = waiting_.front();
      const int cached = Cached(r.ask);
      const int64_t headroom = int64_t{server_.options.scheduler.headroom_blocks} *
                               server_.kv.block_tokens * static_cast<int64_t>(running_.size());
      const int64_t wanted = r.ask.prompt - cached;
      if (!running_.empty() && held_ + wanted + headroom > capacity_) return;
      r.computed = cached;
      r.end.cached = cached;
      if (tier_.tokens > 0) Fetch(r, now_us);
      r.held = wanted;
      held_ += r.held;
      Publish(r, cached);  // used again: the last to go
      running_.push_back(std::move(r));
      waiting_.pop_front();
      cache_->SetCapacity((capacity_ - held_) / page_);
    }
  }

  // Pages beyond the memory's that a tier has.
  void Fetch(Running& r, int64_t now_us) {
    const PageCache& below = tier_.is_shared ? *shared_ : disk_;
    const int pages = (r.ask.prompt - 1) / page_;
    int found = r.computed / page_;
    while (found < pages && below.Has(r.ask.content.Page(found, page_))) ++found;
    r.end.fetched = found * page_ - r.computed;
    if (r.end.fetched <= 0) return;
    r.end.cached = r.computed = found * page_;
    const double us = 1e6 * r.end.fetched / tier_.tokens_per_s;
    // One line: what others fetch comes first.
    line_free_us_ = std::max(line_free_us_, now_us) + static_cast<int64_t>(us);
    r.loaded_us = line_free_us_ + tier_.latency_us;
  }

  void GrantPrompts(int64_t now_us, StepShape& shape, bool& has_more) {
    const SchedulerOptions& o = server_.options.scheduler;
    int left = o.max_step_tokens - shape.decode_slices;
    for (Running& r : running_) {
      if (r.computed >= r.ask.prompt || r.loaded_us > now_us) continue;
      while (left > 0 && r.computed + r.granted < r.ask.prompt) {
        const int position = r.computed + r.granted;
        const int count =
            std::min({chunks_->Fits(shape, position), left, o.quantum, r.ask.prompt - position});
        if (count <= 0) {
          has_more = true;
          return;
        }
        r.granted += count;
        shape.prefill_tokens += count;
        shape.context += int64_t{count} * position + int64_t{count} * count / 2;
        left -= count;
      }
      if (left <= 0) return;
    }
  }

  // The step has ended: streams are one further, prompts by what they were granted.
  void Commit(int64_t now_us) {
    size_t kept = 0;
    for (size_t i = 0; i < running_.size(); ++i) {
      Running& r = running_[i];
      if (r.computed >= r.ask.prompt) {
        ++r.computed;
        Say(r, now_us);
      } else if (r.granted > 0) {
        r.computed += r.granted;
        r.granted = 0;
        if (r.computed == r.ask.prompt) {
          Publish(r, r.computed);
          Say(r, now_us);
        }
      }
      if (r.said >= r.ask.reply) {
        End(r, now_us);
        continue;
      }
      if (kept != i) running_[kept] = std::move(r);
      ++kept;
    }
    running_.resize(kept);
    cache_->SetCapacity((capacity_ - held_) / page_);
  }

  void Say(Running& r, int64_t now_us) {
    ++r.held;
    ++held_;
    if (r.said++ > 0) return;
    r.end.first_us = now_us;
    begun_.push_back(r.end.number);
  }

  void End(Running& r, int64_t now_us) {
    held_ -= r.held;
    Publish(r, r.computed);
    r.end.ended_us = now_us;
    ended_.push_back(r.end);
  }

  // From the end to the beginning: a chain is of use only from its beginning, so that goes last.
  void Publish(const Running& r, int tokens) {
    for (int page = tokens / page_ - 1; page >= 0; --page) {
      const uint64_t name = r.ask.content.Page(page, page_);
      cache_->Use(name);
      if (tier_.tokens > 0) (tier_.is_shared ? *shared_ : disk_).Use(name);
    }
  }

  int64_t NextLoaded(int64_t now_us) const {
    int64_t next = -1;
    for (const Running& r : running_) {
      if (r.loaded_us > now_us && (next < 0 || r.loaded_us < next)) next = r.loaded_us;
    }
    return next;
  }

  const ServerShape& server_;
  const TimingModel& timing_;
  const FleetTier tier_;
  const int page_;  // tokens
  PageCache* const shared_;
  PageCache disk_;
  const int64_t capacity_;  // tokens
  std::unique_ptr<ChunkControl> chunks_;
  std::unique_ptr<PageCache> cache_;
  std::deque<Running> waiting_;
  std::vector<Running> running_;
  std::vector<FleetEnd> ended_;
  int64_t held_ = 0, line_free_us_ = 0;
};

}  // namespace

std::unique_ptr<FleetReplicaSim> MakeModelReplica(const ServerShape& server,
                                                  const TimingModel& timing, const FleetTier& tier,
                                                  int page, PageCache* shared) {
  return std::make_unique<ModelReplica>(server, timing, tier, page, shared);
}

}  // namespace hearth
