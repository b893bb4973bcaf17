// SPDX-License-Identifier: Apache-2.0
// A whole server, put together as `hearth serve` does it, over a backend without hardware: the
// product's own HTTP, accounts, service, dialects, store and engine with all their threads.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "http/http_server.h"
#include "scene.h"
#include "server/access/account.h"
#include "server/access/keys.h"
#include "server/observe/metrics.h"
#include "server/turns/response_store.h"
#include "server/turns/turn_service.h"
#include "testing/byte_tokenizer.h"
#include "testing/fake_backend.h"
#include "text/chat_format.h"
namespace hearth::testing {

// What the server said of itself. Thread: any.
class Ledger final : public TurnObserver {
 public:
  struct Entry {
    std::string key;
    int status = 0;
    int count = 0;
  };
  void OnEnd(const TurnOutcome& outcome) override {
    const std::lock_guard lock(mu_);
    Entry& entry = entries_[outcome.request_id];
    entry.key = outcome.key_id;
    entry.status = outcome.status;
    ++entry.count;
  }
  Entry Find(const std::string& id) const {
    const std::lock_guard lock(mu_);
    const auto found = entries_.find(id);
    return found == entries_.end() ? Entry() : found->second;
  }
  // The first thing that is wrong with it; empty: none.
  std::string Check() const;
  int64_t size() const { return static_cast<int64_t>(entries_.size()); }

 private:
  mutable std::mutex mu_;
  std::map<std::string, Entry> entries_;
};

// What the engine told its sinks.
struct SinkCounts {
  std::atomic<int64_t> ended{0}, ended_twice{0}, late{0};
};

// Every token is text, after the messages and a mark. What clients hear is then all that was said.
class SimFormat final : public ChatFormat {
 public:
  explicit SimFormat(const ByteTokenizer& tokenizer);
  Result<std::vector<Token>> Render(const Conversation& conversation,
                                    const RenderOptions& options) const override;
  const std::vector<Token>& stop_tokens() const override { return stops_; }
  std::unique_ptr<ReplyReader> NewReader() const override { return NewPlainReader(tokenizer_); }

 private:
  const ByteTokenizer& tokenizer_;
  std::vector<Token> stops_;
};

// What does not change from seed to seed.
struct SimHouse {
  SimHouse();
  static const SimHouse& Get();
  // The text and the tokens of the reply to the ask's prompt, told by the model alone.
  void Foretell(Ask& ask) const;
  ByteTokenizer tokenizer;
  SimFormat format;
  KeyRing keys;
  std::vector<std::string> secrets;  // of the keys "k0", "k1", ...
  FakeBackend oracle;
};

// Thread: made and destroyed by one.
struct SimServer {
  SimServer(const Scene& scene, const std::string& name);
  ~SimServer();
  // Whether the engine has nothing to do within that time.
  bool GetsQuiet(int64_t bound_us) const;
  // As `hearth serve` ends. The time it took.
  int64_t DrainUs();
  // What the engine has not done yet; empty: nothing.
  std::string Unsettled() const;
  // In the order they must go: HTTP, service, engine. What is wrong with what is left; empty: all
  // is well.
  std::string Dismantle();

  const Scene& scene;
  SimRandom random;
  int64_t num_failed_steps = 0;
  SinkCounts sinks;
  Ledger ledger;
  RateLimiter limiter;
  std::unique_ptr<Accounts> accounts;
  std::unique_ptr<ServerMetrics> metrics;
  std::unique_ptr<TurnObserver> ends;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<ResponseStore> responses;
  std::unique_ptr<TurnService> service;
  std::unique_ptr<HttpServer> http;
  bool is_draining = false;
  bool has_told_all = false;  // every client had its last byte, or had gone
};

}  // namespace hearth::testing
