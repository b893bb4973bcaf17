// SPDX-License-Identifier: Apache-2.0
// An engine on a fake backend with its metrics on a port, under a little load, until stdin ends:
// what metrics_test.py lets a real Prometheus scrape. `stall` makes the backend hang after a while.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "http/http_server.h"
#include "server/observe/metrics.h"
#include "testing/fake_backend.h"

namespace hearth {
namespace {

class Reader : public EventSink {
 public:
  explicit Reader(std::atomic<int>& live) : live_(live) { ++live_; }
  int Room() const override { return 1 << 20; }
  void OnToken(const TokenEvent&) override {}
  void OnFinish(const RequestRecord&) override { --live_; }

 private:
  std::atomic<int>& live_;
};

// A tier that has nothing and takes nothing: its rows are what counts here.
class EmptyTier : public Tier {
 public:
  std::string_view name() const override { return "disk"; }
  void Connect(TierListener* listener) override { listener_ = listener; }
  bool MayHave(const TierKey&) const override { return false; }
  void Store(TransferId id, const TierKey&, uint32_t, std::vector<std::byte>) override {
    if (listener_ != nullptr) listener_->OnTransfer({id, TierOutcome::kFull, {}});
  }
  void Fetch(TransferId id, const TierKey&, uint32_t) override {
    if (listener_ != nullptr) listener_->OnTransfer({id, TierOutcome::kMissing, {}});
  }
  void Cancel(TransferId) override {}
  TierStats stats() const override {
    TierStats stats;
    stats.capacity_bytes = 1 << 20;
    return stats;
  }

 private:
  TierListener* listener_ = nullptr;
};

Request MakeRequest(uint64_t seed, int vocab_size) {
  Request request;
  for (int i = 0; i < 64; ++i) {
    request.prompt.push_back(testing::FakeBackend::RandomToken(seed % 3, i, vocab_size));
  }
  request.max_tokens = 16;
  request.sampling.seed = seed;
  return request;
}

int Run(bool stalls) {
  std::atomic<bool> hangs{false}, stop{false};
  std::atomic<int> live{0};
  testing::FakeOptions fake;
  fake.before_run = [&](const StepPlan&) {
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } while (hangs && !stop);
    return Status();
  };
  auto backend = std::make_unique<testing::FakeBackend>(fake);
  const int vocab_size = backend->vocab_size();
  ServerMetrics metrics({"0.0.0", "fake", "exact", "probe", 1024});
  WatchOptions watch;
  watch.stall_us = 50'000;
  Engine engine(std::move(backend), {}, watch, std::make_unique<EmptyTier>());
  Router router;
  AddMetricsRoute(engine, metrics, Auth::kAdmin, router);
  HttpOptions options;
  options.authorize = [](HttpRequest&, Auth) { return std::nullopt; };
  auto server = HttpServer::Listen(std::move(options), std::move(router));
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.status().message().c_str());
    return 1;
  }
  metrics.AddListener("control", [&] { return (*server)->counts(); });
  std::printf("%d\n", (*server)->port());
  std::fflush(stdout);
  std::thread load([&] {
    for (uint64_t seed = 0; !stop; ++seed) {
      if (live < 4) {
        engine.Submit(MakeRequest(seed, vocab_size), metrics.Watch(std::make_shared<Reader>(live)));
      }
      if (stalls && seed == 20) hangs = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  while (std::getchar() != EOF) {
  }
  stop = true;
  load.join();
  metrics.ForgetListeners();
  return 0;
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) {
  return hearth::Run(argc > 1 && std::strcmp(argv[1], "stall") == 0);
}
