// SPDX-License-Identifier: Apache-2.0
#include "app/open_format.h"

#include "base/json.h"
#include "templates/jinja_format.h"
#include "text/harmony.h"
#include "weights/gguf.h"

namespace hearth {
namespace {

constexpr size_t kMaxConfigBytes = size_t{4} << 20;

// A list of named templates is allowed there; "default" is the one for chat.
Result<std::string> TemplateOfConfig(const std::string& path, std::string_view text) {
  HEARTH_ASSIGN(const Json config, ParseJson(text).Within(path));
  const Json* found = config.Find("chat_template");
  if (found != nullptr && found->string() != nullptr) return *found->string();
  const JsonArray* list = found != nullptr ? found->array() : nullptr;
  for (const Json& entry : list != nullptr ? *list : JsonArray()) {
    const Json* name = entry.Find("name");
    const Json* body = entry.Find("template");
    if (name == nullptr || name->string() == nullptr || *name->string() != "default") continue;
    if (body != nullptr && body->string() != nullptr) return *body->string();
  }
  return Error(Code::kNotFound, "%s: expected a chat_template, found none", path.c_str());
}

Result<std::string> TemplateOfMetadata(const std::string& path, const GgufMetadata& metadata) {
  const GgufValue* value = metadata.Find("tokenizer.chat_template");
  const std::optional<std::string_view> text = value != nullptr ? value->String() : std::nullopt;
  if (text) return std::string(*text);
  return Error(Code::kNotFound, "%s: expected tokenizer.chat_template, found none", path.c_str());
}

Result<std::string> TemplateOf(const TextSource& source) {
  const std::string& path = source.path();
  if (source.metadata() != nullptr) return TemplateOfMetadata(path, *source.metadata());
  constexpr const char* kAlone = "chat_template.jinja";
  constexpr const char* kConfig = "tokenizer_config.json";
  if (source.Has(kAlone)) return source.Text(kAlone, kMaxConfigBytes);
  if (source.is_packed() && !source.Has(kConfig)) {
    return Error(Code::kNotFound,
                 "%s: the packed model has no chat template, because its directory had none",
                 path.c_str());
  }
  HEARTH_ASSIGN(const std::string text, source.Text(kConfig, kMaxConfigBytes));
  return TemplateOfConfig(source.PlaceOf(kConfig), text);
}

}  // namespace

Result<std::unique_ptr<ChatFormat>> OpenChatFormat(const TextSource& source,
                                                   const std::string& name,
                                                   const Tokenizer& tokenizer) {
  if (!name.empty() && name != "harmony") {
    return Error(Code::kInvalid, "unknown chat format %s; available: harmony",
                 Quoted(name).c_str());
  }
  if (name == "harmony" || HarmonyTokens::Find(tokenizer).ok()) return MakeHarmonyFormat(tokenizer);
  HEARTH_ASSIGN(const std::string text, TemplateOf(source));
  HEARTH_ASSIGN(std::unique_ptr<JinjaChatFormat> format,
                JinjaChatFormat::Make(text, tokenizer).Within(source.path() + ": chat template"));
  return std::unique_ptr<ChatFormat>(std::move(format));
}

Result<std::string> ChatTemplateOf(const TextSource& source) { return TemplateOf(source); }

TextReplyStyle ReplyStyleOf(const ChatFormat& format, const Tokenizer& tokenizer) {
  const auto* jinja = dynamic_cast<const JinjaChatFormat*>(&format);
  if (jinja == nullptr) return {};
  return {.calls = jinja->tool_call_style(),
          .begins_in_reasoning = jinja->begins_in_reasoning(),
          .may_reason = tokenizer.Special("<think>").has_value()};
}

}  // namespace hearth
