// SPDX-License-Identifier: Apache-2.0
#include "server/turns/background.h"

#include <algorithm>
#include <new>
#include <utility>

#include "server/turns/send.h"
#include "server/turns/within_memory.h"

namespace hearth {
namespace {

// For who repeats a request that was not let in: a client of its own hears why.
void Refuse(HttpReply& listener) {
  ApiError error = FromStatus(Status(
      Code::kExhausted, "the request that this one repeats was not admitted; try again later"));
  error.retry_after_s = 1;
  SendError(listener, error, WriteJson(OpenAiError(error)), "");
}

}  // namespace

// What an exchange takes for its client. Nobody leaves it, and it is never behind.
class BackgroundReply final : public HttpReply {
 public:
  BackgroundReply(std::shared_ptr<BackgroundResponses> house,
                  std::shared_ptr<BackgroundResponse> response, std::string id, bool streams,
                  std::shared_ptr<HttpReply> client, int64_t starting_after)
      : house_(std::move(house)),
        response_(std::move(response)),
        id_(std::move(id)),
        streams_(streams),
        client_(std::move(client)),
        starting_after_(starting_after) {}
  // The engine did not let it in: the client hears so from others, whoever joined it from here.
  ~BackgroundReply() override {
    if (has_begun_) return;
    house_->Forget(id_);
    response_->End(false);
  }
  BackgroundReply(const BackgroundReply&) = delete;
  BackgroundReply& operator=(const BackgroundReply&) = delete;

  void StartStream(int status, Headers headers) override {
    has_begun_ = true;
    const std::shared_ptr<HttpReply> client = std::move(client_);
    if (streams_) {
      client->StartStream(status, std::move(headers));
      response_->Follow(client, starting_after_);
      return;
    }
    Headers plain{{"content-type", "application/json"}};
    for (HttpHeader& header : headers) {
      if (header.name == "x-request-id") plain.push_back(std::move(header));
    }
    client->Send(status, std::move(plain), WriteJson(response_->snapshot()));
  }
  // Events come through Watch; what else is written are comments.
  void Write(std::string bytes) override {
    if (bytes.find("event: ") == std::string::npos) response_->Ping(bytes);
  }
  void Send(int, Headers, std::string) override { End(); }
  void End() override { Finish(true); }
  // Who follows must not take what there is for the whole.
  void Abort() override { Finish(false); }
  size_t unsent_bytes() const override { return 0; }
  // A server that goes waits for those who listen, though nothing here waits for them.
  size_t unheard_bytes() const override { return response_->unheard_bytes(); }
  // Whoever cancelled it between two that could be told has not been heard.
  void OnGone(std::function<void()> gone) override {
    {
      const MutexLock lock(response_->mu_);
      response_->cancel_ = gone;
      if (response_->waiting_.empty() || response_->is_over_) return;
    }
    gone();
  }

