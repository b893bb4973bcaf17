// SPDX-License-Identifier: Apache-2.0
// The items that /v1/responses takes, gives and keeps: messages, reasoning, calls and their
// results.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "base/json.h"
#include "server/dialects/message_list.h"
#include "server/dialects/responses/responses_tools.h"
#include "server/turns/api_error.h"
namespace hearth {

// A request's `input` as items; a plain string is one message of the user's.
ApiResult<JsonArray> InputItems(const Json& input);

// Thoughts that this server encrypted for whoever asks now; nothing when it did not, or for
// somebody else.
using Decrypt = std::function<std::optional<std::string>(const std::string& encrypted)>;

// Where the parts of items go.
struct ItemSink {
  MessageList& messages;
  ToolAliases& aliases;
  const Decrypt& decrypt;
};

// Adds what the items say. `path` is where they stand: "input" becomes "input[2].content".
ApiStatus AddItems(const JsonArray& items, const std::string& path, ItemSink out);

}  // namespace hearth
