// SPDX-License-Identifier: Apache-2.0
#include "grammar/reply_rules.h"

namespace hearth {

Result<std::vector<const ToolDefinition*>> CallableTools(const std::vector<ToolDefinition>& tools,
                                                         const ReplyRules& rules) {
  std::vector<const ToolDefinition*> callable;
  for (const ToolDefinition& tool : tools) {
    if (rules.tool_choice == ToolChoice::kNone) break;
    if (rules.tool_choice == ToolChoice::kNamed && tool.name != rules.named_tool) continue;
    callable.push_back(&tool);
  }
  if (callable.empty() && rules.tool_choice == ToolChoice::kNamed) {
    return Error(Code::kInvalid, "tool_choice: tool %s is not in tools",
                 Quoted(rules.named_tool).c_str());
  }
  if (callable.empty() && rules.tool_choice == ToolChoice::kRequired) {
    return Error(Code::kInvalid, "tool_choice: a call is required, but there are no tools");
  }
  return callable;
}

Json ArgumentsSchema(const ToolDefinition& tool) {
  if (tool.parameters.object() == nullptr || tool.parameters.object()->empty()) {
    JsonObject none;  // no parameters: the arguments are {}
    none.push_back({"type", "object"});
    none.push_back({"properties", JsonObject()});
    none.push_back({"additionalProperties", false});
    return none;
  }
  Json schema = tool.parameters;
  for (const char* word : {"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"}) {
    if (schema.Find(word) != nullptr) return schema;
  }
  schema.object()->insert(schema.object()->begin(), {"type", "object"});
  return schema;
}

}  // namespace hearth
