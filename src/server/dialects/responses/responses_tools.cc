// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/responses/responses_tools.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace hearth {
namespace {

constexpr const char* kText = "input";  // the one parameter of a custom tool

// Run by a server that has them. This one has none, so the model is not told of them: that it never
// calls one is a reply that a client of `tool_choice: auto` must expect anyway.
constexpr std::string_view kLeftOut[] = {"web_search", "web_search_preview",
                                         "web_search_preview_2025_03_11", "web_search_2025_08_26",
                                         "image_generation"};

Json TextParameters() {
  return JsonObject{{"type", "object"},
                    {"properties", JsonObject{{kText, JsonObject{{"type", "string"}}}}},
                    {"required", JsonArray{kText}},
                    {"additionalProperties", false}};
}

// As many as the field `tools` may have: a namespace is no way around it, and each costs a grammar.
constexpr size_t kMaxTools = 128;

struct Reading {
  MessageList& out;
  ToolAliases& aliases;

  // Whether the model is told of it.
  ApiResult<bool> Read(const Json& tool, const std::string& path, const std::string& space);
  ApiResult<bool> ReadSpace(const Json& tool, const std::string& path);
};

ApiError NoSuchTool(const std::string& path) {
  return BadField(path + ".type", "only tools that the client runs are supported",
                  "unsupported_value");
}

ApiResult<bool> Reading::ReadSpace(const Json& tool, const std::string& path) {
  const std::string* name = StringIn(tool, "name");
  const Json* inner = tool.Find("tools");
  if (name == nullptr) return BadField(path + ".name", "must be a string");
  if (inner == nullptr || inner->array() == nullptr) {
    return BadField(path + ".tools", "must be an array");
  }
  for (size_t i = 0; i < inner->array()->size(); ++i) {
    // The namespace that all functions of harmony are in anyway is no further one.
    HEARTH_TRY(Read((*inner->array())[i], path + Printf(".tools[%zu]", i),
                    *name == "functions" ? "" : *name));
  }
  return true;
}

ApiResult<bool> Reading::Read(const Json& tool, const std::string& path, const std::string& space) {
  const std::string *type = StringIn(tool, "type"), *name = StringIn(tool, "name");
  if (type == nullptr) return NoSuchTool(path);
  if (*type == "namespace" && space.empty()) return ReadSpace(tool, path);
  if (std::find(std::begin(kLeftOut), std::end(kLeftOut), *type) != std::end(kLeftOut)) {
    return false;
  }
  const bool is_custom = *type == "custom";
  if (!is_custom && *type != "function") return NoSuchTool(path);
  if (name == nullptr) return BadField(path + ".name", "must be a string");
  JsonObject function{{"name", ToolAliases::ModelName(space, *name)}};
  for (const char* member : {"description", "parameters"}) {
    const Json* value = tool.Find(member);
    if (value != nullptr && !value->is_null()) function.push_back({member, *value});
  }
  if (is_custom) function.push_back({"parameters", TextParameters()});
  if (out.num_tools() >= kMaxTools) {
    return BadField(path, Printf("more than %zu tools, those in namespaces included", kMaxTools));
  }
  out.AddTool(std::move(function), path);
  aliases.Add({*name, space, is_custom});
  return true;
}

}  // namespace

std::string ToolAliases::ModelName(const std::string& space, const std::string& name) {
  return space.empty() ? name : space + "__" + name;
}

ToolAlias ToolAliases::Of(const std::string& model_name) const {
  const auto found = aliases_.find(model_name);
  return found == aliases_.end() ? ToolAlias{model_name, "", false} : found->second;
}

ApiStatus ReadTools(const Json& tools, const std::string& path, MessageList& out,
                    ToolAliases& aliases, JsonArray& told) {
  if (tools.array() == nullptr) return BadField(path, "must be an array");
  Reading reading{.out = out, .aliases = aliases};
  for (size_t i = 0; i < tools.array()->size(); ++i) {
    const Json& tool = (*tools.array())[i];
    HEARTH_ASSIGN(const bool is_told, reading.Read(tool, path + Printf("[%zu]", i), ""));
    if (is_told) told.push_back(tool);
  }
  return {};
}

std::string ArgumentsOfText(const std::string& text) {
  return WriteJson(JsonObject{{kText, text}});
}

std::string TextOfArguments(const std::string& arguments) {
  Result<Json> json = ParseJson(arguments);
  for (const char* end : {"\"}", "}"}) {  // a reply that was cut off
    if (!json.ok()) json = ParseJson(arguments + end);
  }
  const std::string* text = json.ok() ? StringIn(*json, kText) : nullptr;
  return text == nullptr ? "" : *text;
}

}  // namespace hearth
