// SPDX-License-Identifier: Apache-2.0
#include "ask/server_call.h"

#include <curl/curl.h>

#include <array>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/mask_secrets.h"
#include "base/terminal.h"
#include "late/late.h"

namespace hearth {
namespace {

constexpr long kConnectSeconds = 3;

}  // namespace

Result<ServerAddress> CheckAddress(ServerAddress address) {
  if (!address.url.starts_with("http://") && !address.url.starts_with("https://")) {
    return Error(Code::kInvalid,
                 "the server %s: expected a URL that starts with http:// or https://",
                 Quoted(MaskSecretValue(address.url)).c_str());
  }
  while (address.url.ends_with('/')) address.url.pop_back();
  if (address.url.ends_with("/v1")) address.url.resize(address.url.size() - 3);
  for (const char c : address.key) {
    if (c > ' ' && c < 0x7f) continue;
    return Error(Code::kInvalid, "the key contains characters that are not allowed in API keys");
  }
  HEARTH_TRY(LoadCurl());
  return address;
}

struct ServerCall::Impl {
  Impl(const ServerAddress& address, const std::string& path, Take given)
      : where(ForTerminal(
            MaskSecretValue(address.unix_path.empty() ? address.url : address.unix_path))),
        take(std::move(given)) {
    HEARTH_CHECK(easy != nullptr && multi != nullptr);
    const std::string target = address.url + path;
    if (!address.key.empty()) AddHeader("Authorization: Bearer " + address.key);
    curl_easy_setopt(easy, CURLOPT_URL, target.c_str());
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    // A key goes to the server that was named, to no proxy and to no place it points to.
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, problem.data());
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, static_cast<void*>(this));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Impl::OnBytes);
    if (!address.ca_path.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, address.ca_path.c_str());
    if (!address.unix_path.empty()) {
      curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, address.unix_path.c_str());
    }
  }
  ~Impl() {
    if (is_asking) curl_multi_remove_handle(multi, easy);
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
    curl_slist_free_all(headers);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void AddHeader(const std::string& line) { headers = curl_slist_append(headers, line.c_str()); }
  static size_t OnBytes(char* data, size_t, size_t size, void* self) {
    const auto* call = static_cast<Impl*>(self);
    return call->take({data, size}, call->http_status()) ? size : 0;
  }
  long http_status() const {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
  }
  Status Ended(CURLcode code) const {
    if (code == CURLE_OK || code == CURLE_WRITE_ERROR) return Status();  // the taker knows why
    if (code == CURLE_COULDNT_CONNECT) {
      return Error(Code::kIo, "%s: no answer; is `hearth serve` running there?", where.c_str());
    }
    const char* why = problem[0] == '\0' ? curl_easy_strerror(code) : problem.data();
    return Error(Code::kIo, "%s: %s", where.c_str(), ForTerminal(MaskSecrets(why)).c_str());
  }
  std::optional<Status> Perform() {
    int running = 0, left = 0;
    curl_multi_perform(multi, &running);
    while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      curl_multi_remove_handle(multi, easy);
      is_asking = false;
      return Ended(code);
    }
    return std::nullopt;
  }

  const std::string where;
  const Take take;
  CURL* const easy = curl_easy_init();
  CURLM* const multi = curl_multi_init();
  curl_slist* headers = nullptr;
  std::array<char, CURL_ERROR_SIZE> problem{};
  bool is_asking = false;
};

ServerCall::ServerCall(const ServerAddress& address, const std::string& path, Take take)
    : impl_(std::make_unique<Impl>(address, path, std::move(take))) {}

ServerCall::~ServerCall() = default;

void ServerCall::Limit(long seconds) { curl_easy_setopt(impl_->easy, CURLOPT_TIMEOUT, seconds); }

void ServerCall::Post(const std::string& body) {
  impl_->AddHeader("Content-Type: application/json");
  impl_->AddHeader("Expect:");  // no pause before a large body
  curl_easy_setopt(impl_->easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(impl_->easy, CURLOPT_COPYPOSTFIELDS, body.c_str());
}

void ServerCall::Begin() {
  if (impl_->is_asking) return;
  impl_->problem[0] = '\0';
  impl_->is_asking = true;
  curl_easy_setopt(impl_->easy, CURLOPT_HTTPHEADER, impl_->headers);
  curl_multi_add_handle(impl_->multi, impl_->easy);
}

std::optional<Status> ServerCall::Wait(std::span<const int> fds, int timeout_ms) {
  if (impl_->is_asking) {
    if (std::optional<Status> ended = impl_->Perform()) return ended;
  }
  std::vector<curl_waitfd> watched;
  for (const int fd : fds) watched.push_back({fd, CURL_WAIT_POLLIN, 0});
  curl_multi_poll(impl_->multi, watched.data(), static_cast<unsigned>(watched.size()), timeout_ms,
                  nullptr);
  return impl_->is_asking ? impl_->Perform() : std::nullopt;
}

long ServerCall::http_status() const { return impl_->http_status(); }

std::string ServerCall::where() const { return impl_->where; }

}  // namespace hearth
