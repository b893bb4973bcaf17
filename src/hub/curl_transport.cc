// SPDX-License-Identifier: Apache-2.0
// The transport on libcurl: one multi handle, one easy handle a slot, connections kept between
// requests.
#include <curl/curl.h>

#include <array>
#include <charconv>
#include <map>
#include <string_view>

#include "base/ascii.h"
#include "hub/transport.h"
#include "late/late.h"

namespace hearth {
namespace {

std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::optional<uint64_t> NumberOf(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// W/"abc" and "abc" are abc.
std::string BareTag(std::string_view text) {
  if (text.starts_with("W/")) text.remove_prefix(2);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  return std::string(text);
}

// "bytes 5-9/20"
void ReadContentRange(std::string_view value, HttpHead& head) {
  if (!value.starts_with("bytes ")) return;
  value = Trimmed(value.substr(6));
  const size_t dash = value.find('-'), slash = value.find('/');
  if (dash == value.npos || slash == value.npos) return;
  head.range_first = NumberOf(value.substr(0, dash));
  head.range_total = NumberOf(value.substr(slash + 1));
}

// One request: an easy handle with what it needs to stay alive.
struct Slot {
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  FetchSink* sink = nullptr;
  HttpHead head;
  bool has_told_head = false, was_stopped = false;
  std::array<char, CURL_ERROR_SIZE> problem{};
};

size_t OnHeader(char* data, size_t, size_t size, void* user) {
  HttpHead& head = static_cast<Slot*>(user)->head;
  const std::string_view line(data, size);
  if (line.starts_with("HTTP/")) {
    // An answer begins: what the one before said of the file itself stays, the rest was its own.
    HttpHead next;
    next.linked_etag = head.linked_etag;
    next.linked_size = head.linked_size;
    head = std::move(next);
    return size;
  }
  const size_t colon = line.find(':');
  if (colon == line.npos) return size;
  const std::string name = LowerAscii(line.substr(0, colon));
  const std::string_view value = Trimmed(line.substr(colon + 1));
  if (name == "content-length") head.length = NumberOf(value);
  if (name == "content-range") ReadContentRange(value, head);
  if (name == "etag") head.etag = BareTag(value);
  if (name == "retry-after") head.retry_after = value;
  if (name == "x-linked-etag") head.linked_etag = BareTag(value);
  if (name == "x-linked-size") head.linked_size = NumberOf(value);
  return size;
}

void FillStatus(Slot& slot) {
  curl_easy_getinfo(slot.easy, CURLINFO_RESPONSE_CODE, &slot.head.status);
}

size_t OnBytes(char* data, size_t, size_t size, void* user) {
  Slot& slot = *static_cast<Slot*>(user);
  FillStatus(slot);
  if (!slot.has_told_head) {
    slot.has_told_head = true;
    slot.was_stopped = !slot.sink->OnHead(slot.head);
  }
  if (!slot.was_stopped) {
    slot.was_stopped = !slot.sink->OnBytes(std::as_bytes(std::span(data, size)));
  }
  return slot.was_stopped ? 0 : size;
}

FetchTrouble TroubleOf(CURLcode code, bool was_stopped) {
  if (code == CURLE_OK) return FetchTrouble::kNone;
  if (was_stopped) return FetchTrouble::kStopped;
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return FetchTrouble::kNoHost;
    case CURLE_COULDNT_CONNECT:
      return FetchTrouble::kNoConnection;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return FetchTrouble::kTls;
    default:
      return FetchTrouble::kInterrupted;
  }
}

class CurlTransport final : public Transport {
 public:
  explicit CurlTransport(std::chrono::milliseconds connect_time)
      : connect_ms_(static_cast<long>(connect_time.count())), multi_(curl_multi_init()) {}
  CurlTransport(const CurlTransport&) = delete;
  CurlTransport& operator=(const CurlTransport&) = delete;
  ~CurlTransport() override {
    for (auto& [number, slot] : slots_) End(slot);
    curl_multi_cleanup(multi_);
  }
  void Begin(int number, const HttpFetch& fetch, FetchSink& sink) override {
    Slot& slot = slots_[number];
    HEARTH_CHECK(slot.easy == nullptr);
    slot = Slot();
    slot.easy = curl_easy_init();
    HEARTH_CHECK(slot.easy != nullptr);
    slot.sink = &sink;
    SetUp(slot, fetch);
    curl_multi_add_handle(multi_, slot.easy);
  }
  void Cancel(int number) override {
    if (const auto found = slots_.find(number); found != slots_.end()) End(found->second);
  }
  std::vector<FetchOutcome> Wait(std::chrono::milliseconds time) override {
    std::vector<FetchOutcome> outcomes = Perform();
    if (!outcomes.empty()) return outcomes;
    curl_multi_poll(multi_, nullptr, 0, static_cast<int>(time.count()), nullptr);
    return Perform();
  }

