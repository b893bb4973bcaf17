// SPDX-License-Identifier: Apache-2.0
// Conversations as Ollama's clients write them: thoughts under `thinking`, arguments as objects,
// results of tools that name the tool instead of the call.
#pragma once
#include "base/json.h"
#include "server/turns/api_error.h"
#include "text/conversation.h"
namespace hearth {

// `tools` may be null. A mistake is blamed on its place: "messages[2].content: ...".
ApiResult<Conversation> ReadOllamaMessages(const JsonArray& messages, const Json* tools);

}  // namespace hearth
