// SPDX-License-Identifier: Apache-2.0
// Times as people write them: 90, 30s, 5m, 1h30m.
#pragma once
#include <string_view>

#include "base/result.h"
namespace hearth {

// Seconds. Numbers with units (ms, s, m, h), one after the other, or one number of seconds; a minus
// before all of it makes it negative. kInvalid says what was expected.
Result<double> ParseDuration(std::string_view text);

}  // namespace hearth
