// SPDX-License-Identifier: Apache-2.0
#include "load/url.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/mask_secrets.h"
#include "base/mutex.h"
#include "late/late.h"

namespace hearth {
namespace {

// Words that nearly every vocabulary has as one token with the blank before it.
constexpr std::array<const char*, 32> kWords = {
    "time",  "year",  "people", "way",    "day",   "man",   "thing", "woman",
    "life",  "child", "world",  "name",   "hand",  "part",  "eye",   "place",
    "work",  "week",  "case",   "point",  "home",  "water", "room",  "money",
    "story", "fact",  "month",  "number", "night", "right", "book",  "house"};

std::string WordsOf(const LoadTurn& turn) {
  if (!turn.text.empty()) return turn.text;
  std::string out;
  for (const Token token : turn.tokens) {
    if (!out.empty()) out += ' ';
    out += kWords[static_cast<size_t>(token) % kWords.size()];
  }
  return out;
}

const char* RoleOf(const LoadTurn& turn) {
  if (turn.kind == LoadTurn::Kind::kPreamble) return "system";
  return turn.kind == LoadTurn::Kind::kAnswer ? "assistant" : "user";
}

std::string EndpointOf(const UrlOptions& options) {
  std::string base = options.url;
  while (base.ends_with('/')) base.pop_back();
  if (!base.ends_with("/v1")) base += "/v1";
  return base + (options.is_chat ? "/chat/completions" : "/completions");
}

}  // namespace

Json UrlBody(const UrlOptions& options, const LoadRequest& request) {
  JsonObject body;
  if (!options.model.empty()) body.emplace_back("model", options.model);
  if (options.is_chat) {
    JsonArray messages;
    for (const LoadTurn& turn : request.turns) {
      messages.emplace_back(JsonObject{{"role", RoleOf(turn)}, {"content", WordsOf(turn)}});
    }
    body.emplace_back("messages", std::move(messages));
  } else if (options.vocab_size > 0) {
    JsonArray ids;
    for (const Token token : request.prompt) ids.emplace_back(static_cast<int64_t>(token));
    body.emplace_back("prompt", std::move(ids));
  } else {
    std::string words;
    for (const LoadTurn& turn : request.turns) words += (words.empty() ? "" : "\n") + WordsOf(turn);
    body.emplace_back("prompt", std::move(words));
  }
  body.emplace_back("max_tokens", request.max_tokens);
  body.emplace_back("temperature", 1.0);
  body.emplace_back("seed", static_cast<int64_t>(request.seed >> 33));  // fits in 31 bits
  body.emplace_back("stream", true);
  body.emplace_back("stream_options", JsonObject{{"include_usage", true}});
  if (options.ignores_end) body.emplace_back("ignore_eos", true);
  return body;
}

std::vector<std::string> EventLines::Feed(std::string_view bytes) {
  std::vector<std::string> out;
  rest_ += bytes;
  size_t start = 0;
  for (size_t end; (end = rest_.find('\n', start)) != std::string::npos; start = end + 1) {
    std::string_view line = std::string_view(rest_).substr(start, end - start);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.starts_with("data:")) continue;
    line.remove_prefix(5);
    while (line.starts_with(' ')) line.remove_prefix(1);
    out.emplace_back(line);
  }
  rest_.erase(0, start);
  return out;
}

UrlEvent ReadUrlEvent(std::string_view text) {
  UrlEvent event;
  if (text == "[DONE]") return event;
  Result<Json> json = ParseJson(text);
  if (!json.ok()) {
    event.problem = "an event that is not JSON: " + json.status().message();
    return event;
  }
  const auto member = [](const Json* in, const char* name) {
    return in ? in->Find(name) : nullptr;
  };
  const auto number = [&](const Json* in, const char* name) {
    const Json* found = member(in, name);
    return found ? static_cast<int>(found->integer().value_or(-1)) : -1;
  };
  if (const Json* error = json->Find("error"); error && !error->is_null()) {
    event.problem = WriteJson(*error);
  }
  const Json* choices = json->Find("choices");
  if (choices && choices->array() && !choices->array()->empty()) {
    const Json* choice = &choices->array()->front();
    const Json* delta = member(choice, "delta");
    for (const Json* said : {member(choice, "text"), member(delta, "content"),
                             member(delta, "reasoning_content"), member(delta, "reasoning")}) {
      if (said && said->string()) event.text += *said->string();
    }
  }
  const Json* usage = json->Find("usage");
  event.num_prompt = number(usage, "prompt_tokens");
  event.num_generated = number(usage, "completion_tokens");
  event.num_cached = number(member(usage, "prompt_tokens_details"), "cached_tokens");
  return event;
}

