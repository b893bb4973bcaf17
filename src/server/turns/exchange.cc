// SPDX-License-Identifier: Apache-2.0
#include "server/turns/exchange.h"

#include <algorithm>
#include <utility>

#include "engine/clock.h"
#include "server/turns/api_error.h"
#include "server/turns/cache_report.h"
#include "server/turns/session_key.h"
#include "server/turns/turn_limits.h"
#include "server/turns/why_ended.h"
#include "server/turns/within_memory.h"

namespace hearth {
namespace {

double SecondsBetween(Exchange::Time from, Exchange::Time to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

// Keeps the exchange alive for as long as the engine may call.
class ChoiceSink final : public EventSink {
 public:
  ChoiceSink(std::shared_ptr<Exchange> exchange, int choice)
      : exchange_(std::move(exchange)), choice_(choice) {}
  int Room() const override { return exchange_->Room(choice_); }
  void OnToken(const TokenEvent& event) override {
    Within([&] { exchange_->OnToken(choice_, event); });
  }
  void OnPromptLogprobs(int, std::span<const Logprobs> logprobs) override {
    Within([&] { exchange_->OnPromptLogprobs(choice_, logprobs); });
  }
  void OnEmbedding(std::span<const float> embedding) override {
    Within([&] { exchange_->OnEmbedding(choice_, embedding); });
  }
  void OnFinish(const RequestRecord& record) override {
    Within([&] { exchange_->OnFinish(choice_, record); });
  }

 private:
  // On the engine's thread, which has others to serve: a reply with a hole in it is cut.
  template <class Work>
  void Within(Work&& work) {
    WithinMemoryOr(work, [this] { exchange_->Cut(); });
  }
  const std::shared_ptr<Exchange> exchange_;
  const int choice_;
};

Exchange::Exchange(const ExchangeHouse& house, HeldModel held, std::shared_ptr<HttpReply> reply,
                   std::vector<Turn> turns, std::unique_ptr<ReplyWriter> writer, Form form)
    : house_(house),
      held_(std::move(held)),
      reply_(std::move(reply)),
      writer_(std::move(writer)),
      form_(std::move(form)),
      last_write_(std::chrono::steady_clock::now()) {
  const bool has_events = std::string_view(writer_->stream_type()) == kServerSentEvents;
  if (form_.streams && has_events)
    event_ids_ = EventIds(form_.event_names, turns.size(), form_.seen);
  for (Turn& turn : turns) choices_.emplace_back(std::move(turn));
  news_.resize(choices_.size());
}

std::shared_ptr<EventSink> Exchange::Sink(int choice) {
  return std::make_shared<ChoiceSink>(shared_from_this(), choice);
}

void Exchange::Abandon() {
  const MutexLock lock(mu_);
  is_abandoned_ = is_over_ = is_gone_ = true;
}

// Needs no memory: where there is none even to cancel, the engine pauses what has no room, and ends
// it as that of a slow reader.
void Exchange::Cut() {
  Abandon();
  reply_->Abort();
  bool has_begun = false;
  {
    const MutexLock lock(mu_);
    has_begun = has_begun_;
  }
  if (has_begun) WithinMemoryOr([this] { Cancel(); }, [] {});
}

void Exchange::Begin(std::vector<SeqId> ids) {
  ids_ = std::move(ids);
  const auto drop = [this] {
    Cut();
    WithinMemoryOr([this] { Cancel(); }, [] {});
  };
  WithinMemoryOr([this] { BeginReply(); }, drop);
}

void Exchange::BeginReply() {
  std::string first = event_ids_.NumberWhole(writer_->Begin());
  first += TellSaid();  // numbered after it
  if (form_.streams) {
    std::vector<HttpHeader> headers = Headers();
    headers.push_back({"content-type", writer_->stream_type()});
    headers.push_back({"cache-control", "no-cache"});
    headers.push_back({"x-accel-buffering", "no"});  // for nginx: pass events on as they come
    reply_->StartStream(200, std::move(headers));
    reply_->Write(Comment("accepted") + first);
  }
  {
    const MutexLock lock(mu_);
    has_begun_ = true;
  }
  // One that outlives its connection ends with this alone.
  if (form_.account != nullptr) {
    form_.account->OnCut([weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      {
        const MutexLock lock(self->mu_);
        self->is_cut_ = true;
      }
      self->Cancel();
    });
  }
  reply_->OnGone([weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      {
        const MutexLock lock(self->mu_);
        self->is_gone_ = true;
      }
      self->Cancel();
    }
  });
  Schedule();  // tokens may have come already
}

HeldModel Exchange::held() const {
  const MutexLock lock(mu_);
  return held_;
}

void Exchange::Cancel() {
  const HeldModel model = held();
  if (model == nullptr) return;  // it is over
  for (const SeqId id : ids_) model->engine.Cancel(id);
}

void Exchange::Ping(Time now, const EngineSnapshot& snapshot) {
  const MutexLock lock(mu_);
  if (is_over_ || !form_.streams || !has_begun_) return;
  const bool is_silent = now - last_write_ >= house_.ping_every;
  if (!is_silent && !form_.wants_progress) return;
  for (const SequenceRow& row : snapshot.rows) {
    if (row.id != ids_.front() || row.num_generated > 0) continue;
    if (form_.wants_progress &&
        std::exchange(last_progress_, row.num_computed) != row.num_computed) {
      last_write_ = now;
      reply_->Write(writer_->Progress({row.num_prompt, row.num_cached, row.num_computed}));
    }
    // Also a line for people with curl.
    if (is_silent) {
      reply_->Write(Comment(Printf("%d of %d prompt tokens", row.num_computed, row.num_prompt)));
    }
  }
  if (!is_silent) return;
  last_write_ = now;
  std::string ping = writer_->Ping();
  // No empty line after a comment: once they saw an id, OpenAI's Python client takes it for an
  // event.
  if (ping.starts_with(": ") && ping.ends_with("\n\n")) ping.pop_back();
  reply_->Write(std::move(ping));
}

bool Exchange::is_done() const {
  const MutexLock lock(mu_);
  return is_over_ && (is_gone_ || reply_->unheard_bytes() == 0);
}

void Exchange::Name(std::unordered_map<SeqId, SequenceName>& names) const {
  const MutexLock lock(mu_);
  if (!has_begun_) return;  // ids_ is being filled
  for (const SeqId id : ids_) {
    const auto found = names.find(id);
    if (found != names.end())
      found->second = {form_.request_id, form_.key_id, form_.dialect->name()};
  }
}

int Exchange::Room(int choice) const {
  if (form_.streams && reply_->unsent_bytes() > kMaxUnsentBytes) return 0;
  const MutexLock lock(mu_);
  if (is_abandoned_) return 0;
  const auto pending = static_cast<int>(news_[static_cast<size_t>(choice)].pending.size());
  return kMaxPending - std::min(kMaxPending, pending);
}

void Exchange::OnToken(int choice, const TokenEvent& event) {
  {
    const MutexLock lock(mu_);
    news_[static_cast<size_t>(choice)].pending.push_back(event);
  }
  Schedule();
}

// What came with it schedules the work.
void Exchange::OnPromptLogprobs(int choice, std::span<const Logprobs> logprobs) {
  const MutexLock lock(mu_);
  std::vector<Logprobs>& prompt = news_[static_cast<size_t>(choice)].prompt;
  prompt.insert(prompt.end(), logprobs.begin(), logprobs.end());
}

void Exchange::OnEmbedding(int choice, std::span<const float> embedding) {
  const MutexLock lock(mu_);
  news_[static_cast<size_t>(choice)].embedding.assign(embedding.begin(), embedding.end());
}

void Exchange::OnFinish(int choice, const RequestRecord& record) {
  {
    const MutexLock lock(mu_);
    news_[static_cast<size_t>(choice)].record = record;
  }
  Schedule();
}

void Exchange::Schedule() {
  {
    const MutexLock lock(mu_);
    if (is_scheduled_ || !has_begun_ || is_over_) return;
    is_scheduled_ = true;
  }
  house_.workers.Post(form_.client, [self = shared_from_this()] { self->Work(); });
}

void Exchange::Work() {
  WithinMemoryOr([this] { WorkWithin(); }, [this] { RunOut(); });
}

void Exchange::RunOut() {
  const auto tell = [this] {
    if (is_closing_) return Cut();
    Cancel();
    ApiError error = OutOfMemory();
    error.request_id = form_.request_id;
    if (form_.streams) return Close(error.status, error.code, writer_->Fail(error), {}, "");
    Close(error.status, error.code, "", {{"retry-after", "1"}},
          form_.dialect->DescribeError(error));
  };
  WithinMemoryOr(tell, [this] { Cut(); });
}

void Exchange::WorkWithin() {
  const StageClock clock(form_.account.get(), Stage::kWrite);
  while (true) {
    std::string bytes;
    bool found = false;
    for (size_t i = 0; i < choices_.size(); ++i) {
      std::vector<TokenEvent> tokens;
      std::optional<RequestRecord> record;
      {
        const MutexLock lock(mu_);
        tokens.swap(news_[i].pending);
        record = news_[i].record;
      }
      if (choices_[i].is_ended || (tokens.empty() && !record)) continue;
      found = true;
      if (!Advance(static_cast<int>(i), std::move(tokens), record, bytes)) continue;
      ++num_ended_;
      const bool is_whole = choices_[i].turn.is_stopped() || record->finish == Finish::kStop ||
                            record->finish == Finish::kLength;
      if (!is_whole) return EndBadly(*record, std::move(bytes));
    }
    if (num_ended_ == static_cast<int>(choices_.size())) return End(std::move(bytes));
    const MutexLock lock(mu_);
    if (form_.streams && !bytes.empty()) {
      reply_->Write(std::move(bytes));
      last_write_ = std::chrono::steady_clock::now();
    }
    if (found) continue;
    bool has_news = false;
    for (size_t i = 0; i < choices_.size(); ++i) {
      has_news |= !choices_[i].is_ended && (!news_[i].pending.empty() || news_[i].record);
    }
    if (has_news) continue;
    is_scheduled_ = false;
    return;
  }
}

std::string Exchange::TellPrompt(int index) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  choice.has_prompt = true;
  // Several choices of a prompt share what its first one was told.
  const int first = index - index % form_.choices_per_prompt;
  std::vector<AnswerLogprob> spelled;
  {
    const MutexLock lock(mu_);
    for (const Logprobs& one : news_[static_cast<size_t>(first)].prompt) {
      spelled.push_back(choice.turn.Spell(one));
    }
  }
  return writer_->AddPrompt(index, spelled);
}

bool Exchange::Advance(int index, std::vector<TokenEvent> tokens,
                       const std::optional<RequestRecord>& record, std::string& bytes) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  Turn& turn = choice.turn;
  const bool was_stopped = turn.is_stopped();
  if (!choice.has_prompt) bytes += event_ids_.NumberChosen(index, TellPrompt(index));
  for (const TokenEvent& event : tokens) {
    Note(event);
    bytes += TellToken(index, event.token, event.logprobs.get());
  }
  if (record) {
    std::vector<Delta> deltas;
    turn.Finish(deltas);
    bytes += TellDeltas(index, deltas);
  }
  ChargeKept();
  // A stop string ends the reply here; the engine need not know why.
  if (turn.is_stopped() && !was_stopped) held()->engine.Cancel(ids_[static_cast<size_t>(index)]);
  if (!record) return false;
  choice.is_ended = true;
  std::vector<float> embedding;
  {
    const MutexLock lock(mu_);
    embedding.swap(news_[static_cast<size_t>(index)].embedding);
  }
  if (!embedding.empty()) writer_->AddEmbedding(index, std::move(embedding));
  ChoiceEnd end;
  if (turn.is_stopped()) {
    end.why = ChoiceEnd::Why::kStopString;
    end.stop_string = form_.stops[static_cast<size_t>(turn.found_stop())];
  } else if (record->finish == Finish::kLength) {
    end.why = ChoiceEnd::Why::kLength;
  } else if (turn.num_calls() > 0) {
    end.why = ChoiceEnd::Why::kToolCalls;
  }
  if (turn.is_stopped() || record->finish == Finish::kStop || record->finish == Finish::kLength) {
    bytes += event_ids_.NumberChosen(index, writer_->EndChoice(index, end));
  }
  return true;
}

