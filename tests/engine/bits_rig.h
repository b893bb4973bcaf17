// SPDX-License-Identifier: Apache-2.0
// The engine on the CPU backend or another, stepped by a test, and listeners that keep every bit
// they get.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "cpu/cpu_backend.h"
#include "engine/clock.h"
#include "engine/engine_core.h"
#include "model/model.h"
#include "testing/loaded_model.h"
namespace hearth::testing {

// Everything that must not change: the ids, and a hash of every bit of every row of logits.
struct Heard : EventSink {
  int Room() const override { return 1'000'000; }
  void OnToken(const TokenEvent& event) override {
    EXPECT_EQ(event.index, static_cast<int>(tokens.size()));
    tokens.push_back(event.token);
  }
  void OnPromptLogprobs(int first, std::span<const Logprobs> logprobs) override {
    EXPECT_EQ(first, static_cast<int>(prompt.size()) + 1) << "a piece was lost or came twice";
    EXPECT_TRUE(tokens.empty());
    prompt.insert(prompt.end(), logprobs.begin(), logprobs.end());
  }
  void OnEmbedding(std::span<const float> pooled) override {
    EXPECT_TRUE(embedding.empty());
    embedding.assign(pooled.begin(), pooled.end());
  }
  void OnFinish(const RequestRecord& ended) override { record = ended; }
  std::vector<Token> tokens;
  std::vector<uint64_t> rows;
  std::vector<Logprobs> prompt;
  std::vector<float> embedding;
  RequestRecord record;
};

inline uint64_t HashOf(std::span<const float> logits) {
  uint64_t hash = 0x243f6a8885a308d3u;
  for (const float value : logits) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    hash = (hash ^ bits) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

struct Case {
  Request request;
  std::shared_ptr<Heard> heard = std::make_shared<Heard>();
};

struct World {
  int full_blocks = 0, window_blocks = 0;
  int max_step_tokens = 2048, max_sequences = 64;
  bool speculates = true;
  int fixed_draft = 0;
  // Empty: the CPU's.
  std::function<Result<std::unique_ptr<Backend>>(const Model& model, const World& world)> open = {};
};

// An engine stepped by the test.
class Machine {
 public:
  Machine(const Model& model, const World& world) {
    Result<std::unique_ptr<Backend>> made =
        world.open ? world.open(model, world) : OpenCpu(model, world);
    EXPECT_TRUE(made.ok()) << made.status().message();
    backend_ = *std::move(made);
    EngineOptions options;
    options.scheduler.max_sequences = world.max_sequences;
    options.scheduler.max_step_tokens = world.max_step_tokens;
    options.scheduler.max_context = model.spec.max_context;
    options.scheduler.min_chunk = 4;
    options.scheduler.speculates = world.speculates;
    options.scheduler.fixed_draft = world.fixed_draft;
    options.scheduler.headroom_blocks = 0;  // thrash rather than wait
    options.admission.max_wait_s = 1e9;     // a backend on an emulator takes minutes
    options.self_check_every = 16;
    options.on_logits = [this](SeqId id, int index, std::span<const float> logits) {
      const auto found = sinks_.find(id);
      if (found == sinks_.end()) return;
      EXPECT_EQ(index, static_cast<int>(found->second->rows.size()));
      found->second->rows.push_back(HashOf(logits));
    };
    core_ = std::make_unique<EngineCore>(*backend_, options, clock_);
  }
  SeqId Submit(const Case& c) {
    const Admission admission = core_->Submit(c.request, c.heard);
    EXPECT_TRUE(admission.ok()) << admission.status.message();
    sinks_[admission.id] = c.heard;
    return admission.id;
  }
  bool Step() { return core_->Step(); }
  void Finish() {
    while (core_->Step() || !core_->is_idle()) {
    }
    sinks_.clear();
  }
  EngineCore& core() { return *core_; }
  static Result<std::unique_ptr<Backend>> OpenCpu(const Model& model, const World& world) {
    CpuOptions cpu;
    cpu.isa = BestIsa();
    cpu.num_threads = 2;
    if (CpuKvLayout(model.spec).num_groups() == 1) {
      cpu.kv_blocks = {world.full_blocks};
    } else {
      cpu.kv_blocks = {world.full_blocks, world.window_blocks};
    }
    cpu.max_step_tokens = world.max_step_tokens;
    return MakeCpuBackend(model, cpu);
  }

 private:
  SteadyClock clock_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<EngineCore> core_;
  std::unordered_map<SeqId, std::shared_ptr<Heard>> sinks_;
};

}  // namespace hearth::testing
