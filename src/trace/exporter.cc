// SPDX-License-Identifier: Apache-2.0
#include "trace/exporter.h"

#include <curl/curl.h>

#include <chrono>
#include <cstdio>

#include "base/mask_secrets.h"
#include "base/terminal.h"
#include "base/thread_name.h"
#include "late/late.h"

namespace hearth {
namespace {

// A collector's answer is empty or a short message; nothing of it is needed.
size_t Ignore(char*, size_t size, size_t count, void*) { return size * count; }

}  // namespace

struct TraceExporter::Curl {
  Curl() {
    // A server that was asked for traces has looked for the library before.
    if (!LoadCurl().ok()) return;
    handle = curl_easy_init();
    headers = curl_slist_append(nullptr, "Content-Type: application/json");
  }
  ~Curl() {
    if (handle == nullptr) return;
    curl_easy_cleanup(handle);
    curl_slist_free_all(headers);
  }
  Curl(const Curl&) = delete;
  Curl& operator=(const Curl&) = delete;
  CURL* handle = nullptr;
  curl_slist* headers = nullptr;
};

Result<std::string> CheckTraceUrl(const std::string& url) {
  const bool is_http = url.starts_with("http://"), is_https = url.starts_with("https://");
  const size_t host = is_https ? 8 : 7;
  const bool is_plain = url.find_first_of(" \t\r\n\"<>\\") == std::string::npos;
  if ((!is_http && !is_https) || !is_plain || url.size() <= host || url[host] == '/' ||
      url[host] == ':') {
    return Error(Code::kInvalid,
                 "--trace-endpoint %s: expected the URL of an OTLP/HTTP collector, for example "
                 "http://127.0.0.1:4318",
                 Quoted(MaskSecretValue(url)).c_str());
  }
  const size_t path = url.find('/', host);
  if (path == std::string::npos) return url + "/v1/traces";
  if (path + 1 == url.size()) return url + "v1/traces";
  return url;
}

TraceExporter::TraceExporter(ExporterOptions options)
    : options_(std::move(options)), curl_(std::make_unique<Curl>()), thread_([this] {
        NameThread("traces");
        Run();
      }) {}

TraceExporter::~TraceExporter() {
  {
    const MutexLock lock(mu_);
    is_ending_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void TraceExporter::Offer(std::vector<TraceSpan> spans) {
  bool is_full = false;
  {
    const MutexLock lock(mu_);
    // All of a request or nothing: a trace with holes says what is not so.
    if (queue_.size() + spans.size() > options_.max_queued) {
      counts_.dropped += spans.size();
      return;
    }
    for (TraceSpan& span : spans) queue_.push_back(std::move(span));
    is_full = queue_.size() >= options_.max_batch;
  }
  if (is_full) changed_.NotifyAll();
}

void TraceExporter::CountDropped() {
  const MutexLock lock(mu_);
  ++counts_.dropped;
}

ExportCounts TraceExporter::counts() const {
  const MutexLock lock(mu_);
  return counts_;
}

bool TraceExporter::WaitUntilEmpty(int64_t timeout_ms) {
  const MutexLock lock(mu_);
  is_flushing_ = true;
  changed_.NotifyAll();
  return changed_.WaitFor(mu_, std::chrono::milliseconds(timeout_ms),
                          [this]() HEARTH_REQUIRES(mu_) { return queue_.empty() && !is_sending_; });
}

void TraceExporter::Run() {
  MutexLock lock(mu_);
  while (true) {
    changed_.WaitFor(mu_, std::chrono::milliseconds(options_.every_ms),
                     [this]() HEARTH_REQUIRES(mu_) {
                       return is_ending_ || (is_flushing_ && !queue_.empty()) ||
                              queue_.size() >= options_.max_batch;
                     });
    const bool is_last = is_ending_;
    while (!queue_.empty()) {
      std::vector<TraceSpan> batch;
      while (!queue_.empty() && batch.size() < options_.max_batch) {
        batch.push_back(std::move(queue_.front()));
        queue_.pop_front();
      }
      is_sending_ = true;
      lock.Unlock();
      const bool is_sent = Send(batch);
      lock.Lock();
      is_sending_ = false;
      (is_sent ? counts_.sent : counts_.dropped) += batch.size();
      // A collector that is gone must not hold up the end, batch after batch.
      if (!is_sent && is_last) {
        counts_.dropped += queue_.size();
        queue_.clear();
      }
    }
    changed_.NotifyAll();
    if (is_last) return;
  }
}

// A batch that is not taken is dropped: spans are no reason to fill memory while a collector is
// away.
bool TraceExporter::Send(const std::vector<TraceSpan>& batch) {
  const std::string body = OtlpBody(batch, options_.resource, options_.version);
  CURL* curl = curl_->handle;
  if (curl == nullptr) return false;
  curl_easy_reset(curl);
  curl_easy_setopt(curl, CURLOPT_URL, options_.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, options_.timeout_s);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, curl_->headers);
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, Ignore);
  const CURLcode code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  const bool is_sent = code == CURLE_OK && status >= 200 && status < 300;
  // Once for each time that it goes away: the metric has the rest.
  if (!is_sent && !has_complained_) {
    const std::string why =
        code == CURLE_OK ? Printf("status %ld", status) : std::string(curl_easy_strerror(code));
    PrintError("warning: spans are dropped: %s: %s\n", MaskSecretValue(options_.url).c_str(),
               why.c_str());
  }
  has_complained_ = !is_sent;
  return is_sent;
}

}  // namespace hearth
