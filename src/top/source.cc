// SPDX-License-Identifier: Apache-2.0
#include "top/source.h"

#include <utility>

#include "base/terminal.h"

namespace hearth {
namespace {

// 320 sequences are about 100 KiB.
constexpr size_t kMaxAnswerBytes = size_t{4} << 20;
constexpr long kAnswerSeconds = 5;

}  // namespace

Result<Json> ReadStatusAnswer(long http_status, std::string_view body, bool had_key) {
  if (http_status == 401) {
    return Error(Code::kInvalid, "%s",
                 had_key ? "the key was rejected; an admin key is required (make one with `hearth "
                           "key ID --admin`)"
                         : "an admin key is required: pass --key-file FILE or set HEARTH_API_KEY");
  }
  Result<Json> json = ParseJson(body, {.max_bytes = kMaxAnswerBytes});
  if (http_status == 403) {
    const Json* error = json.ok() ? json->Find("error") : nullptr;
    const Json* message = error ? error->Find("message") : nullptr;
    const bool has_words = message && message->string();
    return Error(Code::kInvalid, "rejected: %s",
                 has_words ? ForTerminal(message->string()->substr(0, 200)).c_str() : "HTTP 403");
  }
  const bool is_ours = json.ok() && json->Find("hearth") && json->Find("hearth")->string();
  if (http_status == 200 && is_ours) return *json;
  return Error(Code::kInvalid,
               "expected the status of a Hearth server, found another answer (HTTP %ld)",
               http_status);
}

struct StatusSource::Impl {
  explicit Impl(const ServerAddress& address)
      : has_key(!address.key.empty()),
        call(address, "/status", [this](std::string_view bytes, long) {
          body += bytes;
          return body.size() <= kMaxAnswerBytes;
        }) {
    call.Limit(kAnswerSeconds);
  }
  Result<Json> Answer(const Status& ended) {
    HEARTH_TRY(ended);
    if (body.size() > kMaxAnswerBytes) {
      return Error(Code::kInvalid, "%s: the status has more than %zu bytes", call.where().c_str(),
                   kMaxAnswerBytes);
    }
    return ReadStatusAnswer(call.http_status(), body, has_key).Within(call.where());
  }

  const bool has_key;
  std::string body;
  bool is_asking = false;
  ServerCall call;
};

StatusSource::StatusSource(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

StatusSource::~StatusSource() = default;

Result<std::unique_ptr<StatusSource>> StatusSource::Open(ServerAddress address) {
  HEARTH_ASSIGN(const ServerAddress checked, CheckAddress(std::move(address)));
  return std::unique_ptr<StatusSource>(new StatusSource(std::make_unique<Impl>(checked)));
}

void StatusSource::Begin() {
  if (impl_->is_asking) return;
  impl_->body.clear();
  impl_->is_asking = true;
  impl_->call.Begin();
}

std::optional<Result<Json>> StatusSource::Wait(std::span<const int> fds, int timeout_ms) {
  const std::optional<Status> ended = impl_->call.Wait(fds, timeout_ms < 0 ? 1000 : timeout_ms);
  if (!ended) return std::nullopt;
  impl_->is_asking = false;
  return impl_->Answer(*ended);
}

Result<Json> StatusSource::Ask() {
  Begin();
  while (true) {
    if (auto answer = Wait({}, 1000)) return *std::move(answer);
  }
}

}  // namespace hearth
