// SPDX-License-Identifier: Apache-2.0
#include "batch/batch_runner.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <deque>
#include <new>
#include <utility>

#include "base/mutex.h"
#include "base/terminal.h"
#include "base/thread_name.h"
#include "server/turns/request_names.h"

namespace hearth {

using Steady = std::chrono::steady_clock;

struct BatchRunner::Answer {
  std::string batch;
  int64_t number = 0;
  std::string custom_id;
  int status = 0;  // 0: none came
  HttpReply::Headers headers = {};
  std::string body = {};
};

// What answers need, which may come after the runner has gone.
struct BatchRunner::Shared {
  void Put(Answer answer) {
    const MutexLock lock(mu);
    answers.push_back(std::move(answer));
    news.NotifyAll();
  }
  Mutex mu;
  CondVar news;
  std::deque<Answer> answers HEARTH_GUARDED_BY(mu);
  bool is_woken HEARTH_GUARDED_BY(mu) = false, is_stopping HEARTH_GUARDED_BY(mu) = false;
  Counts counts HEARTH_GUARDED_BY(mu);
};

// Where the API answers a line: nothing is streamed, so there is one answer, or none.
class BatchRunner::Reply final : public HttpReply {
 public:
  Reply(std::shared_ptr<Shared> shared, Answer line)
      : shared_(std::move(shared)), line_(std::move(line)) {}
  void Send(int status, Headers headers, std::string body) override {
    Put(status, std::move(headers), std::move(body));
  }
  void StartStream(int, Headers) override {}
  void Write(std::string) override {}
  void End() override { Put(0, {}, ""); }
  void Abort() override { Put(0, {}, ""); }
  size_t unsent_bytes() const override { return 0; }
  bool is_gone() const override {
    const MutexLock lock(mu_);
    return is_gone_;
  }
  void OnGone(std::function<void()> gone) override {
    {
      const MutexLock lock(mu_);
      if (!is_gone_) {
        gone_ = std::move(gone);
        return;
      }
    }
    gone();
  }
  // Nobody wants its answer any more.
  void Leave() {
    std::function<void()> gone;
    {
      const MutexLock lock(mu_);
      if (std::exchange(is_gone_, true)) return;
      gone = std::exchange(gone_, nullptr);
    }
    if (gone) gone();
  }

 private:
  void Put(int status, Headers headers, std::string body) {
    Answer answer = line_;
    {
      const MutexLock lock(mu_);
      gone_ = nullptr;
      if (std::exchange(is_answered_, true)) return;
    }
    answer.status = status;
    answer.headers = std::move(headers);
    answer.body = std::move(body);
    shared_->Put(std::move(answer));
  }

