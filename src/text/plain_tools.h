// SPDX-License-Identifier: Apache-2.0
// Tools for models whose chat template has no form for them: the definitions stand in the system
// message, a call is a line of JSON that is the whole reply, and a result is a user's message.
// docs/structured-output.md shows an example. The mask holds replies to it (grammar/text_mask.h),
// and ToolCallStyle::kGeneric reads them back.
#pragma once
#include <string>
#include <vector>

#include "text/conversation.h"
namespace hearth {

// What the model is told of its tools.
std::string PlainToolsText(const std::vector<ToolDefinition>& tools);
// A call as the model writes it: {"name": "f", "arguments": {...}}
std::string PlainCall(const ToolCall& call);

// Whether there is anything of tools in it, also of earlier turns.
bool MentionsTools(const Conversation& conversation);
// The same conversation without tools, calls and results: all of them are text. Results that follow
// each other are one message. `has_system`: the template shows system messages; else what is told
// of the tools stands before the first user's words.
Conversation WithPlainTools(const Conversation& conversation, bool has_system);

}  // namespace hearth
