// SPDX-License-Identifier: Apache-2.0
// The flag --device of commands that compute.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
namespace hearth {

inline constexpr const char* kDeviceHelp =
    "Where to compute: cpu, cuda:0, cuda:1 ... (verified by emulation, not yet on hardware), or "
    "auto, "
    "which is cpu until a GPU is verified";

// cpu, auto, or cuda: with a number.
inline CLI::Validator Device() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        constexpr std::string_view kCuda = "cuda:";
        bool is_device = text == "cpu" || text == "auto";
        if (text.starts_with(kCuda)) {
          const std::string number = text.substr(kCuda.size());
          is_device = !number.empty() && number.size() <= 3 &&
                      number.find_first_not_of("0123456789") == std::string::npos;
        }
        return is_device ? "" : "expected cpu, auto or cuda:0, cuda:1 ..., found " + Quoted(text);
      },
      "");
}

inline CLI::Option* AddDevice(CLI::App& sub, std::string& device) {
  return sub.add_option("--device", device, kDeviceHelp)->check(Device())->capture_default_str();
}

}  // namespace hearth