 private:
  void End(Slot& slot) {
    if (slot.easy == nullptr) return;
    curl_multi_remove_handle(multi_, slot.easy);
    curl_easy_cleanup(slot.easy);
    curl_slist_free_all(slot.headers);
    slot.easy = nullptr;
    slot.headers = nullptr;
  }
  void SetUp(Slot& slot, const HttpFetch& fetch) {
    CURL* easy = slot.easy;
    const bool is_https = fetch.url.starts_with("https://");
    curl_easy_setopt(easy, CURLOPT_URL, fetch.url.c_str());
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "hearth");
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, 8L);
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, is_https ? "https" : "http,https");
    // Version 2 would put all requests on one connection; several are the point.
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, connect_ms_);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 512L << 10);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, slot.problem.data());
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &OnHeader);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, static_cast<void*>(&slot));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &OnBytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, static_cast<void*>(&slot));
    // libcurl drops a header of this name when a redirect leads to another host or port.
    if (!fetch.token.empty()) {
      slot.headers = curl_slist_append(nullptr, ("Authorization: Bearer " + fetch.token).c_str());
      curl_easy_setopt(easy, CURLOPT_HTTPHEADER, slot.headers);
    }
    if (fetch.is_head) curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    if (fetch.first) {
      const std::string range = std::to_string(*fetch.first) + "-" + std::to_string(fetch.last);
      curl_easy_setopt(easy, CURLOPT_RANGE, range.c_str());
    }
  }
  std::vector<FetchOutcome> Perform() {
    int running = 0, left = 0;
    curl_multi_perform(multi_, &running);
    std::vector<FetchOutcome> outcomes;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      outcomes.push_back(OutcomeOf(message->easy_handle, message->data.result));
    }
    return outcomes;
  }
  FetchOutcome OutcomeOf(CURL* easy, CURLcode code) {
    for (auto& [number, slot] : slots_) {
      if (slot.easy != easy) continue;
      FillStatus(slot);
      FetchOutcome outcome{.slot = number, .trouble = TroubleOf(code, slot.was_stopped)};
      // An answer without bytes has a head all the same.
      if (code == CURLE_OK && !slot.has_told_head && !slot.sink->OnHead(slot.head)) {
        outcome.trouble = FetchTrouble::kStopped;
      }
      outcome.head = slot.head;
      if (code != CURLE_OK) {
        outcome.why = slot.problem[0] == '\0' ? curl_easy_strerror(code) : slot.problem.data();
      }
      End(slot);
      return outcome;
    }
    HEARTH_CHECK(false);  // libcurl named a handle that is not ours
    return {};
  }

  const long connect_ms_;
  CURLM* const multi_;
  std::map<int, Slot> slots_;  // whose addresses libcurl knows: they do not move
};

}  // namespace

Result<std::unique_ptr<Transport>> OpenCurlTransport(std::chrono::milliseconds connect_time) {
  HEARTH_TRY(LoadCurl());
  return std::unique_ptr<Transport>(new CurlTransport(connect_time));
}

}  // namespace hearth
