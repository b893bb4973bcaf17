// SPDX-License-Identifier: Apache-2.0
// A model becomes an engine that takes requests: memory is shared out, the backend made, the loop
// started.
#pragma once
#include <cstdint>
#include <memory>

#include "app/open_backend.h"
#include "app/open_tier.h"
#include "base/result.h"
#include "engine/engine.h"
#include "kv/block_watch.h"
#include "model/model.h"
namespace hearth {

// The flags that every command with an engine has.
struct EngineFlags {
  BackendFlags hardware;
  int64_t kv_bytes = 0;        // 0: half of what the weights leave of the usable memory
  bool reserves_kv = false;    // takes it at the start
  int max_context = 0;         // tokens of one sequence; 0: what the model and the memory allow
  int max_sequences = 64;      // running at a time
  int max_queued = 10'000;     // waiting at a time
  int max_step_tokens = 512;   // of all sequences together
  double itl_target_ms = 200;  // the longest step while somebody listens
  double stall_s = 30;         // a step that takes longer, and much longer than usual, is a stall
  CacheFlags cache;
  BlockWatch* watch = nullptr;  // no flag of its own: hears of cached blocks, outlives the engine
};

// What of the model a step's time depends on.
ExpertCounts ExpertsOf(const ModelSpec& spec);

// What the engine will be, before anything large is allocated.
struct EnginePlan {
  BackendPlan backend;
  EngineOptions engine;
};
// `usable_bytes` is what this process may hold; kExhausted with the numbers when that is too
// little.
Result<EnginePlan> PlanEngine(const Model& model, const EngineFlags& flags, uint64_t usable_bytes);

// Says on stderr how the memory is shared out when that is worth a line.
Result<std::unique_ptr<Engine>> OpenEngine(const Model& model, const EngineFlags& flags);

}  // namespace hearth