namespace {

// One request on its way. Thread: the carrier's once it is handed over.
class Transfer {
 public:
  Transfer(const std::string& url, const std::string& key, std::string body,
           std::shared_ptr<LoadStream> stream)
      : body_(std::move(body)), stream_(std::move(stream)), easy_(curl_easy_init()) {
    // Without "Expect" a body is sent at once instead of after a question.
    for (const char* line :
         {"Content-Type: application/json", "Accept: text/event-stream", "Expect:"}) {
      headers_ = curl_slist_append(headers_, line);
    }
    if (!key.empty()) {
      headers_ = curl_slist_append(headers_, ("Authorization: Bearer " + key).c_str());
    }
    curl_easy_setopt(easy_, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_);
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_.size()));
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, body_.c_str());
    curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT, 10L);
    curl_easy_setopt(easy_, CURLOPT_PRIVATE, static_cast<void*>(this));
    curl_easy_setopt(easy_, CURLOPT_WRITEDATA, static_cast<void*>(this));
    curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &Transfer::OnBytes);
  }
  ~Transfer() {
    curl_easy_cleanup(easy_);
    curl_slist_free_all(headers_);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  CURL* easy() { return easy_; }
  const LoadStream* stream() const { return stream_.get(); }

  void End(CURLcode code) {
    if (end_.problem.empty() && code != CURLE_OK) end_.problem = curl_easy_strerror(code);
    if (HttpStatus() != 200 && code == CURLE_OK) {
      end_.problem = "HTTP " + std::to_string(HttpStatus()) + ": " + refusal_;
    }
    stream_->End(std::move(end_));
  }
  void Cancel() {
    end_.problem = "cancelled";
    stream_->End(std::move(end_));
  }

 private:
  long HttpStatus() const {
    long status = 0;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    return status;
  }
  static size_t OnBytes(char* data, size_t, size_t size, void* transfer) {
    static_cast<Transfer*>(transfer)->Hear(std::string_view(data, size));
    return size;
  }
  void Hear(std::string_view bytes) {
    constexpr size_t kShown = 400;
    if (HttpStatus() != 200) {
      refusal_ += bytes.substr(0, kShown - std::min(kShown, refusal_.size()));
      return;
    }
    for (const std::string& line : lines_.Feed(bytes)) {
      const UrlEvent event = ReadUrlEvent(line);
      if (!event.text.empty()) stream_->Hear(0, event.text);
      if (event.num_prompt >= 0) end_.num_prompt = event.num_prompt;
      if (event.num_generated >= 0) end_.num_generated = event.num_generated;
      if (event.num_cached >= 0) end_.num_cached = event.num_cached;
      if (!event.problem.empty()) end_.problem = event.problem;
    }
  }

  const std::string body_;
  const std::shared_ptr<LoadStream> stream_;
  CURL* const easy_;
  curl_slist* headers_ = nullptr;
  EventLines lines_;
  LoadEnd end_;
  std::string refusal_;
};

class UrlTarget : public LoadTarget {
 public:
  explicit UrlTarget(UrlOptions options)
      : options_(std::move(options)), multi_(curl_multi_init()), carrier_([this] { Carry(); }) {}
  ~UrlTarget() override {
    {
      const MutexLock lock(mutex_);
      stops_ = true;
    }
    curl_multi_wakeup(multi_);
    carrier_.join();
    curl_multi_cleanup(multi_);
  }
  UrlTarget(const UrlTarget&) = delete;
  UrlTarget& operator=(const UrlTarget&) = delete;

  Status Send(LoadRequest request, std::shared_ptr<LoadStream> stream) override {
    auto transfer = std::make_unique<Transfer>(EndpointOf(options_), options_.key,
                                               WriteJson(UrlBody(options_, request)), stream);
    {
      const MutexLock lock(mutex_);
      arrived_.push_back(std::move(transfer));
    }
    curl_multi_wakeup(multi_);
    return Status();
  }
  void Cancel(const LoadStream& stream) override {
    {
      const MutexLock lock(mutex_);
      cancelled_.push_back(&stream);
    }
    curl_multi_wakeup(multi_);
  }
  // Words are chosen by number, too.
  int vocab_size() const override {
    return options_.vocab_size > 0 ? options_.vocab_size : 1 << 16;
  }

 private:
  void Carry() {
    while (TakeMessage()) {
      int running = 0, left = 0;
      curl_multi_perform(multi_, &running);
      while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
        if (message->msg == CURLMSG_DONE) Finish(message->easy_handle, message->data.result);
      }
      curl_multi_poll(multi_, nullptr, 0, 1000, nullptr);
    }
    while (!transfers_.empty()) {
      transfers_.begin()->second->Cancel();
      Drop(transfers_.begin()->first);
    }
  }
  // False when it is time to go.
  bool TakeMessage() {
    std::vector<std::unique_ptr<Transfer>> arrived;
    std::vector<const LoadStream*> cancelled;
    {
      const MutexLock lock(mutex_);
      if (stops_) return false;
      arrived.swap(arrived_);
      cancelled.swap(cancelled_);
    }
    for (auto& transfer : arrived) {
      CURL* easy = transfer->easy();
      transfers_[easy] = std::move(transfer);
      curl_multi_add_handle(multi_, easy);
    }
    for (const LoadStream* stream : cancelled) {
      for (auto& [easy, transfer] : transfers_) {
        if (transfer->stream() != stream) continue;
        transfer->Cancel();
        Drop(easy);
        break;
      }
    }
    return true;
  }
  void Finish(CURL* easy, CURLcode code) {
    transfers_.at(easy)->End(code);
    Drop(easy);
  }
  void Drop(CURL* easy) {
    curl_multi_remove_handle(multi_, easy);
    transfers_.erase(easy);
  }

  const UrlOptions options_;
  CURLM* const multi_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Transfer>> arrived_ HEARTH_GUARDED_BY(mutex_);
  std::vector<const LoadStream*> cancelled_ HEARTH_GUARDED_BY(mutex_);
  bool stops_ HEARTH_GUARDED_BY(mutex_) = false;
  std::unordered_map<CURL*, std::unique_ptr<Transfer>> transfers_;  // the carrier's
  std::thread carrier_;
};

}  // namespace

Result<std::unique_ptr<LoadTarget>> MakeUrlTarget(const UrlOptions& options) {
  if (!options.url.starts_with("http://") && !options.url.starts_with("https://")) {
    return Error(Code::kInvalid, "--url %s: expected a URL that starts with http:// or https://",
                 Quoted(MaskSecretValue(options.url)).c_str());
  }
  if (options.is_chat && options.vocab_size > 0) {
    return Error(Code::kInvalid, "token ids need --api completions, not chat");
  }
  HEARTH_TRY(LoadCurl());
  return std::unique_ptr<LoadTarget>(std::make_unique<UrlTarget>(options));
}

}  // namespace hearth
