// SPDX-License-Identifier: Apache-2.0
// Reads conversations out of requests. Everything a client can get wrong is refused here, so that
// renderers need not look again.
#include "text/conversation.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

namespace hearth {
namespace {

constexpr size_t kMaxToolNameBytes = 128;
// Of a call the model made: it may have invented a name, and must be able to see it again.
constexpr size_t kMaxCalledNameBytes = 256;

Status Refuse(const std::string& path, const char* why) {
  return Error(Code::kInvalid, "%s: %s", path.c_str(), why);
}
std::string Item(const std::string& path, size_t index) { return path + Printf("[%zu]", index); }

// A member that may be absent: absent and null are the same to every client library.
const Json* Present(const Json& object, std::string_view name) {
  const Json* member = object.Find(name);
  return member != nullptr && !member->is_null() ? member : nullptr;
}

Result<std::string> OptionalString(const Json& object, const char* name, const std::string& path) {
  const Json* member = Present(object, name);
  if (member == nullptr) return std::string();
  if (member->string() == nullptr) return Refuse(path + "." + name, "expected a string");
  return *member->string();
}

Result<std::string> RequiredString(const Json& object, const char* name, const std::string& path) {
  const Json* member = Present(object, name);
  if (member == nullptr || member->string() == nullptr) {
    return Refuse(path + "." + name, "expected a string");
  }
  return *member->string();
}

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

// Names of tools and participants stand in message headers, where a space would start a new word.
Status CheckName(const std::string& name, const std::string& path) {
  if (name.empty()) return Refuse(path, "expected a name, found an empty string");
  if (name.size() > kMaxToolNameBytes) return Refuse(path, "must have at most 128 bytes");
  if (!std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return Refuse(path, "may contain only letters, digits, '_', '-' and '.'");
  }
  return {};
}

Status CheckCalledName(const std::string& name, const std::string& path) {
  if (name.empty()) return Refuse(path, "expected a name, found an empty string");
  if (name.size() > kMaxCalledNameBytes) return Refuse(path, "must have at most 256 bytes");
  const auto breaks_header = [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '\x7f';
  };
  if (std::any_of(name.begin(), name.end(), breaks_header)) {
    return Refuse(path, "must not contain spaces or control characters");
  }
  return {};
}

Result<std::string> ParseParts(const JsonArray& parts, const std::string& path) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string part_path = Item(path, i);
    if (parts[i].object() == nullptr) return Refuse(part_path, "expected an object");
    HEARTH_ASSIGN(const std::string type, RequiredString(parts[i], "type", part_path));
    if (type != "text") {
      return Error(Code::kUnsupported, "%s.type: only \"text\" parts are supported, found %s",
                   part_path.c_str(), Quoted(type).c_str());
    }
    HEARTH_ASSIGN(const std::string piece, RequiredString(parts[i], "text", part_path));
    text += piece;
  }
  return text;
}

Result<std::string> ParseContent(const Json& message, Role role, const std::string& path) {
  const Json* content = Present(message, "content");
  const std::string content_path = path + ".content";
  if (content == nullptr) {
    // An assistant that only called tools said nothing.
    if (role == Role::kAssistant) return std::string();
    return Refuse(content_path, "expected a string or an array of text parts");
  }
  if (content->string() != nullptr) return *content->string();
  if (content->array() != nullptr) return ParseParts(*content->array(), content_path);
  return Refuse(content_path, "expected a string or an array of text parts");
}

Result<Role> ParseRole(const Json& message, const std::string& path) {
  static constexpr std::array<std::pair<const char*, Role>, 5> kRoles = {{
      {"system", Role::kSystem},
      {"developer", Role::kDeveloper},
      {"user", Role::kUser},
      {"assistant", Role::kAssistant},
      {"tool", Role::kTool},
  }};
  HEARTH_ASSIGN(const std::string name, RequiredString(message, "role", path));
  for (const auto& [known, role] : kRoles) {
    if (name == known) return role;
  }
  return Refuse(path + ".role",
                "expected \"system\", \"developer\", \"user\", \"assistant\" or \"tool\"");
}

Result<std::string> ParseReasoning(const Json& message, const std::string& path) {
  HEARTH_ASSIGN(std::string reasoning, OptionalString(message, "reasoning", path));
  HEARTH_ASSIGN(std::string same, OptionalString(message, "reasoning_content", path));
  if (reasoning.empty()) return same;
  if (!same.empty() && same != reasoning) {
    return Refuse(path + ".reasoning_content", "differs from \"reasoning\"; send only one of them");
  }
  return reasoning;
}

// `{type: "function", function: {...}}`, as in tools and in tool_calls; returns the inner object.
Result<const Json*> ParseFunction(const Json& item, const std::string& path) {
  if (item.object() == nullptr) return Refuse(path, "expected an object");
  HEARTH_ASSIGN(const std::string type, OptionalString(item, "type", path));
  if (!type.empty() && type != "function") {
    return Error(Code::kUnsupported, "%s.type: expected \"function\", found %s", path.c_str(),
                 Quoted(type).c_str());
  }
  const Json* function = item.Find("function");
  if (function == nullptr || function->object() == nullptr) {
    return Refuse(path + ".function", "expected an object");
  }
  return function;
}

