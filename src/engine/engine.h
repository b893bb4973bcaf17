// SPDX-License-Identifier: Apache-2.0
// The heart: one thread that plans, runs and commits steps until there is nothing left, and one
// that watches it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "backend/backend.h"
#include "engine/engine_core.h"
#include "engine/request.h"
#include "engine/snapshot.h"
namespace hearth {

// No step ended for too long although there was work.
struct Stall {
  int64_t silent_us = 0;
  int64_t num_steps = 0;  // made until then
};

struct WatchOptions {
  // Silence is a stall after this, and after 20 times the 99th percentile of recent steps.
  int64_t stall_us = 30'000'000;
  std::function<void(const Stall&)> on_stall;  // called on the watching thread, once per stall
};

// Thread: any.
class Engine {
 public:
  // `tier` may be null.
  Engine(std::unique_ptr<Backend> backend, const EngineOptions& options,
         const WatchOptions& watch = {}, std::unique_ptr<Tier> tier = nullptr);
  ~Engine();  // ends what is there with kShutdown, joins the threads
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Lets the request in or says why not, at once.
  Admission Submit(Request request, std::shared_ptr<EventSink> sink);
  // Takes effect before the next step. Safe on an id that already ended.
  void Cancel(SeqId id);
  // Refuses what comes from now on, lets what is there go on for at most `bound_us`, then ends it;
  // returns when nothing is left. What a tier should keep gets a few seconds of that.
  void Drain(int64_t bound_us);
  // At most some tens of milliseconds old, and newer than any end that a sink has heard of; never
  // waits for a step.
  std::shared_ptr<const EngineSnapshot> snapshot() const;
  // The same for those who ask again and again; the engine outlives it.
  operator SnapshotSource() const {
    return [this] { return snapshot(); };
  }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth
