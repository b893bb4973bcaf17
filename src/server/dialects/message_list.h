// SPDX-License-Identifier: Apache-2.0
// Collects a conversation whose dialect says it in other pieces than ours, and remembers where each
// piece stood, so that a mistake is blamed on what the client wrote.
#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "server/turns/api_error.h"
#include "text/conversation.h"
namespace hearth {

// Thread: one.
class MessageList {
 public:
  // `path` is the client's name for the piece: "input[3]".
  void AddText(const char* role, std::string text, const std::string& path);
  void AddToolResult(std::string call_id, std::string text, const std::string& path);
  // An assistant's pieces: neighbours are one message, in the order thoughts, answer, calls.
  void AddThought(const std::string& text, const std::string& path);
  void AddAnswer(const std::string& text, const std::string& path);
  void AddCall(std::string id, std::string name, std::string arguments, const std::string& path);
  // What follows belongs to another message.
  void EndMessage();
  void AddTool(JsonObject function, const std::string& path);

  bool empty() const { return messages_.empty(); }
  size_t num_tools() const { return tools_.size(); }
  ApiResult<Conversation> Parse() &&;

 private:
  struct Assistant {
    std::string thought, answer;
    bool has_answer = false;
    JsonArray calls;
    std::string path;
  };
  Assistant& Open(const std::string& path);

  Assistant assistant_;
  bool is_open_ = false;
  JsonArray messages_, tools_;
  std::vector<std::string> message_paths_, tool_paths_;
};

// A string, or an array of parts whose types are among `text_types`, joined. Anything else is
// refused by its place.
ApiResult<std::string> ReadTextParts(const Json& content, const std::string& path,
                                     const std::vector<std::string>& text_types);

// The member, if it is a string.
const std::string* StringIn(const Json& object, std::string_view name);

}  // namespace hearth
