// SPDX-License-Identifier: Apache-2.0
// The backends that this program was built with.
#pragma once
#include <string_view>

#include "backend/backend_factory.h"
namespace hearth {

// The one for a device: "cpu", "cuda:0", "cuda:1" ..., or "auto", which means the CPU for as long
// as no GPU was verified on hardware. Names that do not exist are refused by its Complete.
const BackendFactory& BackendOn(std::string_view device);
inline bool IsHost(std::string_view device) {
  return device.empty() || device == "cpu" || device == "auto";
}

}  // namespace hearth
