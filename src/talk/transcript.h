// SPDX-License-Identifier: Apache-2.0
// Conversations as files: the JSON that the chat API takes, so that other programs can read them.
#pragma once
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "text/conversation.h"
namespace hearth {

// The messages as OpenAI-style clients write them.
Json MessagesAsJson(const std::vector<Message>& messages);

// In one step, for the owner alone. kInvalid when there is such a file already, unless it may be
// replaced.
Status SaveConversation(const std::string& path, const Conversation& conversation,
                        bool may_replace);
// kInvalid, with the path, for what is no conversation.
Result<Conversation> LoadConversation(const std::string& path);

// A file or an input that goes into a message: valid UTF-8, within bounds.
inline constexpr size_t kMaxAttachedBytes = size_t{16} << 20;
Result<std::string> ReadAttachment(const std::string& path);
// kInvalid for bytes that are no text; `what` begins the message.
Status CheckText(const std::string& what, std::string_view text);
// The message with a file's text after it, fenced by more ticks than the text has in a row.
std::string WithFile(const std::string& message, const std::string& name, const std::string& text);
// The message with another text after it, as a pipe brings it.
std::string WithInput(const std::string& message, std::string input);

}  // namespace hearth
