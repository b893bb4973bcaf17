// SPDX-License-Identifier: Apache-2.0
#include "server/observe/log.h"

#include <fcntl.h>
#include <spdlog/async.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/terminal.h"
#include "server/turns/private_file.h"
#include "server/turns/utc_time.h"

namespace hearth {
namespace {

constexpr size_t kMaxQueued = 8192;  // lines

std::string AsTime(int64_t now_ms) {
  return Rfc3339(std::chrono::system_clock::time_point(std::chrono::milliseconds(now_ms)), 3);
}

double Milliseconds(int64_t from_us, int64_t to_us) {
  return to_us == 0 ? 0 : static_cast<double>(to_us - from_us) / 1000;
}

Json RecordAsJson(const RequestRecord& record) {
  return JsonObject{{"finish", NameOf(record.finish)},
                    {"prompt_tokens", record.num_prompt},
                    {"cached_tokens", record.num_cached},
                    {"computed_tokens", record.num_computed},
                    {"generated_tokens", record.num_generated},
                    {"preempted", record.num_preempted},
                    {"wait_ms", Milliseconds(record.arrived_us, record.started_us)},
                    {"first_token_ms", Milliseconds(record.arrived_us, record.first_token_us)},
                    {"total_ms", Milliseconds(record.arrived_us, record.ended_us)}};
}

// All choices of a request together.
struct Work {
  int64_t prompt = 0, cached = 0, generated = 0;
  double tokens_per_s = 0;
};

Work WorkOf(const TurnOutcome& outcome) {
  Work work;
  int64_t first_us = 0, last_us = 0, later_tokens = 0;
  for (size_t i = 0; i < outcome.records.size(); ++i) {
    const RequestRecord& record = outcome.records[i];
    work.generated += record.num_generated;
    if (i % static_cast<size_t>(std::max(1, outcome.choices_per_prompt)) == 0) {
      work.prompt += record.num_prompt;
      work.cached += record.num_cached;
    }
    if (record.first_token_us == 0) continue;
    first_us = first_us == 0 ? record.first_token_us : std::min(first_us, record.first_token_us);
    last_us = std::max(last_us, record.ended_us);
    later_tokens += record.num_generated - 1;  // the first one's time is the prompt's
  }
  if (last_us > first_us && later_tokens > 0) {
    work.tokens_per_s =
        static_cast<double>(later_tokens) * 1e6 / static_cast<double>(last_us - first_us);
  }
  return work;
}

// To a descriptor, in whole lines and without a buffer in between that would forget what failed.
// Called by the logger's one thread; the descriptor may come to mean another file meanwhile.
class LineSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit LineSink(int fd) : fd_(fd) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string_view rest(line.data(), line.size());
    while (!rest.empty()) {
      const ssize_t written = ::write(fd_, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw spdlog::spdlog_ex("writing the log", errno);
      rest.remove_prefix(static_cast<size_t>(written));
    }
  }
  void flush_() override {}

