// SPDX-License-Identifier: Apache-2.0
#include "server/turns/exchange.h"

#include <algorithm>
#include <utility>

#include "engine/clock.h"
#include "server/turns/api_error.h"
#include "server/turns/cache_report.h"
#include "server/turns/turn_limits.h"

namespace hearth {
namespace {

double SecondsBetween(Exchange::Time from, Exchange::Time to) {
  return std::chrono::duration<double>(to - from).count();
}

// No 200 for a failure: what a request that did not reach its end is answered.
ApiError WhyItEnded(const RequestRecord& record, const std::string& mask_field) {
  if (record.finish == Finish::kMask) {
    return BadField(mask_field, "cannot be kept to: " + record.detail, NameOf(record.finish));
  }
  ApiError error;
  error.type = "server_error";
  error.code = NameOf(record.finish);
  error.status = 500;
  error.message = record.detail.empty() ? "the request ended early" : record.detail;
  if (record.finish == Finish::kExpired) {
    error.status = 504;
    error.message = "the request's time ran out";
  } else if (record.finish == Finish::kShutdown) {
    error.status = 503;
    error.message = "the server is shutting down";
    error.retry_after_s = 1;
  } else if (record.finish == Finish::kCancelled) {
    error.status = 499;  // nobody reads it: for logs, in the number that nginx made known
    error.message = "the client has gone";
  } else if (record.finish == Finish::kSlowReader) {
    error.message = "the reply was not read for too long";
  }
  return error;
}

}  // namespace

// Keeps the exchange alive for as long as the engine may call.
class ChoiceSink final : public EventSink {
 public:
  ChoiceSink(std::shared_ptr<Exchange> exchange, int choice)
      : exchange_(std::move(exchange)), choice_(choice) {}
  int Room() const override { return exchange_->Room(choice_); }
  void OnToken(const TokenEvent& event) override { exchange_->OnToken(choice_, event); }
  void OnPromptLogprobs(int, std::span<const Logprobs> logprobs) override {
    exchange_->OnPromptLogprobs(choice_, logprobs);
  }
  void OnEmbedding(std::span<const float> embedding) override {
    exchange_->OnEmbedding(choice_, embedding);
  }
  void OnFinish(const RequestRecord& record) override { exchange_->OnFinish(choice_, record); }

 private:
  const std::shared_ptr<Exchange> exchange_;
  const int choice_;
};

Exchange::Exchange(const ExchangeHouse& house, std::shared_ptr<HttpReply> reply,
                   std::vector<Turn> turns, std::unique_ptr<ReplyWriter> writer, Form form)
    : house_(house),
      reply_(std::move(reply)),
      writer_(std::move(writer)),
      form_(std::move(form)),
      last_write_(std::chrono::steady_clock::now()) {
  for (Turn& turn : turns) choices_.emplace_back(std::move(turn));
  news_.resize(choices_.size());
}

std::shared_ptr<EventSink> Exchange::Sink(int choice) {
  return std::make_shared<ChoiceSink>(shared_from_this(), choice);
}

void Exchange::Begin(std::vector<SeqId> ids) {
  ids_ = std::move(ids);
  const std::string first = writer_->Begin();
  if (form_.streams) {
    std::vector<HttpHeader> headers = Headers();
    headers.push_back({"content-type", "text/event-stream"});
    headers.push_back({"cache-control", "no-cache"});
    headers.push_back({"x-accel-buffering", "no"});  // for nginx: pass events on as they come
    reply_->StartStream(200, std::move(headers));
    reply_->Write(": accepted\n\n" + first);
  }
  {
    const MutexLock lock(mu_);
    has_begun_ = true;
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

void Exchange::Cancel() {
  for (const SeqId id : ids_) house_.engine.Cancel(id);
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
      reply_->Write(Printf(": %d of %d prompt tokens\n", row.num_computed, row.num_prompt));
    }
  }
  if (!is_silent) return;
  last_write_ = now;
  reply_->Write(writer_->Ping());
}

bool Exchange::is_done() const {
  const MutexLock lock(mu_);
  return is_over_ && (is_gone_ || reply_->unsent_bytes() == 0);
}

void Exchange::Name(std::unordered_map<SeqId, SequenceName>& names) const {
  const MutexLock lock(mu_);
  if (!has_begun_) return;  // ids_ is being filled
  for (const SeqId id : ids_) {
    const auto found = names.find(id);
    if (found != names.end()) found->second = {form_.request_id, form_.key_id, form_.dialect};
  }
}

int Exchange::Room(int choice) const {
  if (form_.streams && reply_->unsent_bytes() > kMaxUnsentBytes) return 0;
  const MutexLock lock(mu_);
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
  house_.workers.Post([self = shared_from_this()] { self->Work(); });
}

void Exchange::Work() {
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
  if (!choice.has_prompt) bytes += TellPrompt(index);
  std::vector<Delta> deltas;
  for (const TokenEvent& event : tokens) turn.Feed(event.token, event.logprobs.get(), deltas);
  if (record) turn.Finish(deltas);
  for (const Delta& delta : deltas) bytes += writer_->Add(index, delta);
  // A stop string ends the reply here; the engine need not know why.
  if (turn.is_stopped() && !was_stopped) house_.engine.Cancel(ids_[static_cast<size_t>(index)]);
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
    bytes += writer_->EndChoice(index, end);
  }
  return true;
}

