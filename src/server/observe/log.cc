// SPDX-License-Identifier: Apache-2.0
#include "server/observe/log.h"

#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <chrono>
#include <ctime>
#include <utility>

namespace hearth {
namespace {

constexpr size_t kMaxQueued = 8192;  // lines

std::string AsTime(int64_t now_ms) {
  const std::time_t seconds = now_ms / 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return Printf("%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", utc.tm_year + 1900, utc.tm_mon + 1,
                utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, static_cast<int>(now_ms % 1000));
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
  if (!outcome.neutralised.empty()) line.push_back({"neutralised", outcome.neutralised});
  return line;
}

struct RequestLog::Impl {
  std::shared_ptr<spdlog::async_logger> logger;
  // Ends first, with all lines written: the thread must not be the one that frees the logger.
  std::shared_ptr<spdlog::details::thread_pool> threads;
};

Result<std::unique_ptr<RequestLog>> RequestLog::Open(const std::string& path) {
  spdlog::sink_ptr sink;
  try {  // the one library here that throws
    if (path == "-") {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    }
  } catch (const spdlog::spdlog_ex& error) {
    return Error(Code::kIo, "%s: %s", path.c_str(), error.what());
  }
  auto impl = std::make_unique<Impl>();
  impl->threads = std::make_shared<spdlog::details::thread_pool>(kMaxQueued, 1);
  impl->logger = std::make_shared<spdlog::async_logger>(
      "requests", std::move(sink), impl->threads, spdlog::async_overflow_policy::overrun_oldest);
  impl->logger->set_pattern("%v");
  impl->logger->flush_on(spdlog::level::info);
  return std::unique_ptr<RequestLog>(new RequestLog(std::move(impl)));
}

RequestLog::RequestLog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RequestLog::~RequestLog() = default;

void RequestLog::OnEnd(const TurnOutcome& outcome) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  impl_->logger->log(spdlog::level::info, WriteJson(OutcomeAsJson(outcome, now_ms)));
}

}  // namespace hearth