  const std::shared_ptr<Shared> shared_;
  const Answer line_;
  mutable Mutex mu_;
  bool is_answered_ HEARTH_GUARDED_BY(mu_) = false, is_gone_ HEARTH_GUARDED_BY(mu_) = false;
  std::function<void()> gone_ HEARTH_GUARDED_BY(mu_);
};

namespace {

std::string ErrorCode(const std::string& body) {
  Result<Json> json = ParseJson(body);
  const Json* error = json.ok() ? json->Find("error") : nullptr;
  const Json* code = error == nullptr ? nullptr : error->Find("code");
  return code != nullptr && code->string() != nullptr ? *code->string() : "";
}

double RetryAfter(const HttpReply::Headers& headers) {
  double seconds = 1;
  for (const HttpHeader& header : headers) {
    if (header.name != "retry-after") continue;
    std::from_chars(header.value.data(), header.value.data() + header.value.size(), seconds);
  }
  return std::clamp(seconds, 0.1, 60.0);
}

}  // namespace

LineFate FateOf(int status, const std::string& body, const HttpReply::Headers& headers) {
  if (status == 200) return {};
  if (status == 0 || status == 499) return {.is_again = true, .after_s = 1};
  if (status == 429 || status == 503 || status == 529) {
    const std::string code = ErrorCode(body);
    for (const char* passing : {"overloaded", "rate_limit_exceeded", "shutting_down", "shutdown"}) {
      if (code == passing) return {.is_again = true, .after_s = RetryAfter(headers)};
    }
  }
  return {.is_error = true};
}

BatchRunner::BatchRunner(BatchStore& store, const BatchOptions& options)
    : store_(store), options_(options), shared_(std::make_shared<Shared>()) {}

BatchRunner::~BatchRunner() { Stop(); }

void BatchRunner::Stop() {
  {
    const MutexLock lock(shared_->mu);
    shared_->is_stopping = true;
    shared_->news.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
  for (auto& [id, job] : jobs_) Leave(job);
  // What was begun is others' to run, at once. Without that they wait for the claims to end.
  if (!jobs_.empty()) (void)store_.DropClaims().ok();
  jobs_.clear();
}

void BatchRunner::Start(BatchSend send, BatchBusy is_busy) {
  send_ = std::move(send);
  is_busy_ = std::move(is_busy);
  thread_ = std::thread([this] { Run(); });
}

void BatchRunner::Wake() {
  const MutexLock lock(shared_->mu);
  shared_->is_woken = true;
  shared_->news.NotifyAll();
}

void BatchRunner::Run() {
  NameThread("batches");
  while (true) {
    Status status;
    try {
      status = Look();
    } catch (const std::bad_alloc&) {
      status = Status(Code::kExhausted, "batch jobs: no memory");
    }
    Tell(status);
    const MutexLock lock(shared_->mu);
    const bool is_held = !status.ok();  // what is new can wait as well: it would fail again
    const auto has_news = [&]() HEARTH_REQUIRES(shared_->mu) {
      return shared_->is_stopping || (!is_held && (shared_->is_woken || !shared_->answers.empty()));
    };
    shared_->news.WaitFor(shared_->mu, options_.look_every, has_news);
    shared_->is_woken = false;
    if (shared_->is_stopping) return;
  }
}

// A full disk is told once, and tried again until it is not. No line is lost by it: answers wait to
// be stored, and those of a process that ends meanwhile are computed again.
void BatchRunner::Tell(const Status& status) {
  const bool was_held = !last_complaint_.empty();
  if (!status.ok() && status.message() != last_complaint_) {
    PrintError("warning: batch jobs wait: %s\n", status.message().c_str());
  }
  if (status.ok() && was_held) PrintError("batch jobs go on\n");
  last_complaint_ = status.message();
  const MutexLock lock(shared_->mu);
  shared_->counts.is_held = !status.ok();
}

// An answer leaves the queue when it is stored, and not before.
Status BatchRunner::TakeAnswers() {
  while (true) {
    Answer answer;
    {
      const MutexLock lock(shared_->mu);
      if (shared_->answers.empty()) return Status();
      answer = shared_->answers.front();
    }
    const LineFate fate = FateOf(answer.status, answer.body, answer.headers);
    bool is_first = false;
    if (fate.is_again) {
      HEARTH_TRY(store_.GiveBack(answer.batch, answer.number));
    } else {
      HEARTH_ASSIGN(is_first, store_.PutResult(answer.batch, answer.number, fate.is_error,
                                               ResultLine(answer.custom_id, NewId(), answer.status,
                                                          answer.body)));
    }
    {
      const MutexLock lock(shared_->mu);
      shared_->answers.pop_front();
      if (is_first) ++(fate.is_error ? shared_->counts.failed : shared_->counts.completed);
    }
    const auto job = jobs_.find(answer.batch);
    if (job == jobs_.end()) continue;
    num_running_ -= static_cast<int>(job->second.running.erase(answer.number));
    if (!fate.is_again) continue;
    const std::chrono::duration<double> pause(fate.after_s);
    job->second.paused_until =
        std::max(job->second.paused_until,
                 Steady::now() + std::chrono::duration_cast<Steady::duration>(pause));
  }
}

BatchRunner::Counts BatchRunner::counts() const {
  const MutexLock lock(shared_->mu);
  return shared_->counts;
}

Status BatchRunner::Renew() {
  const Time now = Steady::now();
  if (now - renewed_at_ < options_.renew_every) return Status();
  for (const auto& [id, job] : jobs_) {
    std::vector<int64_t> numbers;
    for (const auto& [number, reply] : job.running) numbers.push_back(number);
    if (!numbers.empty()) HEARTH_TRY(store_.RenewClaims(id, numbers));
  }
  renewed_at_ = now;
  return Status();
}

Status BatchRunner::Count() {
  const Time now = Steady::now();
  const bool is_due = now - counted_at_ >= options_.count_every;
  JobCounts counted;
  if (is_due) {
    HEARTH_ASSIGN(counted, store_.Count());
    counted_at_ = now;
  }
  const MutexLock lock(shared_->mu);
  if (is_due) shared_->counts.store = std::move(counted);
  shared_->counts.running = num_running_;
  return Status();
}

Status BatchRunner::Look() {
  HEARTH_TRY(Renew());
  HEARTH_TRY(TakeAnswers());
  HEARTH_ASSIGN(const int64_t age_s, store_.Age(clocks()));
  HEARTH_TRY(store_.DeleteExpired(age_s));
  HEARTH_ASSIGN(std::vector<BatchRow> batches, store_.Unfinished());
  LeaveOthers(batches);
  for (const BatchRow& batch : batches) {
    if (batch.status == "validating") HEARTH_TRY(Validate(batch));
  }
  std::erase_if(batches, [](const BatchRow& batch) { return batch.status == "validating"; });
  const int most = is_busy_ && is_busy_() ? 1 : options_.max_in_flight;
  // A line of each in turn, so that a small job is not behind a large one.
  bool has_begun = true;
  while (has_begun) {
    has_begun = false;
    for (const BatchRow& batch : batches) {
      if (num_running_ >= most) break;
      if (batch.status != "in_progress" || age_s >= batch.due_s) continue;
      HEARTH_ASSIGN(const bool began, BeginLine(batch, jobs_[batch.id]));
      has_begun |= began;
    }
  }
  for (const BatchRow& batch : batches) {
    HEARTH_TRY(EndIfDone(batch, jobs_[batch.id], age_s));
  }
  return Count();
}

// Jobs that another process has ended meanwhile.
void BatchRunner::LeaveOthers(const std::vector<BatchRow>& unfinished) {
  std::erase_if(jobs_, [&](auto& each) {
    const auto& [id, job] = each;
    const bool goes_on =
        std::ranges::any_of(unfinished, [&](const BatchRow& batch) { return batch.id == id; });
    if (!goes_on) Leave(job);
    return !goes_on && job.running.empty();
  });
}

Status BatchRunner::Validate(const BatchRow& batch) {
  HEARTH_ASSIGN(const std::optional<FileRow> file, store_.FindFile(batch.tenant, batch.input_file));
  BatchLines read;
  if (file) {
    HEARTH_ASSIGN(const std::string text, store_.ReadFile(*file));
    read = ReadLines(text, batch.endpoint, kMaxBatchLines);
  } else {
    read.mistakes.push_back({0, "file_not_found", "input_file_id", "The file was deleted"});
  }
  if (read.mistakes.empty()) {
    const Status begun = store_.Begin(batch, read.lines, clocks().wall_s);
    if (begun.code() != Code::kExhausted) {
      Wake();
      return begun;
    }
    read.mistakes.push_back({0, "quota_exceeded", "", begun.message()});
  }
  return store_.Fail(batch, WriteJson(MistakesAsJson(read.mistakes)), clocks().wall_s);
}

Result<bool> BatchRunner::BeginLine(const BatchRow& batch, Job& job) {
  if (Steady::now() < job.paused_until) return false;
  HEARTH_ASSIGN(const std::optional<LineRow> claimed, store_.Claim(batch.id, job.cursor));
  if (!claimed) return false;
  const LineRow& line = *claimed;
  job.cursor = line.number;
  auto reply = std::make_shared<Reply>(shared_, Answer{batch.id, line.number, line.custom_id});
  job.running[line.number] = reply;
  ++num_running_;
  HttpRequest request;
  request.method = "POST";
  request.path = batch.endpoint;
  request.headers = {{"content-type", "application/json"}};
  request.body = line.body;
  request.peer = "batch";
  request.key_id = batch.tenant;
  // Let go of by everybody without an answer, it will never have one.
  send_(std::move(request), {reply.get(), [reply](HttpReply*) { reply->Abort(); }});
  return true;
}

Status BatchRunner::EndIfDone(const BatchRow& batch, Job& job, int64_t age_s) {
  const bool is_late = age_s >= batch.due_s;
  const bool is_cancelled = batch.status == "cancelling";
  if (is_late || is_cancelled) Leave(job);
  if (!job.running.empty()) return Status();
  if (!is_late && !is_cancelled) {
    HEARTH_ASSIGN(const bool has_more, store_.HasUnanswered(batch.id));
    if (has_more) {
      job.cursor = 0;  // nothing runs: what lies behind it was sent back
      return Status();
    }
  }
  const BatchStore::Unrun late{"batch_expired",
                               "This request was not run before the completion window ended."};
  const std::string status = is_cancelled ? "cancelled" : is_late ? "expired" : "completed";
  // A batch that was just in time has nothing to answer with it.
  HEARTH_TRY(store_.Finish(batch, status, is_late && !is_cancelled ? late : BatchStore::Unrun{},
                           clocks().wall_s));
  jobs_.erase(batch.id);
  return Status();
}

void BatchRunner::Leave(const Job& job) {
  for (const auto& [number, reply] : job.running) reply->Leave();
}

}  // namespace hearth