Result<ToolCall> ParseToolCall(const Json& item, const std::string& path) {
  ToolCall call;
  HEARTH_ASSIGN(const Json* function, ParseFunction(item, path));
  HEARTH_ASSIGN(call.id, OptionalString(item, "id", path));
  const std::string inner = path + ".function";
  HEARTH_ASSIGN(call.name, RequiredString(*function, "name", inner));
  HEARTH_TRY(CheckCalledName(call.name, inner + ".name"));
  const Json* arguments = Present(*function, "arguments");
  if (arguments == nullptr) return call;
  if (arguments->string() != nullptr) {
    call.arguments = *arguments->string();
  } else if (arguments->object() != nullptr) {
    call.arguments = WriteJson(*arguments);
  } else {
    return Refuse(inner + ".arguments", "expected a string of JSON or an object");
  }
  return call;
}

Status ParseToolCalls(const Json& message, const std::string& path, Message& out) {
  const Json* calls = Present(message, "tool_calls");
  if (calls == nullptr) return {};
  const std::string calls_path = path + ".tool_calls";
  if (calls->array() == nullptr) return Refuse(calls_path, "expected an array");
  if (out.role != Role::kAssistant)
    return Refuse(calls_path, "only assistant messages may have tool calls");
  for (size_t i = 0; i < calls->array()->size(); ++i) {
    HEARTH_ASSIGN(ToolCall call, ParseToolCall((*calls->array())[i], Item(calls_path, i)));
    out.tool_calls.push_back(std::move(call));
  }
  return {};
}

using CallNames = std::unordered_map<std::string, std::string>;  // call id -> tool name

Status ResolveTool(const CallNames& calls, const std::string& path, Message& out) {
  if (const auto call = calls.find(out.tool_call_id); call != calls.end()) {
    if (!out.name.empty() && out.name != call->second) {
      return Refuse(path + ".name",
                    "differs from the name in the tool call that this message answers");
    }
    out.name = call->second;
    return {};
  }
  if (out.name.empty())
    return Refuse(path + ".tool_call_id", "does not match any earlier tool call");
  return CheckCalledName(out.name, path + ".name");
}

Result<Message> ParseMessage(const Json& message, const std::string& path, CallNames& calls) {
  if (message.object() == nullptr) return Refuse(path, "expected an object");
  Message out;
  HEARTH_ASSIGN(out.role, ParseRole(message, path));
  HEARTH_ASSIGN(out.content, ParseContent(message, out.role, path));
  HEARTH_ASSIGN(out.name, OptionalString(message, "name", path));
  HEARTH_TRY(ParseToolCalls(message, path, out));
  if (out.role == Role::kTool) {
    HEARTH_ASSIGN(out.tool_call_id, OptionalString(message, "tool_call_id", path));
    HEARTH_TRY(ResolveTool(calls, path, out));
    return out;
  }
  if (!out.name.empty()) HEARTH_TRY(CheckName(out.name, path + ".name"));
  if (out.role == Role::kAssistant) {
    HEARTH_ASSIGN(out.reasoning, ParseReasoning(message, path));
    for (const ToolCall& call : out.tool_calls) {
      if (!call.id.empty()) calls[call.id] = call.name;
    }
  }
  return out;
}

Result<ToolDefinition> ParseTool(const Json& item, const std::string& path) {
  ToolDefinition tool;
  HEARTH_ASSIGN(const Json* function, ParseFunction(item, path));
  const std::string inner = path + ".function";
  HEARTH_ASSIGN(tool.name, RequiredString(*function, "name", inner));
  HEARTH_TRY(CheckName(tool.name, inner + ".name"));
  HEARTH_ASSIGN(tool.description, OptionalString(*function, "description", inner));
  if (const Json* parameters = Present(*function, "parameters")) {
    if (parameters->object() == nullptr) {
      return Refuse(inner + ".parameters", "expected a JSON schema, which is an object");
    }
    tool.parameters = *parameters;
  }
  return tool;
}

Status ParseTools(const Json& request, Conversation& out) {
  const Json* tools = Present(request, "tools");
  if (tools == nullptr) return {};
  if (tools->array() == nullptr) return Refuse("tools", "expected an array");
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < tools->array()->size(); ++i) {
    const std::string path = Item("tools", i);
    HEARTH_ASSIGN(ToolDefinition tool, ParseTool((*tools->array())[i], path));
    if (!names.insert(tool.name).second) {
      return Refuse(path + ".function.name", "another tool already has this name");
    }
    out.tools.push_back(std::move(tool));
  }
  return {};
}

Status ParseEffort(const Json& request, Conversation& out) {
  const Json* effort = Present(request, "reasoning_effort");
  if (effort == nullptr) return {};
  const std::string* name = effort->string();
  if (name != nullptr && *name == "low") {
    out.reasoning_effort = ReasoningEffort::kLow;
  } else if (name != nullptr && *name == "medium") {
    out.reasoning_effort = ReasoningEffort::kMedium;
  } else if (name != nullptr && *name == "high") {
    out.reasoning_effort = ReasoningEffort::kHigh;
  } else {
    return Refuse("reasoning_effort", "expected \"low\", \"medium\" or \"high\"");
  }
  return {};
}

}  // namespace

Result<Conversation> ParseConversation(const Json& request) {
  if (request.object() == nullptr) return Error(Code::kInvalid, "expected an object");
  Conversation out;
  const Json* messages = request.Find("messages");
  if (messages == nullptr) return Refuse("messages", "is missing; expected an array of messages");
  if (messages->array() == nullptr) return Refuse("messages", "expected an array");
  CallNames calls;
  for (size_t i = 0; i < messages->array()->size(); ++i) {
    HEARTH_ASSIGN(Message message,
                  ParseMessage((*messages->array())[i], Item("messages", i), calls));
    out.messages.push_back(std::move(message));
  }
  HEARTH_TRY(ParseTools(request, out));
  HEARTH_TRY(ParseEffort(request, out));
  return out;
}

}  // namespace hearth
