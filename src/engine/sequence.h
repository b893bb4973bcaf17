// SPDX-License-Identifier: Apache-2.0
// A request on its way through the engine. It has no phase: `num_computed` chases `tokens.size()`.
#pragma once
#include <algorithm>
#include <climits>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "engine/draft_control.h"
#include "engine/mask_ahead.h"
#include "engine/request.h"
#include "engine/staged_prefix.h"
#include "kv/kv_space.h"
#include "sampling/sampler_state.h"
namespace hearth {

// Thread: engine only. Ids count up in the order of arrival: a lower one is an older one.
struct Sequence {
  SeqId id{};
  Request request;
  std::shared_ptr<EventSink> sink;   // the loop's business; the scheduler does not look at it
  std::optional<SamplerState> past;  // what sampling knows of `tokens`; likewise the loop's
  std::vector<Token> tokens;         // the prompt, then everything generated
  int num_prompt = 0;
  int max_total = 0;     // prompt and generation together, at most
  int num_computed = 0;  // tokens whose K and V are in the blocks
  KvHolding kv;
  int num_read = 0;              // prompt positions of which all that was asked has been taken
  std::vector<double> pool;      // the sum of those positions' hidden states, when asked
  std::vector<SeqId> followers;  // that wait for this one's prompt
  int64_t deadline_us = 0;       // 0: none

  bool running = false;  // holds blocks; otherwise it waits
  bool follows = false;  // waits for the prompt of another one, not in line itself
  // Its reader is behind, or its mask is being filled; keeps what it has, gets nothing computed.
  bool paused = false;
  bool mask_is_dear = false;           // filled between steps, not beside them
  std::unique_ptr<FilledMask> filled;  // for its next token, when that was done ahead
  bool loading = false;                // waits for blocks from a tier, not in line meanwhile
  bool ahead = false;                  // blocks are on their way while it is in line
  bool asked_tier = false;             // what a tier has of it was looked up
  bool has_reservation = false;  // was preempted as often as allowed: all it can need is set aside
  bool sits_out = false;         // no room for it in the step that is being planned
  bool in_left_step = false;     // its step was left between two layers; not to be touched
  int num_said = 0;              // tokens that the last step gave it
  int num_planned = 0;           // tokens in the step that is being planned or run
  // Blocks of each group that must be to be had before another try to start makes sense.
  std::vector<int> blocks_wanted;
  int64_t blocked_since_us = -1;  // had its turn to start and no room; -1: not
  int most_computed = 0;          // ever, to tell work from repeated work
  int64_t waiting_since_us = 0, paused_since_us = 0, loading_since_us = 0;
  // Where it said what before, how its drafts did, and the one in the step that is planned or run.
  SuffixIndex suffixes;
  DraftHistory drafts;
  std::vector<Token> draft;
  int draft_match = 0;                   // tokens that agreed where it was found
  int reader_room = INT_MAX;             // tokens that its reader takes at least
  std::unique_ptr<StagedPrefix> staged;  // what a tier brought and no step has copied yet
  std::vector<BlockCopy> loads;          // of `staged` into its blocks, for its first step
  RequestRecord record;

  int backlog() const { return static_cast<int>(tokens.size()) - num_computed; }
  int num_generated() const { return static_cast<int>(tokens.size()) - num_prompt; }
};

}  // namespace hearth
