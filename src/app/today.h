// SPDX-License-Identifier: Apache-2.0
// The time of day, for the heads of reports. Nothing is measured with it.
#pragma once
#include <string>
namespace hearth {

// "2026-11-15T06:30:00Z".
std::string TodayUtc();

}  // namespace hearth
