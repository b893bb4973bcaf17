// SPDX-License-Identifier: Apache-2.0
// Tools of /v1/responses. Models know functions alone: tools of a namespace and tools that take
// plain text are shown to them as functions, and shown to clients again as what they were.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "base/json.h"
#include "server/dialects/message_list.h"
#include "server/turns/api_error.h"
namespace hearth {

// What a client calls a tool.
struct ToolAlias {
  std::string name;
  std::string space;  // the namespace it is in; empty: none
  bool is_custom = false;
};

// Thread: one; copies are independent.
class ToolAliases {
 public:
  // What the model calls it.
  static std::string ModelName(const std::string& space, const std::string& name);
  void Add(const ToolAlias& alias) { aliases_[ModelName(alias.space, alias.name)] = alias; }
  // A name that the model made up is a function of that name.
  ToolAlias Of(const std::string& model_name) const;

 private:
  std::map<std::string, ToolAlias> aliases_;
};

// Adds them to the conversation and to `aliases`. What the model is told of is appended to `told`,
// as the client wrote it: tools that this server would have to run itself are not among them.
ApiStatus ReadTools(const Json& tools, const std::string& path, MessageList& out,
                    ToolAliases& aliases, JsonArray& told);

// A custom tool's plain text as the arguments of the function it is shown as, and back. Arguments
// that are cut off give as much of the text as they hold.
std::string ArgumentsOfText(const std::string& text);
std::string TextOfArguments(const std::string& arguments);

}  // namespace hearth
