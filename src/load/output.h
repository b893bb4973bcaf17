// SPDX-License-Identifier: Apache-2.0
// A load's record as lines for the terminal, as JSON and as a page with pictures.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "load/meter.h"
#include "load/run.h"
#include "load/window.h"
namespace hearth {

// Everything a run of `hearth bench load` found.
struct LoadReport {
  std::string model, date, processor, isa;
  std::string url;  // not empty: behind it; then nothing is known of steps and the machine there
  int num_threads = 0;
  double others = 0;  // share of the machine that others used meanwhile
  double itl_target_s = 0;
  LoadOptions options;
  LoadRecord load;
  std::vector<MeteredStep> steps;
  std::optional<SteadyRates> steady;
  int mean_context = 0;  // of a token in the steady window, else in the middle of an answer
  std::optional<double> own_rate;  // the backend's, of as many sequences as there were clients
  std::optional<LongPromptOptions> long_prompt;  // then `load` is empty
  LongPromptRecord beside;

  double generated_per_s() const;
  double computed_per_s() const;  // prompts that were not cached included
  double hit_share() const;       // of prompt tokens
};

std::string LoadTable(const LoadReport& report);
Json LoadJson(const LoadReport& report);
std::string LoadPage(const LoadReport& report);

}  // namespace hearth
