// SPDX-License-Identifier: Apache-2.0
#include "talk/answerer.h"

namespace hearth {

void AddToMessage(const ReplyEvent& event, Message& message) {
  switch (event.kind) {
    case ReplyEvent::Kind::kReasoning:
      message.reasoning += event.text;
      break;
    case ReplyEvent::Kind::kContent:
      message.content += event.text;
      break;
    case ReplyEvent::Kind::kToolCall:
      message.tool_calls.push_back({"", event.text, ""});
      break;
    case ReplyEvent::Kind::kToolArguments:
      if (!message.tool_calls.empty()) message.tool_calls.back().arguments += event.text;
      break;
    case ReplyEvent::Kind::kToolCallEnd:
      break;
  }
}

}  // namespace hearth