std::vector<HttpHeader> Exchange::Headers() const {
  // OpenAI's and Anthropic's clients each look for their own name.
  std::vector<HttpHeader> headers{{"x-request-id", form_.request_id},
                                  {"request-id", form_.request_id}};
  if (!form_.traceparent.empty()) headers.push_back({"traceparent", form_.traceparent});
  if (!form_.session_key.empty()) headers.push_back({kSessionHeader, form_.session_key});
  if (!form_.neutralised.empty()) {
    headers.push_back({"x-hearth-neutralised", form_.neutralised});
  }
  if (form_.has_generic_tools) headers.push_back({"x-hearth-tools", "generic"});
  if (!form_.ignored_fields.empty()) {
    headers.push_back({"x-hearth-ignored-fields", form_.ignored_fields});
  }
  if (form_.hold != nullptr) {
    for (HttpHeader& header : RateHeaders(form_.hold->standing(SteadyClock().now_us()))) {
      headers.push_back(std::move(header));
    }
  }
  return headers;
}

std::string Exchange::Comment(const std::string& text) const {
  const bool has_comments = std::string_view(writer_->stream_type()) == kServerSentEvents;
  return has_comments ? ": " + text + "\n" : "";
}

std::vector<HttpHeader> Exchange::CacheHeaders() const {
  CacheReport report;
  const MutexLock lock(mu_);
  for (const News& news : news_) {
    if (news.record) report.Add(*news.record);
  }
  return report.AsHeaders();
}

