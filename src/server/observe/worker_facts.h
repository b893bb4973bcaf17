// SPDX-License-Identifier: Apache-2.0
// What this process knows of those that served before it.
#pragma once
#include <cstdint>
#include <string>

#include "base/json.h"
namespace hearth {

struct WorkerFacts {
  bool is_supervised = false;  // another process starts a new one when this one dies
  uint64_t num_restarts = 0;
  std::string last_end = {};  // how the one before ended, in words; empty while there was none
  int64_t last_end_s = 0;     // when, since 1970
};
// A line for people: "restarted 2 times; last at 2026-01-02T03:04:05.000Z: killed by signal 9".
// Empty when it never was.
std::string AsLine(const WorkerFacts& facts);
Json AsJson(const WorkerFacts& facts);

}  // namespace hearth
