// SPDX-License-Identifier: Apache-2.0
// Times as logs and APIs write them: RFC 3339, in UTC.
#pragma once
#include <chrono>
#include <string>
namespace hearth {

// "2026-01-02T03:04:05.678901Z"; with 3 digits of the second "…05.678Z".
std::string Rfc3339(std::chrono::system_clock::time_point time, int num_digits = 6);

}  // namespace hearth