 private:
  const int fd_;
};

int64_t NowMs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

Json OutcomeAsJson(const TurnOutcome& outcome, int64_t now_ms) {
  JsonArray choices;
  for (const RequestRecord& record : outcome.records) choices.push_back(RecordAsJson(record));
  JsonObject line{{"time", AsTime(now_ms)},      {"event", "request"},
                  {"dialect", outcome.dialect},  {"request_id", outcome.request_id},
                  {"key", outcome.key_id},       {"status", outcome.status},
                  {"error", outcome.error_code}, {"stream", outcome.streams},
                  {"seconds", outcome.seconds},  {"reasoning_tokens", outcome.num_reasoning_tokens},
                  {"calls", outcome.num_calls},  {"choices", std::move(choices)}};
  if (!outcome.traceparent.empty()) line.push_back({"traceparent", outcome.traceparent});
  if (!outcome.ignored_fields.empty()) {
    line.push_back({"ignored_fields", outcome.ignored_fields});
  }
  if (!outcome.neutralised.empty()) line.push_back({"neutralised", outcome.neutralised});
  return line;
}

std::string OutcomeAsLine(const TurnOutcome& outcome, int64_t now_ms) {
  const std::time_t seconds = now_ms / 1000;
  std::tm local{};
  localtime_r(&seconds, &local);
  std::string line = Printf("%02d:%02d:%02d %s %d", local.tm_hour, local.tm_min, local.tm_sec,
                            outcome.dialect.c_str(), outcome.status);
  if (!outcome.error_code.empty()) line += " " + outcome.error_code;
  const Work work = WorkOf(outcome);
  if (!outcome.records.empty()) {
    line += Printf("  %lld prompt (%lld cached) + %lld reply tokens",
                   static_cast<long long>(work.prompt), static_cast<long long>(work.cached),
                   static_cast<long long>(work.generated));
  }
  if (work.tokens_per_s > 0) line += Printf(", %.1f tok/s", work.tokens_per_s);
  return line + Printf(outcome.records.empty() ? "  %.2f s" : ", %.2f s", outcome.seconds);
}

struct RequestLog::Impl {
  ~Impl() {
    threads.reset();
    if (!path.empty()) ::close(fd);
  }
  Form form = Form::kJson;
  std::atomic<uint64_t> num_failed{0};
  std::string path;  // empty: standard error
  int fd = STDERR_FILENO;
  std::shared_ptr<spdlog::async_logger> logger;
  // Ends first, with all lines written: the thread must not be the one that frees the logger.
  std::shared_ptr<spdlog::details::thread_pool> threads;
};

Result<std::unique_ptr<RequestLog>> RequestLog::Open(const std::string& path, Form form) {
  auto impl = std::make_unique<Impl>();
  impl->form = form;
  if (path != "-") {
    HEARTH_ASSIGN(impl->fd, OpenPrivateForAppend(path));
    impl->path = path;
  }
  impl->threads = std::make_shared<spdlog::details::thread_pool>(kMaxQueued, 1);
  impl->logger = std::make_shared<spdlog::async_logger>(
      "requests", std::make_shared<LineSink>(impl->fd), impl->threads,
      spdlog::async_overflow_policy::overrun_oldest);
  impl->logger->set_pattern("%v");
  impl->logger->set_error_handler([failed = &impl->num_failed](const std::string&) { ++*failed; });
  return std::unique_ptr<RequestLog>(new RequestLog(std::move(impl)));
}

// The descriptor keeps its number: a line that is being written goes to the old file or to the new
// one, whole, and no lock is needed.
Status RequestLog::Reopen() {
  if (impl_->path.empty()) return Status();
  HEARTH_ASSIGN(const int fresh, OpenPrivateForAppend(impl_->path));
  const bool done = ::dup3(fresh, impl_->fd, O_CLOEXEC) >= 0;
  const int why = errno;
  ::close(fresh);
  if (done) return Status();
  return Error(Code::kIo, "%s: cannot open: %s", impl_->path.c_str(), std::strerror(why));
}

RequestLog::RequestLog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RequestLog::~RequestLog() = default;

void RequestLog::OnEnd(const TurnOutcome& outcome) {
  const int64_t now_ms = NowMs();
  impl_->logger->log(spdlog::level::info,
                     impl_->form == Form::kLine
                         ? ForTerminal(OutcomeAsLine(outcome, now_ms))
                         : JsonForTerminal(WriteJson(OutcomeAsJson(outcome, now_ms))));
}

void RequestLog::TellRestart(const WorkerFacts& worker) {
  if (impl_->form != Form::kJson) return;
  const Json line =
      JsonObject{{"time", AsTime(NowMs())}, {"event", "restart"}, {"worker", AsJson(worker)}};
  impl_->logger->log(spdlog::level::info, WriteJson(line));
}

uint64_t RequestLog::num_lost() const {
  return impl_->num_failed + impl_->threads->overrun_counter();
}

}  // namespace hearth
