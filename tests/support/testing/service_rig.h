// SPDX-License-Identifier: Apache-2.0
// Requests through the whole house but the sockets: a real engine on a backend of hashes, harmony
// over bytes, masks, and a client made of strings.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/all_dialects.h"
#include "server/model_routes.h"
#include "server/turns/turn_service.h"
#include "testing/byte_tokenizer.h"
#include "testing/fake_backend.h"
#include "text/harmony.h"
namespace hearth::testing {

// What a client would have got. Goes away when told to.
class StringClient : public HttpReply {
 public:
  void Send(int status, Headers headers, std::string body) override {
    const std::lock_guard lock(mu_);
    status_ = status;
    headers_ = std::move(headers);
    bytes_ = std::move(body);
    End(lock);
  }
  void StartStream(int status, Headers headers) override {
    const std::lock_guard lock(mu_);
    status_ = status;
    headers_ = std::move(headers);
  }
  void Write(std::string bytes) override {
    const std::lock_guard lock(mu_);
    bytes_ += bytes;
    changed_.notify_all();
  }
  void End() override { End(std::lock_guard(mu_)); }
  void Abort() override { End(); }
  size_t unsent_bytes() const override { return 0; }
  void OnGone(std::function<void()> gone) override {
    const std::lock_guard lock(mu_);
    on_gone_ = std::move(gone);
  }

  void Leave() {
    std::function<void()> gone;
    {
      const std::lock_guard lock(mu_);
      gone = std::exchange(on_gone_, nullptr);
    }
    if (gone) gone();
  }
  // Has left before anybody asked to be told.
  void Vanish() { is_gone_ = true; }
  bool is_gone() const override { return is_gone_; }
  bool is_ended() const {
    const std::lock_guard lock(mu_);
    return ended_;
  }
  bool WaitFor(const std::string& text) {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, std::chrono::seconds(20),
                             [&] { return bytes_.find(text) != std::string::npos; });
  }
  bool WaitForEnd() {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return ended_; });
  }
  int status() const { return status_; }
  const std::string& bytes() const { return bytes_; }
  std::string header(std::string_view name) const {
    for (const HttpHeader& header : headers_) {
      if (header.name == name) return header.value;
    }
    return "";
  }

 private:
  void End(const std::lock_guard<std::mutex>&) {
    ended_ = true;
    changed_.notify_all();
  }
  mutable std::mutex mu_;
  std::condition_variable changed_;
  std::string bytes_;
  Headers headers_;
  int status_ = 0;
  bool ended_ = false;
  std::atomic<bool> is_gone_{false};
  std::function<void()> on_gone_;
};

// A service over an engine, and the OpenAI routes before it.
class ServiceRig : public ::testing::Test {
 protected:
  void Start(int step_us = 0, ServiceOptions options = {}, EngineOptions engine_options = {}) {
    FakeOptions fake;
    fake.vocab_size = tokenizer_.vocab_size();
    fake.full_blocks = fake.window_blocks = 400;
    fake.before_run = [step_us](const StepPlan&) {
      std::this_thread::sleep_for(std::chrono::microseconds(step_us));
      return Status();
    };
    engine_options.scheduler.max_context = 4096;
    engine_ = std::make_unique<Engine>(std::make_unique<FakeBackend>(fake), engine_options);
    format_ = *MakeHarmonyFormat(tokenizer_);
    masks_ = *ReplyMasks::Make(tokenizer_, format_->stop_tokens(), {});
    ServedModel model;
    model.name = "bytes";
    model.tokenizer = &tokenizer_;
    model.format = format_.get();
    model.masks = masks_.get();
    model.max_context = 4096;
    model.version = "1.2.3";
    model.facts.family = "hash";
    model.facts.num_parameters = 134'515'008;
    model.facts.can_call_tools = model.facts.can_think = true;
    if (adjust_) adjust_(model);
    service_ = std::make_unique<TurnService>(*engine_, model, options);
    AddModelRoutes(*service_, router_);
    for (const auto& dialect : AllDialects(*responses_)) service_->AddRoutes(router_, dialect);
  }

  std::shared_ptr<StringClient> Post(const std::string& path, std::string body,
                                     const std::string& key = "",
                                     std::vector<HttpHeader> headers = {}) {
    auto client = std::make_shared<StringClient>();
    HttpRequest request;
    request.headers = std::move(headers);
    request.method = "POST";
    request.path = path;
    request.body = std::move(body);
    request.key_id = key;
    std::get<Router::Match>(router_.Find("POST", path)).route->handler(std::move(request), client);
    return client;
  }
  std::shared_ptr<StringClient> Get(const std::string& path) {
    auto client = std::make_shared<StringClient>();
    HttpRequest request;
    request.method = "GET";
    request.path = path;
    std::get<Router::Match>(router_.Find("GET", path)).route->handler(std::move(request), client);
    return client;
  }
  std::shared_ptr<StringClient> Chat(const std::string& members, const std::string& key = "") {
    return Post("/v1/chat/completions",
                R"({"messages": [{"role": "user", "content": "hi"}], )" + members + "}", key);
  }
  // Until the engine has let `count` requests in since it started.
  bool WaitUntilAdmitted(int64_t count) {
    for (int i = 0; i < 4000; ++i) {
      if (static_cast<int64_t>(engine_->snapshot()->num_admitted) >= count) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  bool WaitUntilIdle() {
    for (int i = 0; i < 4000; ++i) {
      const auto snapshot = engine_->snapshot();
      bool is_held = false;
      for (const KvGroupState& group : snapshot->kv) is_held = is_held || group.counts.held > 0;
      if (snapshot->rows.empty() && !is_held && snapshot->num_admitted > 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  std::function<void(ServedModel&)> adjust_;  // before Start: changes what is served
  const ByteTokenizer tokenizer_;
  std::unique_ptr<ChatFormat> format_;
  std::unique_ptr<ReplyMasks> masks_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<ResponseStore> responses_ = *ResponseStore::Open("");
  std::unique_ptr<TurnService> service_;
  Router router_;
};

// Keeps what became of every request.
class Heard : public TurnObserver {
 public:
  void OnEnd(const TurnOutcome& outcome) override {
    const std::lock_guard lock(mu);
    outcomes.push_back(outcome);
  }
  std::mutex mu;
  std::vector<TurnOutcome> outcomes;
};

}  // namespace hearth::testing