void Exchange::End(std::string bytes) {
  TurnUsage usage;
  usage.total_us =
      static_cast<int64_t>(SecondsBetween(form_.arrived, std::chrono::steady_clock::now()) * 1e6);
  {
    const MutexLock lock(mu_);
    const RequestRecord& first = *news_[0].record;
    const int64_t told_us = first.first_token_us > 0 ? first.first_token_us : first.ended_us;
    usage.prompt_us = told_us - first.started_us;
    usage.reply_us = first.ended_us - told_us;
    for (size_t i = 0; i < choices_.size(); ++i) {
      const RequestRecord& record = *news_[i].record;
      usage.completion_tokens += choices_[i].turn.num_tokens();
      usage.reasoning_tokens += choices_[i].turn.num_reasoning_tokens();
      if (i % static_cast<size_t>(form_.choices_per_prompt) != 0) continue;
      usage.prompt_tokens += record.num_prompt;
      usage.cached_tokens += std::min(record.num_cached, record.num_prompt);
    }
  }
  // What it was when the reply began: a client that comes back is told the same.
  if (num_cached_ >= 0) usage.cached_tokens = std::min(num_cached_, usage.prompt_tokens);
  bytes += event_ids_.NumberWhole(writer_->End(usage));
  std::vector<HttpHeader> report = CacheHeaders();
  const std::string trouble = writer_->trouble();
  if (!trouble.empty()) report.push_back({"x-hearth-warning", trouble});
  if (!form_.streams) return Close(200, trouble, "", std::move(report), writer_->Whole(usage));
  // The head of a stream is long gone: comments are the one place left.
  std::string comments;
  for (const HttpHeader& header : report) comments += Comment(header.name + ": " + header.value);
  Close(200, trouble, comments + bytes, {}, "");
}

