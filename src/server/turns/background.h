// SPDX-License-Identifier: Apache-2.0
// Responses that go on without their client: what has been told so far, who listens now, and how to
// end one early. Those that are over are in the ResponseStore; here the events of a few are kept
// longer, for clients that come back to a stream.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mutex.h"
#include "http/message.h"
#include "server/turns/api_error.h"
namespace hearth {

struct BackgroundLimits {
  // Of one key at most half, unless there are no keys. A key that has none running gets one even
  // when the others have them all, up to twice as many.
  size_t max_running = 64;
  size_t max_finished = 16;                  // whose events are kept
  size_t max_event_bytes = size_t{2} << 20;  // of one response; beyond, no stream of it resumes
};

// One of them. Thread: any.
class BackgroundResponse {
 public:
  BackgroundResponse(std::string tenant, size_t max_event_bytes)
      : tenant_(std::move(tenant)), max_event_bytes_(max_event_bytes) {}
  const std::string& tenant() const { return tenant_; }
  // For ResponsesWriter: every event, in order.
  void Watch(const Json& event, const std::string& bytes);
  // As it stands: of items only those that are whole.
  Json snapshot() const;
  bool is_over() const;
  bool has_events() const;
  int num_events() const;  // that were told, kept or not
  // Events after that number, then what follows, until its end. To a listener whose stream has
  // begun.
  void Follow(const std::shared_ptr<HttpReply>& listener, int64_t starting_after);
  // `listener` is answered with it as it stands, once the engine has let it in; with an error if
  // that does not happen.
  void Answer(const std::shared_ptr<HttpReply>& listener);
  // Ends it soon; `listener` is answered with what it came to.
  void Cancel(const std::shared_ptr<HttpReply>& listener);

 private:
  void NoteTold(const std::shared_ptr<HttpReply>& listener) HEARTH_REQUIRES(mu_);
  friend class BackgroundReply;
  struct Event {
    int64_t number;
    std::string bytes;
  };
  void Ping(const std::string& bytes);
  void End(bool is_whole);  // or its listeners are cut
  size_t unheard_bytes() const;

  const std::string tenant_;
  const size_t max_event_bytes_;
  mutable Mutex mu_;
  Json response_ HEARTH_GUARDED_BY(mu_);
  int num_events_ HEARTH_GUARDED_BY(mu_) = 0;
  std::vector<Event> events_ HEARTH_GUARDED_BY(mu_);
  size_t event_bytes_ HEARTH_GUARDED_BY(mu_) = 0;
  bool is_over_ HEARTH_GUARDED_BY(mu_) = false;
  std::function<void()> cancel_ HEARTH_GUARDED_BY(mu_);
  std::vector<std::shared_ptr<HttpReply>> followers_ HEARTH_GUARDED_BY(mu_);
  std::vector<std::shared_ptr<HttpReply>> waiting_ HEARTH_GUARDED_BY(mu_);
  std::vector<std::shared_ptr<HttpReply>> early_ HEARTH_GUARDED_BY(mu_);  // before its first event
  // Those who were told the end, and may not have taken it yet. Held: what handlers share of a
  // reply goes with the last of them, while its connection still writes.
  std::vector<std::shared_ptr<HttpReply>> told_ HEARTH_GUARDED_BY(mu_);
};

// Thread: any. Replies that it hands out keep it alive.
class BackgroundResponses : public std::enable_shared_from_this<BackgroundResponses> {
 public:
  explicit BackgroundResponses(const BackgroundLimits& limits = {}) : limits_(limits) {}
  // A new one, and where its exchange writes. `client` gets the stream, or at once the object as it
  // is when the engine has let it in. An error when too many run.
  ApiResult<std::shared_ptr<HttpReply>> Open(const std::string& tenant, const std::string& id,
                                             bool streams, std::shared_ptr<HttpReply> client,
                                             int64_t starting_after = -1);
  // Nothing when it is unknown, forgotten, or another tenant's.
  std::shared_ptr<BackgroundResponse> Find(const std::string& tenant, const std::string& id) const;
  void Forget(const std::string& id);

 private:
  friend class BackgroundReply;
  void OnEnd(const std::string& id);
  bool HasRoom(const std::string& tenant) const HEARTH_REQUIRES(mu_);

  const BackgroundLimits limits_;
  mutable Mutex mu_;
  std::map<std::string, std::shared_ptr<BackgroundResponse>> all_ HEARTH_GUARDED_BY(mu_);
  std::deque<std::string> finished_ HEARTH_GUARDED_BY(mu_);  // the oldest first
};

}  // namespace hearth
