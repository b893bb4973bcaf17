// SPDX-License-Identifier: Apache-2.0
// A thread that keeps a connection to one Redis server, and makes a new one when it breaks. Nobody
// waits for it: what cannot be done now fails now.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "kv/tier.h"
#include "tiers/record_seal.h"
#include "tiers/redis_connection.h"
namespace hearth {

struct RedisTask {
  enum class Kind : uint8_t { kGet, kSet, kAsk, kInfo };
  Kind kind = Kind::kGet;
  TransferId id = 0;
  std::vector<TierKey> keys;      // one, but for kAsk and kInfo
  std::vector<std::byte> record;  // kSet
};

struct RedisAnswer {
  RedisTask::Kind kind = RedisTask::Kind::kGet;
  TransferId id = 0;
  std::vector<TierKey> keys;  // of the task
  TierOutcome outcome = TierOutcome::kFailed;
  bool is_corrupt = false;             // something came, and it was not what was stored
  TierBytes record;                    // kGet; of kInfo the text
  std::vector<bool> has;               // kAsk: for each key
  int64_t took_us = 0, num_bytes = 0;  // on the wire, of records
};

struct RedisLinkOptions {
  RedisConnectOptions connect;
  std::shared_ptr<const RecordSeal> seal = nullptr;
  size_t max_waiting = 8192;                      // tasks; more fail at once
  int64_t max_waiting_bytes = int64_t{64} << 20;  // of records to be stored
  int64_t stall_us = 1'000'000;                   // without a byte while something is asked for
  int64_t first_retry_us = 500'000, last_retry_us = 10'000'000;
  // While this says yes, nothing is sent but now and then: somebody waits for what comes the other
  // way, and a slow line has its questions behind what we store. Thread: the link's.
  std::function<bool()> gives_way;
  // One line for whoever runs this, when something changed. Thread: any.
  std::function<void(const std::string&)> say;
};

class RedisLink {
 public:
  // `on_answer` is called once for each task that was pushed, on this link's thread; not after the
  // destructor.
  RedisLink(RedisAddress address, RedisLinkOptions options,
            std::function<void(RedisAnswer)> on_answer);
  ~RedisLink();

  // Thread: any.
  bool is_up() const { return is_up_; }
  const std::string& name() const { return name_; }
  // Something was pushed and not answered.
  bool is_busy() const { return num_unanswered_ > 0; }
  // False: not now, and there will be no answer.
  bool Push(RedisTask task);
  // It need not be asked for any more; its answer may come all the same.
  void Forget(TransferId id);

 private:
  struct Asked {
    RedisAnswer answer;
    size_t num_replies = 0;  // still to come
    int64_t began_us = 0;
  };

  void Run();
  bool Reconnect();
  void OnDown(const Status& status);
  bool GivesWay();
  void SendWaiting();
  void SendTask(RedisTask task);
  void OnReply(RedisReply reply);
  void Take(RedisReply reply, Asked& asked);
  void WaitForWork();
  bool IsStalled();
  void FailAll();
  void Rest(int64_t us);
  void Say(const std::string& text) const;

  const RedisAddress address_;
  const std::string name_;
  const RedisLinkOptions options_;
  const std::function<void(RedisAnswer)> on_answer_;
  const int wake_fd_;
  std::atomic<bool> is_up_{false};
  std::atomic<int> num_unanswered_{0};

  Mutex mu_;
  std::deque<RedisTask> waiting_ HEARTH_GUARDED_BY(mu_);
  int64_t waiting_bytes_ HEARTH_GUARDED_BY(mu_) = 0;
  bool stops_ HEARTH_GUARDED_BY(mu_) = false;

  // The thread's own.
  std::unique_ptr<RedisConnection> connection_;
  std::deque<Asked> asked_;
  Status broken_;
  int64_t retry_us_;
  std::string last_error_;  // said already
  uint64_t num_moved_ = 0;
  int64_t moved_at_us_ = 0;
  int64_t gave_way_at_us_ = 0;  // since when; 0: it does not
  std::thread thread_;
};

// The name under which a server knows a record.
std::string RedisNameOf(const TierKey& key);

}  // namespace hearth
