// SPDX-License-Identifier: Apache-2.0
#include "engine/request.h"

namespace hearth {

const char* NameOf(Finish finish) {
  switch (finish) {
    case Finish::kNone:
      return "none";
    case Finish::kStop:
      return "stop";
    case Finish::kLength:
      return "length";
    case Finish::kCancelled:
      return "cancelled";
    case Finish::kExpired:
      return "expired";
    case Finish::kSlowReader:
      return "slow_reader";
    case Finish::kShutdown:
      return "shutdown";
    case Finish::kError:
      return "error";
    case Finish::kMask:
      return "grammar_error";
  }
  return "?";
}

const char* NameOf(Priority priority) {
  switch (priority) {
    case Priority::kUrgent:
      return "urgent";
    case Priority::kNormal:
      return "normal";
    case Priority::kLow:
      return "low";
    case Priority::kIdle:
      break;
  }
  return "idle";
}

}  // namespace hearth