 private:
  void Finish(bool is_whole) {
    response_->End(is_whole);
    house_->OnEnd(id_);
  }
  const std::shared_ptr<BackgroundResponses> house_;
  const std::shared_ptr<BackgroundResponse> response_;
  const std::string id_;
  const bool streams_;
  std::shared_ptr<HttpReply> client_;
  const int64_t starting_after_;  // what the client has of the events
  bool has_begun_ = false;
};

void BackgroundResponse::Watch(const Json& event, const std::string& bytes) {
  const MutexLock lock(mu_);
  const Json* response = event.Find("response");
  if (response != nullptr) response_ = *response;
  const Json* const now = &response_;
  for (const auto& listener : std::exchange(early_, {})) {
    WithinMemoryOr([&] { SendJson(*listener, *now); }, [&] { listener->Abort(); });
  }
  const Json* item = event.Find("item");
  if (item != nullptr && *event.Find("type") == Json("response.output_item.done")) {
    for (auto& [name, value] : *response_.object()) {
      if (name == "output") value.array()->push_back(*item);
    }
  }
  ++num_events_;
  event_bytes_ += bytes.size();
  if (event_bytes_ <= max_event_bytes_) {
    events_.push_back({*event.Find("sequence_number")->integer(), bytes});
  }
  for (const auto& follower : followers_) follower->Write(bytes);
}

Json BackgroundResponse::snapshot() const {
  const MutexLock lock(mu_);
  return response_;
}

bool BackgroundResponse::is_over() const {
  const MutexLock lock(mu_);
  return is_over_;
}

bool BackgroundResponse::has_events() const {
  const MutexLock lock(mu_);
  return event_bytes_ <= max_event_bytes_;
}

int BackgroundResponse::num_events() const {
  const MutexLock lock(mu_);
  return num_events_;
}

void BackgroundResponse::Follow(const std::shared_ptr<HttpReply>& listener,
                                int64_t starting_after) {
  const MutexLock lock(mu_);
  for (const Event& event : events_) {
    if (event.number > starting_after) listener->Write(event.bytes);
  }
  if (is_over_) {
    listener->End();
    NoteTold(listener);
  } else {
    followers_.push_back(listener);
  }
}

void BackgroundResponse::Answer(const std::shared_ptr<HttpReply>& listener) {
  const MutexLock lock(mu_);
  if (num_events_ > 0) {
    SendJson(*listener, response_);
  } else if (is_over_) {
    Refuse(*listener);
  } else {
    early_.push_back(listener);
  }
}

void BackgroundResponse::Cancel(const std::shared_ptr<HttpReply>& listener) {
  std::function<void()> cancel;
  {
    const MutexLock lock(mu_);
    if (!is_over_) {
      waiting_.push_back(listener);
      cancel = cancel_;
    } else {
      listener->Send(200, {{"content-type", "application/json"}}, WriteJson(response_));
      NoteTold(listener);
    }
  }
  if (cancel) cancel();
}

void BackgroundResponse::Ping(const std::string& bytes) {
  const MutexLock lock(mu_);
  for (const auto& follower : followers_) follower->Write(bytes);
}

void BackgroundResponse::End(bool is_whole) {
  const MutexLock lock(mu_);
  if (std::exchange(is_over_, true)) return;
  // Each for itself: one for whom there is no memory is cut, and the others are told.
  for (const auto& follower : followers_) {
    bool is_told = false;
    try {
      if (is_whole) NoteTold(follower);
      if (is_whole) follower->End();
      is_told = is_whole;
    } catch (const std::bad_alloc&) {
    }
    if (!is_told) follower->Abort();
  }
  for (const auto& listener : waiting_) {
    bool is_told = false;
    try {
      if (is_whole) NoteTold(listener);
      if (is_whole)
        listener->Send(200, {{"content-type", "application/json"}}, WriteJson(response_));
      is_told = is_whole;
    } catch (const std::bad_alloc&) {
    }
    if (!is_told) listener->Abort();
  }
  for (const auto& listener : std::exchange(early_, {})) {
    WithinMemoryOr([&] { Refuse(*listener); }, [&] { listener->Abort(); });
  }
  followers_.clear();
  waiting_.clear();
}

// Many may ask for one response, one after the other.
void BackgroundResponse::NoteTold(const std::shared_ptr<HttpReply>& listener) {
  std::erase_if(told_, [](const auto& each) { return each->is_gone(); });
  told_.push_back(listener);
}

size_t BackgroundResponse::unheard_bytes() const {
  const MutexLock lock(mu_);
  size_t bytes = followers_.size() + waiting_.size();  // whose end is still to be written
  for (const auto& each : told_) bytes += each->is_gone() ? 0 : each->unsent_bytes();
  return bytes;
}

bool BackgroundResponses::HasRoom(const std::string& tenant) const {
  const size_t running = all_.size() - finished_.size();
  size_t own = 0;
  for (const auto& [id, response] : all_) {
    own += response->tenant() == tenant && !response->is_over() ? 1 : 0;
  }
  if (own == 0) return running < 2 * limits_.max_running;
  const size_t most = tenant.empty() ? limits_.max_running : (limits_.max_running + 1) / 2;
  return running < limits_.max_running && own < most;
}

ApiResult<std::shared_ptr<HttpReply>> BackgroundResponses::Open(const std::string& tenant,
                                                                const std::string& id, bool streams,
                                                                std::shared_ptr<HttpReply> client,
                                                                int64_t starting_after) {
  const MutexLock lock(mu_);
  if (!HasRoom(tenant)) {
    ApiError error =
        FromStatus(Status(Code::kExhausted,
                          "too many responses are already running in the background; try again "
                          "later"));
    error.retry_after_s = 5;
    return error;
  }
  auto response = std::make_shared<BackgroundResponse>(tenant, limits_.max_event_bytes);
  all_[id] = response;
  std::erase(finished_, id);  // one that runs again
  return std::shared_ptr<HttpReply>(std::make_shared<BackgroundReply>(
      shared_from_this(), std::move(response), id, streams, std::move(client), starting_after));
}

std::shared_ptr<BackgroundResponse> BackgroundResponses::Find(const std::string& tenant,
                                                              const std::string& id) const {
  const MutexLock lock(mu_);
  const auto found = all_.find(id);
  if (found == all_.end() || found->second->tenant() != tenant) return nullptr;
  return found->second;
}

void BackgroundResponses::Forget(const std::string& id) {
  const MutexLock lock(mu_);
  all_.erase(id);
  std::erase(finished_, id);
}

// Whoever was told the end may have had it deleted already.
void BackgroundResponses::OnEnd(const std::string& id) {
  const MutexLock lock(mu_);
  if (!all_.contains(id) || std::ranges::find(finished_, id) != finished_.end()) return;
  finished_.push_back(id);
  while (finished_.size() > limits_.max_finished) {
    // The oldest of whoever has most of them.
    std::map<std::string, int> kept;
    for (const std::string& one : finished_) ++kept[all_.at(one)->tenant()];
    const auto most = std::max_element(
        kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto oldest = std::find_if(finished_.begin(), finished_.end(),
                                     [&](const std::string& one) HEARTH_REQUIRES(mu_) {
                                       return all_.at(one)->tenant() == most->first;
                                     });
    all_.erase(*oldest);
    finished_.erase(oldest);
  }
}

}  // namespace hearth
