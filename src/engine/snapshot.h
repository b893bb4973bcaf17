// SPDX-License-Identifier: Apache-2.0
// What the engine is doing, as plain numbers: for metrics, for a live view, for tests.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/mask_fills.h"
#include "engine/request.h"
#include "engine/scheduler.h"
#include "engine/tier_traffic.h"
#include "kv/kv_space.h"
namespace hearth {

struct SequenceRow {
  enum class State : uint8_t { kWaiting, kPrefill, kDecode, kPaused, kLoading };
  SeqId id{};
  uint32_t tenant = 0;
  Priority priority = Priority::kNormal;
  State state = State::kWaiting;
  int num_prompt = 0, num_cached = 0, num_computed = 0, num_generated = 0, num_preempted = 0;
  int64_t age_us = 0, waited_us = 0;
  int64_t saying_us = 0;  // since its first token; 0: it has said none
};

// Of the last steps (at most 512).
struct StepTimes {
  int64_t last_us = 0, p50_us = 0, p99_us = 0, max_us = 0;
  double mean_own_us = 0;               // beside the backend: planning, sampling, booking, telling
  double mean_us = 0, mean_tokens = 0;  // fading: of about the last 20
};

// What there can be at most, and what is aimed for.
struct EngineLimits {
  int max_running = 0, max_waiting = 0;
  int64_t max_waiting_tokens = 0;
  int64_t itl_target_us = 0;
};

// KV blocks of one group.
struct KvGroupState {
  std::string name;
  int window = 0;  // 0: its layers see everything
  int64_t block_bytes = 0;
  KvCounts counts;
};

// Every step since the start, by how long it took: steps of at most kStepBoundsUs[i], each in its
// first fitting place; the last place is for longer ones.
inline constexpr std::array<int64_t, 14> kStepBoundsUs{
    500,     1'000,   2'000,   5'000,   10'000,    20'000,    50'000,
    100'000, 150'000, 200'000, 500'000, 1'000'000, 2'000'000, 10'000'000};
struct StepHistogram {
  std::array<uint64_t, kStepBoundsUs.size() + 1> counts{};
  int64_t sum_us = 0;
};

inline constexpr double kRateSeconds = 5;  // how far back the two rates below look

struct EngineSnapshot {
  int64_t at_us = 0;
  bool is_stalled = false, is_draining = false;
  uint64_t num_stalls = 0;
  EngineLimits limits;
  SchedulerLoad load;
  SchedulerTotals totals;
  int block_tokens = 0;
  std::vector<KvGroupState> kv;      // as in KvLayout: the one that sees everything first
  std::optional<TierCounts> tier;    // none: there is no tier
  std::vector<TierPart> tier_parts;  // what it is made of
  StepModel::Terms step_model{};     // its coefficients
  StepTimes steps;
  StepHistogram step_histogram;
  MaskTotals masks;
  double prefill_tokens_per_s = 0, decode_tokens_per_s = 0;  // over the last seconds
  double wait_s = 0;  // predicted, until the first token of a short prompt that came now
  uint64_t num_admitted = 0, num_refused = 0, num_backend_failures = 0;
  std::array<uint64_t, kNumFinishes> num_finished{};  // by Finish
  // Sums over requests that ended, for rates and hit shares.
  int64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  int64_t waited_us = 0, ttft_us = 0;
  uint64_t num_first_tokens = 0;  // that ttft_us sums over
  std::vector<SequenceRow> rows;  // all that run, and the first that wait
};

// Where the last snapshot can be had at any time: of one engine (engine.h), or of several.
using SnapshotSource = std::function<std::shared_ptr<const EngineSnapshot>()>;

}  // namespace hearth