// A stream that has begun says so in an error event and lacks its last one; a whole answer has its
// own status.
void Exchange::EndBadly(const RequestRecord& record, std::string bytes) {
  ApiError error = WhyItEnded(record, form_.mask_field);
  if (record.finish == Finish::kCancelled) {
    const MutexLock lock(mu_);
    if (is_cut_) error = CutForMemory();
  }
  error.request_id = form_.request_id;
  Cancel();  // the other choices
  if (form_.streams) return Close(error.status, error.code, bytes + writer_->Fail(error), {}, "");
  std::vector<HttpHeader> headers;
  if (error.retry_after_s > 0) headers.push_back({"retry-after", "1"});
  Close(error.status, error.code, "", std::move(headers), form_.dialect->DescribeError(error));
}

void Exchange::Close(int status, const std::string& error_code, std::string last_event,
                     std::vector<HttpHeader> headers, std::string body) {
  is_closing_ = true;
  TurnOutcome outcome;
  outcome.dialect = form_.dialect->name();
  outcome.request_id = form_.request_id;
  outcome.key_id = form_.key_id;
  outcome.traceparent = form_.traceparent;
  outcome.status = status;
  outcome.error_code = error_code;
  outcome.streams = form_.streams;
  outcome.seconds = SecondsBetween(form_.arrived, std::chrono::steady_clock::now());
  outcome.neutralised = form_.neutralised;
  outcome.ignored_fields = form_.ignored_fields;
  outcome.choices_per_prompt = form_.choices_per_prompt;
  // Before the last byte: a client that asks again at once must find its place free.
  if (form_.hold != nullptr) {
    auto generated = -static_cast<int64_t>(form_.said.size());
    for (const Choice& choice : choices_) generated += choice.turn.num_tokens();
    form_.hold->End(generated, SteadyClock().now_us());
  }
  for (HttpHeader& header : Headers()) headers.push_back(std::move(header));
  headers.push_back({"content-type", "application/json"});
  outcome.again = form_.again;
  outcome.num_from_journal = static_cast<int>(form_.said.size());
  outcome.num_recomputed = num_recomputed_;
  {
    const MutexLock lock(mu_);
    if (held_ != nullptr) outcome.model = held_->model.name;
    for (const Choice& choice : choices_) {
      outcome.num_reasoning_tokens += choice.turn.num_reasoning_tokens();
      outcome.num_calls += choice.turn.num_calls();
    }
    for (const News& news : news_) {
      if (news.record) outcome.records.push_back(*news.record);
    }
  }
  if (form_.notes != nullptr) form_.notes->Put();
  // Before the last byte too: who has the answer finds it counted and logged.
  if (house_.observer != nullptr) house_.observer->OnEnd(outcome);
  if (form_.flight != nullptr) form_.flight->Land();
  // What looks into the model goes before the model may; it is given back after the lock.
  choices_.clear();
  HeldModel model;
  const MutexLock lock(mu_);
  model.swap(held_);
  for (News& news : news_) news.pending.clear();
  if (form_.streams) {
    reply_->Write(std::move(last_event));
    reply_->End();
  } else {
    reply_->Send(status, std::move(headers), std::move(body));
  }
  is_over_ = true;
  if (form_.account != nullptr) {
    form_.account->Set(Held::kPrompt, 0);
    form_.account->Set(Held::kKept, 0);
  }
}

}  // namespace hearth
