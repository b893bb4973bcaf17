// SPDX-License-Identifier: Apache-2.0
// The flag --numa of commands that compute.
#pragma once
#include <CLI/CLI.hpp>
#include <charconv>
#include <string>

#include "base/result.h"
#include "platform/worker_plan.h"
namespace hearth {

inline constexpr const char* kNumaHelp =
    "Memory nodes to place weights on: auto (all), off (the machine counts as one), or how many; "
    "more than the machine has only groups its cores";

// auto, off or a number, which becomes PlanWorkers' number. 64 nodes are more than machines have.
inline CLI::Validator NumaNodes() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        int nodes = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), nodes);
        if (text == "auto") {
          nodes = kNumaAuto;
        } else if (text == "off") {
          nodes = kNumaOff;
        } else if (error != std::errc() || end != text.data() + text.size() || nodes < 0 ||
                   nodes > 64) {
          return "expected auto, off or a whole number from 1 to 64, found " + Quoted(text);
        }
        text = std::to_string(nodes);
        return "";
      },
      "");
}

inline CLI::Option* AddNuma(CLI::App& sub, int& nodes) {
  return sub.add_option("--numa", nodes, kNumaHelp)
      ->transform(NumaNodes())
      ->option_text("auto|off|N")
      ->default_str("auto");
}

}  // namespace hearth
