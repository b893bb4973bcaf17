// SPDX-License-Identifier: Apache-2.0
#include "app/top_source.h"

#include <curl/curl.h>

#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "app/terminal.h"

namespace hearth {
namespace {

// 320 sequences are about 100 KiB.
constexpr size_t kMaxAnswerBytes = size_t{4} << 20;
constexpr long kConnectSeconds = 3, kAnswerSeconds = 5;

}  // namespace

Result<Json> ReadStatusAnswer(long http_status, std::string_view body, bool had_key) {
  if (http_status == 401) {
    return Error(Code::kInvalid, "%s",
                 had_key ? "the key was refused; an admin's key is needed (hearth key --admin)"
                         : "an admin's key is needed: --key-file FILE or HEARTH_API_KEY");
  }
  Result<Json> json = ParseJson(body, {.max_bytes = kMaxAnswerBytes});
  if (http_status == 403) {
    const Json* error = json.ok() ? json->Find("error") : nullptr;
    const Json* message = error ? error->Find("message") : nullptr;
    const bool has_words = message && message->string();
    return Error(Code::kInvalid, "refused: %s",
                 has_words ? ForTerminal(message->string()->substr(0, 200)).c_str() : "HTTP 403");
  }
  const bool is_ours = json.ok() && json->Find("hearth") && json->Find("hearth")->string();
  if (http_status == 200 && is_ours) return *json;
  return Error(Code::kInvalid,
               "answers, but not as a Hearth server that has GET /status (HTTP %ld)", http_status);
}

struct StatusSource::Impl {
  explicit Impl(StatusAddress given) : address(std::move(given)) {
    while (address.url.ends_with('/')) address.url.pop_back();
    if (address.url.ends_with("/v1")) address.url.resize(address.url.size() - 3);
    const std::string target = address.url + "/status";
    if (!address.key.empty()) {
      headers = curl_slist_append(nullptr, ("Authorization: Bearer " + address.key).c_str());
    }
    curl_easy_setopt(easy, CURLOPT_URL, target.c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    // A key goes to the server that was named, to no proxy and to no place it points to.
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, kAnswerSeconds);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, static_cast<void*>(this));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Impl::OnBytes);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, problem.data());
    if (!address.unix_path.empty()) {
      curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, address.unix_path.c_str());
    }
    if (!address.ca_path.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, address.ca_path.c_str());
  }
  ~Impl() {
    if (is_asking) curl_multi_remove_handle(multi, easy);
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
    curl_slist_free_all(headers);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  static size_t OnBytes(char* data, size_t, size_t size, void* self) {
    std::string& body = static_cast<Impl*>(self)->body;
    if (body.size() + size > kMaxAnswerBytes) return 0;  // ends the transfer
    body.append(data, size);
    return size;
  }
  std::string where() const {
    return ForTerminal(address.unix_path.empty() ? address.url : address.unix_path);
  }
  Result<Json> Answer(CURLcode code) {
    if (code == CURLE_COULDNT_CONNECT) {
      return Error(Code::kIo, "%s: nobody answers; is `hearth serve` running there?",
                   where().c_str());
    }
    if (code != CURLE_OK) {
      const char* why = problem[0] == '\0' ? curl_easy_strerror(code) : problem.data();
      return Error(Code::kIo, "%s: %s", where().c_str(), ForTerminal(why).c_str());
    }
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return ReadStatusAnswer(status, body, !address.key.empty()).Within(where());
  }
  // The answer, when it is there.
  std::optional<Result<Json>> Perform() {
    int running = 0, left = 0;
    curl_multi_perform(multi, &running);
    while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      curl_multi_remove_handle(multi, easy);
      is_asking = false;
      return Answer(code);
    }
    return std::nullopt;
  }

  StatusAddress address;
  CURL* const easy = curl_easy_init();
  CURLM* const multi = curl_multi_init();
  curl_slist* headers = nullptr;
  std::array<char, CURL_ERROR_SIZE> problem{};
  std::string body;
  bool is_asking = false;
};

StatusSource::StatusSource(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

StatusSource::~StatusSource() = default;

Result<std::unique_ptr<StatusSource>> StatusSource::Open(StatusAddress address) {
  if (!address.url.starts_with("http://") && !address.url.starts_with("https://")) {
    return Error(Code::kInvalid, "--url %s: expected http:// or https://",
                 Quoted(address.url).c_str());
  }
  for (const char c : address.key) {
    if (c > ' ' && c < 0x7f) continue;
    return Error(Code::kInvalid, "the key has characters that no key has");
  }
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return Error(Code::kIo, "libcurl does not start");
  }
  return std::unique_ptr<StatusSource>(
      new StatusSource(std::make_unique<Impl>(std::move(address))));
}

void StatusSource::Begin() {
  if (impl_->is_asking) return;
  impl_->body.clear();
  impl_->problem[0] = '\0';
  impl_->is_asking = true;
  curl_multi_add_handle(impl_->multi, impl_->easy);
}

std::optional<Result<Json>> StatusSource::Wait(std::span<const int> fds, int timeout_ms) {
  if (impl_->is_asking) {
    if (auto answer = impl_->Perform()) return answer;
  }
  std::vector<curl_waitfd> watched;
  for (const int fd : fds) watched.push_back({fd, CURL_WAIT_POLLIN, 0});
  curl_multi_poll(impl_->multi, watched.data(), static_cast<unsigned>(watched.size()),
                  timeout_ms < 0 ? 1000 : timeout_ms, nullptr);
  return impl_->is_asking ? impl_->Perform() : std::nullopt;
}

Result<Json> StatusSource::Ask() {
  Begin();
  while (true) {
    if (auto answer = Wait({}, 1000)) return *std::move(answer);
  }
}

}  // namespace hearth
