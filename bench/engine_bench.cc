// SPDX-License-Identifier: Apache-2.0
// What the loop costs beside the backend: mail, plan, sampling, booking, telling. The backend here
// does nothing, so the time of a step is all the engine's own.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>

#include "backend/immediate_backend.h"
#include "engine/clock.h"
#include "engine/engine_core.h"

namespace hearth {
namespace {

// Hands out logits that were there before.
class IdleBackend : public ImmediateBackend {
 public:
  IdleBackend(int full_blocks, int vocab_size) : full_blocks_(full_blocks), vocab_(vocab_size) {}
  std::string_view name() const override { return "idle"; }
  KvLayout kv_layout() const override {
    KvLayout layout;
    layout.groups = {{0, 64, full_blocks_}, {128, 64, full_blocks_}};
    return layout;
  }
  int vocab_size() const override { return vocab_; }
  Status Compute(const StepPlan&, std::span<float> logits) override {
    for (size_t row = 0; row * static_cast<size_t>(vocab_) < logits.size(); ++row) {
      logits[row * static_cast<size_t>(vocab_) + ++count_ % static_cast<size_t>(vocab_)] = 5;
    }
    return Status();
  }

 private:
  int full_blocks_, vocab_;
  size_t count_ = 0;
};

struct Deaf : EventSink {
  int Room() const override { return 1; }
  void OnToken(const TokenEvent&) override {}
  void OnFinish(const RequestRecord&) override {}
};

// Arguments: streams, vocabulary, requests that wait, temperature in tenths.
void Streams(benchmark::State& state) {
  const auto streams = static_cast<int>(state.range(0));
  IdleBackend backend(40'000, static_cast<int>(state.range(1)));
  const SteadyClock clock;
  EngineOptions options;
  options.scheduler.max_sequences = streams;
  EngineCore core(backend, options, clock);
  const auto sink = std::make_shared<Deaf>();
  const auto submit = [&](int i) {
    Request request;
    request.prompt.assign(1000, static_cast<Token>(i % 1000));
    request.sampling.temperature = static_cast<float>(state.range(3)) / 10;
    request.max_tokens = 100'000;
    request.domain.tenant = static_cast<uint32_t>(i % 8);
    core.Submit(std::move(request), sink);
  };
  for (int i = 0; i < streams; ++i) submit(i);
  for (int i = 0; i < 100; ++i) core.Step();  // all prompts are through by then
  for (int i = 0; i < static_cast<int>(state.range(2)); ++i) submit(i);
  core.Step();
  for (auto _ : state) core.Step();
  state.counters["running"] = core.scheduler().load().num_running;
}
BENCHMARK(Streams)
    ->ArgNames({"streams", "vocab", "waiting", "t10"})
    ->Args({1, 201'088, 0, 0})
    ->Args({1, 201'088, 0, 10})
    ->Args({64, 201'088, 0, 0})
    ->Args({64, 201'088, 0, 10})
    ->Args({1, 1024, 0, 0})
    ->Args({64, 1024, 0, 0})
    ->Args({256, 1024, 0, 0})
    ->Args({256, 1024, 9'000, 0})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace hearth

BENCHMARK_MAIN();
