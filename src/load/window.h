// SPDX-License-Identifier: Apache-2.0
// The steady part of a load: every client busy, neither ramp nor tail.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "load/meter.h"
#include "load/stats.h"
namespace hearth {

struct LoadWindow {
  double from_s = 0, to_s = 0;
  double seconds() const { return to_s - from_s; }
};
// From the moment the first `clients` chats have each heard a token until the first client is
// without a chat. `num_chats` is how many there were in all. None when a chat of them left no reply
// or the two moments come in the wrong order.
std::optional<LoadWindow> SteadyWindow(const std::vector<LoadReply>& replies, int clients,
                                       int num_chats);

struct SteadyRates {
  LoadWindow window;
  int64_t generated = 0, prompt_computed = 0;  // tokens, of the steps in the window
  double mean_streams = 0;                     // decoding in a step
  double mean_context = 0;                     // tokens before a generated one
  Percentiles first_token_s;                   // of what was sent in the window
  // Of the window's time, what steps with prompts took beyond the median step without any. None
  // when the window has no step without.
  std::optional<double> prefill_share;
  double generated_per_s() const { return static_cast<double>(generated) / window.seconds(); }
  // The generated rate over what the backend alone does in the time that prompts left.
  double decode_efficiency(double backend_per_s) const {
    return generated_per_s() / (backend_per_s * (1 - prefill_share.value_or(0)));
  }
};
SteadyRates RatesIn(const LoadWindow& window, const std::vector<LoadReply>& replies,
                    std::span<const MeteredStep> steps);

}  // namespace hearth
