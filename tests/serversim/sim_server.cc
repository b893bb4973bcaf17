// SPDX-License-Identifier: Apache-2.0
#include "sim_server.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "server/access/guard.h"
#include "server/all_dialects.h"
#include "server/api_router.h"

namespace hearth::testing {
namespace {

// Counts what passes. Whatever comes after the end is wrong.
class CountingSink final : public EventSink {
 public:
  CountingSink(std::shared_ptr<EventSink> next, SinkCounts& counts)
      : next_(std::move(next)), counts_(counts) {}
  int Room() const override { return next_->Room(); }
  void OnToken(const TokenEvent& event) override {
    if (is_ended_) ++counts_.late;
    next_->OnToken(event);
  }
  void OnPromptLogprobs(int first, std::span<const Logprobs> logprobs) override {
    next_->OnPromptLogprobs(first, logprobs);
  }
  void OnEmbedding(std::span<const float> embedding) override { next_->OnEmbedding(embedding); }
  void OnFinish(const RequestRecord& record) override {
    if (is_ended_) ++counts_.ended_twice;
    is_ended_ = true;
    ++counts_.ended;
    next_->OnFinish(record);
  }

 private:
  const std::shared_ptr<EventSink> next_;
  SinkCounts& counts_;
  bool is_ended_ = false;
};

FakeOptions OracleOptions(const ByteTokenizer& tokenizer) {
  FakeOptions options;
  options.vocab_size = tokenizer.vocab_size();
  return options;
}

// A name in no folder, so that nothing is left of it.
int Listener(const std::string& name) {
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  HEARTH_CHECK(::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
  HEARTH_CHECK(::listen(listener, 64) == 0);
  return listener;
}

std::unique_ptr<Engine> MakeEngine(SimServer& server) {
  const Scene& scene = server.scene;
  FakeOptions fake;
  fake.vocab_size = SimHouse::Get().tokenizer.vocab_size();
  fake.full_blocks = fake.window_blocks = scene.full_blocks;
  fake.before_run = [&server](const StepPlan& plan) {
    const Scene& s = server.scene;
    std::this_thread::sleep_for(std::chrono::microseconds(
        s.step_us + s.token_us * static_cast<int64_t>(plan.tokens.size())));
    if (!server.random.Chance(s.fail_share)) return Status();
    ++server.num_failed_steps;
    return Status(Code::kIo, "the step was told to fail");
  };
  EngineOptions options;
  options.scheduler.max_context = 2048;
  options.scheduler.max_sequences = scene.max_sequences;
  options.scheduler.max_step_tokens = scene.max_step_tokens;
  options.admission.max_requests = scene.max_queued;
  return std::make_unique<Engine>(std::make_unique<FakeBackend>(fake), options);
}

ServedModel Model() {
  const SimHouse& house = SimHouse::Get();
  ServedModel model;
  model.name = "bytes";
  model.tokenizer = &house.tokenizer;
  model.format = &house.format;
  model.max_context = 2048;
  model.version = "1";
  return model;
}

std::string DescribeRefusal(const Dialects& dialects, const HttpRefusal& refusal) {
  ApiError error;
  error.status = refusal.status;
  error.message = refusal.message;
  return DescribeErrorAt(dialects, refusal.path, error);
}

}  // namespace

std::string Ledger::Check() const {
  const std::lock_guard lock(mu_);
  for (const auto& [id, entry] : entries_) {
    if (entry.count != 1) return Printf("a request was counted %d times", entry.count);
  }
  return {};
}

SimFormat::SimFormat(const ByteTokenizer& tokenizer)
    : tokenizer_(tokenizer), stops_{*tokenizer.Special("<|return|>")} {}

Result<std::vector<Token>> SimFormat::Render(const Conversation& conversation,
                                             const RenderOptions&) const {
  std::vector<Token> tokens;
  for (const Message& message : conversation.messages) {
    tokenizer_.Encode(message.content, tokens);
    tokens.push_back(*tokenizer_.Special("<|end|>"));
  }
  tokens.push_back(*tokenizer_.Special("<|start|>"));
  return tokens;
}

SimHouse::SimHouse() : format(tokenizer), oracle(OracleOptions(tokenizer)) {
  std::string entries;
  for (int i = 0; i < kNumKeys; ++i) {
    Result<KeyRing::Fresh> fresh = KeyRing::Make(Printf("k%d", i), false);
    secrets.push_back(fresh->key);
    entries += (i == 0 ? "" : ", ") + fresh->entry;
  }
  keys = *KeyRing::Parse("{\"keys\": [" + entries + "]}");
}

const SimHouse& SimHouse::Get() {
  static const SimHouse house;
  return house;
}

void SimHouse::Foretell(Ask& ask) const {
  if (ask.what != Ask::What::kTurn || ask.is_endless) return;
  std::vector<Token> tokens;
  if (ask.tongue == Tongue::kCompletions) {
    tokenizer.Encode(ask.prompt, tokens);
  } else {
    Conversation conversation;
    conversation.messages.push_back({});
    conversation.messages.back().content = ask.prompt;
    tokens = *format.Render(conversation, {});
  }
  Turn turn(NewPlainReader(tokenizer), *StopStrings::Make({}), tokenizer);
  std::vector<Delta> deltas;
  for (int i = 0; i < ask.max_tokens; ++i) {
    const std::vector<float> row = oracle.LogitsAfter(tokens);
    const auto best = std::max_element(row.begin(), row.end()) - row.begin();
    tokens.push_back(static_cast<Token>(best));
    turn.Feed(tokens.back(), nullptr, deltas);
    if (tokens.back() == format.stop_tokens().front()) break;
  }
  turn.Finish(deltas);
  for (const Delta& delta : deltas) ask.expected += delta.text;
  ask.expected_tokens = turn.num_tokens();
}

SimServer::SimServer(const Scene& s, const std::string& name) : scene(s), random(s.os.seed ^ 77) {
  accounts = std::make_unique<Accounts>(scene.budget_bytes);
  metrics = std::make_unique<ServerMetrics>(MetricFacts{"1", "sim", "sim", "bytes", 2048});
  ends = metrics->CountEnds(&ledger);
  engine = MakeEngine(*this);
  responses = *ResponseStore::Open("");
  ServiceOptions options;
  options.max_unread = scene.max_unread;
  options.observer = ends.get();
  options.limiter = &limiter;
  options.limits_of = [this](const std::string&) { return scene.limits; };
  options.watch = [this](std::shared_ptr<EventSink> sink) -> std::shared_ptr<EventSink> {
    return std::make_shared<CountingSink>(std::move(sink), sinks);
  };
  service = std::make_unique<TurnService>(*engine, Model(), options);
  const Dialects dialects = AllDialects(*responses);
  Router router = ApiRouter({*engine, *metrics, *service, dialects});
  HttpOptions http_options;
  http_options.listener = Listener(name);
  http_options.unix_path = name;
  http_options.num_threads = scene.num_lanes;
  http_options.max_unsent_bytes = scene.max_unsent_bytes;
  http_options.budget = accounts.get();
  http_options.authorize = [](HttpRequest& request, Auth auth) {
    GuardPolicy policy;
    policy.needs_key = true;
    return Guard(request, auth, policy, &SimHouse::Get().keys);
  };
  http_options.describe_refusal = [dialects](const HttpRefusal& refusal) {
    return DescribeRefusal(dialects, refusal);
  };
  http = *HttpServer::Listen(std::move(http_options), std::move(router));
}

SimServer::~SimServer() = default;

bool SimServer::GetsQuiet(int64_t bound_us) const {
  const int64_t end_us = SimOs::Get().now_us() + bound_us;
  while (true) {
    const SchedulerLoad load = engine->snapshot()->load;
    if (load.num_running + load.num_waiting == 0) return true;
    if (SimOs::Get().now_us() >= end_us) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

int64_t SimServer::DrainUs() {
  const int64_t began_us = SimOs::Get().now_us();
  is_draining = true;
  http->Drain();
  engine->Drain(scene.drain_bound_us);
  has_told_all = service->WaitUntilDone(std::chrono::seconds(2));
  return SimOs::Get().now_us() - began_us;
}

std::string SimServer::Unsettled() const {
  const auto last = engine->snapshot();
  if (last->load.num_running + last->load.num_waiting > 0) return "the engine still has requests";
  for (const KvGroupState& group : last->kv) {
    if (group.counts.held > 0) return "blocks are still held";
  }
  if (sinks.ended == static_cast<int64_t>(last->num_admitted)) return {};
  return Printf("%lld requests were let in and %lld ended",
                static_cast<long long>(last->num_admitted),
                static_cast<long long>(sinks.ended.load()));
}

std::string SimServer::Dismantle() {
  http = nullptr;
  service = nullptr;
  // A snapshot is some time old.
  std::string unsettled = Unsettled();
  for (int i = 0; i < 50 && !unsettled.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    unsettled = Unsettled();
  }
  if (!unsettled.empty()) return unsettled;
  if (sinks.ended_twice + sinks.late > 0) return "something was told after the end";
  engine = nullptr;
  const AccountCounts counts = accounts->counts();
  if (counts.total() != 0 || counts.accounts != 0) {
    return Printf("%lld bytes are still charged", static_cast<long long>(counts.total()));
  }
  for (const RateLimiter::Counts& key : limiter.counts()) {
    if (key.num_running != 0) return "key " + key.key + " still has places taken";
  }
  uint64_t counted = 0;
  for (const ServerMetrics::Ends& end : metrics->ends()) counted += end.count;
  if (counted != static_cast<uint64_t>(ledger.size())) return "metrics counted otherwise";
  return ledger.Check();
}

}  // namespace hearth::testing