std::vector<HttpHeader> Exchange::Headers() const {
  // OpenAI's and Anthropic's clients each look for their own name.
  std::vector<HttpHeader> headers{{"x-request-id", form_.request_id},
                                  {"request-id", form_.request_id}};
  if (!form_.traceparent.empty()) headers.push_back({"traceparent", form_.traceparent});
  if (!form_.neutralised.empty()) {
    headers.push_back({"x-hearth-neutralised", form_.neutralised});
  }
  if (form_.hold != nullptr) {
    for (HttpHeader& header : RateHeaders(form_.hold->standing(SteadyClock().now_us()))) {
      headers.push_back(std::move(header));
    }
  }
  return headers;
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
  {
    const MutexLock lock(mu_);
    for (size_t i = 0; i < choices_.size(); ++i) {
      const RequestRecord& record = *news_[i].record;
      usage.completion_tokens += choices_[i].turn.num_tokens();
      usage.reasoning_tokens += choices_[i].turn.num_reasoning_tokens();
      if (i % static_cast<size_t>(form_.choices_per_prompt) != 0) continue;
      usage.prompt_tokens += record.num_prompt;
      usage.cached_tokens += record.num_cached;
    }
  }
  bytes += writer_->End(usage);
  std::vector<HttpHeader> report = CacheHeaders();
  const std::string trouble = writer_->trouble();
  if (!trouble.empty()) report.push_back({"x-hearth-warning", trouble});
  if (!form_.streams) return Close(200, trouble, "", std::move(report), writer_->Whole(usage));
  // The head of a stream is long gone: comments are the one place left.
  std::string comments;
  for (const HttpHeader& header : report)
    comments += ": " + header.name + ": " + header.value + "\n";
  Close(200, trouble, comments + "\n" + bytes, {}, "");
}

// A stream that has begun says so in an error event and lacks its last one; a whole answer has its
// own status.
void Exchange::EndBadly(const RequestRecord& record, std::string bytes) {
  ApiError error = WhyItEnded(record, form_.mask_field);
  error.request_id = form_.request_id;
  Cancel();  // the other choices
  if (form_.streams) return Close(error.status, error.code, bytes + writer_->Fail(error), {}, "");
  std::vector<HttpHeader> headers;
  if (error.retry_after_s > 0) headers.push_back({"retry-after", "1"});
  Close(error.status, error.code, "", std::move(headers), form_.describe_error(error));
}

void Exchange::Close(int status, const std::string& error_code, std::string last_event,
                     std::vector<HttpHeader> headers, std::string body) {
  TurnOutcome outcome{form_.dialect,
                      form_.request_id,
                      form_.key_id,
                      form_.traceparent,
                      status,
                      error_code,
                      form_.streams,
                      {},
                      0,
                      0,
                      SecondsBetween(form_.arrived, std::chrono::steady_clock::now()),
                      form_.neutralised};
  // Before the last byte: a client that asks again at once must find its place free.
  if (form_.hold != nullptr) {
    int64_t generated = 0;
    for (const Choice& choice : choices_) generated += choice.turn.num_tokens();
    form_.hold->End(generated, SteadyClock().now_us());
  }
  for (HttpHeader& header : Headers()) headers.push_back(std::move(header));
  headers.push_back({"content-type", "application/json"});
  {
    const MutexLock lock(mu_);
    for (const Choice& choice : choices_) {
      outcome.num_reasoning_tokens += choice.turn.num_reasoning_tokens();
      outcome.num_calls += choice.turn.num_calls();
    }
    for (News& news : news_) {
      if (news.record) outcome.records.push_back(*news.record);
      news.pending.clear();
    }
    if (form_.streams) {
      reply_->Write(std::move(last_event));
      reply_->End();
    } else {
      reply_->Send(status, std::move(headers), std::move(body));
    }
    is_over_ = true;
  }
  if (house_.observer != nullptr) house_.observer->OnEnd(outcome);
}

}  // namespace hearth
