// SPDX-License-Identifier: Apache-2.0
#include "app/open_format.h"

#include <algorithm>

#include "base/json.h"
#include "platform/file.h"
#include "templates/jinja_format.h"
#include "text/harmony.h"
#include "weights/gguf.h"
#include "weights/packed_file.h"

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
  return Error(Code::kNotFound, "%s: no chat_template in it", path.c_str());
}

Result<std::string> TemplateOfMetadata(const std::string& path, const GgufMetadata& metadata) {
  const GgufValue* value = metadata.Find("tokenizer.chat_template");
  const std::optional<std::string_view> text = value != nullptr ? value->String() : std::nullopt;
  if (text) return std::string(*text);
  return Error(Code::kNotFound, "%s: no tokenizer.chat_template in it", path.c_str());
}

// A packed file keeps what stood beside its original.
Result<std::string> TemplateOfPacked(const std::string& path) {
  HEARTH_ASSIGN(const std::unique_ptr<PackedFile> packed, PackedFile::Open(path));
  if (packed->metadata() != nullptr) return TemplateOfMetadata(path, *packed->metadata());
  if (const auto alone = packed->Text("chat_template.jinja")) return std::string(*alone);
  if (const auto config = packed->Text("tokenizer_config.json")) {
    return TemplateOfConfig(path + ": tokenizer_config.json", *config);
  }
  return Error(Code::kNotFound, "%s: packed from a directory without a chat template",
               path.c_str());
}

Result<std::string> TemplateOfFile(const std::string& path) {
  HEARTH_ASSIGN(const MappedFile file, MappedFile::Open(path));
  if (LooksPacked(file.bytes())) return TemplateOfPacked(path);
  HEARTH_ASSIGN(const Gguf gguf, ParseGguf(file.bytes()).Within(path));
  return TemplateOfMetadata(path, gguf.metadata);
}

Result<std::string> TemplateNear(const std::string& path) {
  std::string directory = path;
  if (!IsDirectory(path)) {
    if (!path.ends_with(".json")) return TemplateOfFile(path);
    const size_t slash = path.rfind('/');
    directory = slash == std::string::npos ? "." : path.substr(0, slash);
  }
  const std::string alone = directory + "/chat_template.jinja";
  if (FileExists(alone)) return ReadTextFile(alone, kMaxConfigBytes);
  const std::string config = directory + "/tokenizer_config.json";
  HEARTH_ASSIGN(const std::string text, ReadTextFile(config, kMaxConfigBytes));
  return TemplateOfConfig(config, text);
}

}  // namespace

Result<std::unique_ptr<ChatFormat>> OpenChatFormat(const std::string& path, const std::string& name,
                                                   const Tokenizer& tokenizer) {
  if (!name.empty() && name != "harmony") {
    return Error(Code::kInvalid, "no format is called %s; known: \"harmony\"",
                 Quoted(name).c_str());
  }
  if (name == "harmony" || HarmonyTokens::Find(tokenizer).ok()) return MakeHarmonyFormat(tokenizer);
  HEARTH_ASSIGN(const std::string source, TemplateNear(path));
  HEARTH_ASSIGN(std::unique_ptr<JinjaChatFormat> format,
                JinjaChatFormat::Make(source, tokenizer).Within(path + ": chat template"));
  return std::unique_ptr<ChatFormat>(std::move(format));
}

TextReplyStyle ReplyStyleOf(const ChatFormat& format, const Tokenizer& tokenizer) {
  const auto* jinja = dynamic_cast<const JinjaChatFormat*>(&format);
  if (jinja == nullptr) return {};
  return {.calls = jinja->tool_call_style(),
          .begins_in_reasoning = jinja->begins_in_reasoning(),
          .may_reason = tokenizer.Special("<think>").has_value()};
}

}  // namespace hearth
