// SPDX-License-Identifier: Apache-2.0
#include "server/observe/worker_facts.h"

#include <unistd.h>

#include <chrono>

#include "base/result.h"
#include "server/turns/utc_time.h"

namespace hearth {
namespace {

std::string TimeOf(const WorkerFacts& facts) {
  return Rfc3339(std::chrono::system_clock::time_point(std::chrono::seconds(facts.last_end_s)), 3);
}

}  // namespace

std::string AsLine(const WorkerFacts& facts) {
  if (facts.num_restarts == 0) return "";
  return Printf("restarted %llu time%s; last at %s: %s",
                static_cast<unsigned long long>(facts.num_restarts),
                facts.num_restarts == 1 ? "" : "s", TimeOf(facts).c_str(), facts.last_end.c_str());
}

Json AsJson(const WorkerFacts& facts) {
  JsonObject out{{"pid", static_cast<int64_t>(::getpid())},
                 {"supervised", facts.is_supervised},
                 {"restarts", facts.num_restarts}};
  if (facts.num_restarts > 0) {
    out.push_back({"last_end", facts.last_end});
    out.push_back({"last_end_time", TimeOf(facts)});
  }
  return out;
}

}  // namespace hearth
