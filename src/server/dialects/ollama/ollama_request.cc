// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/ollama/ollama_request.h"

#include <utility>

#include "base/duration.h"
#include "server/dialects/ollama/ollama_messages.h"
#include "server/dialects/ollama/ollama_options.h"
#include "server/dialects/plain_prompts.h"
#include "server/dialects/sampling_fields.h"

namespace hearth {
namespace {

using enum FieldKind;
using enum FieldUse;

constexpr size_t kMaxInputs = 2048;

constexpr std::string_view kModel = "the name of a model that is served, with or without `:latest`";
constexpr std::string_view kKeepAlive =
    "a number of seconds or a duration such as `5m`: so long the model stays loaded after this; 0: "
    "not "
    "at all, negative: for ever; where one model is served, it is always loaded";
constexpr std::string_view kNotCut = "nothing is ever cut: what does not fit is refused";
constexpr std::string_view kFormat =
    "`json`, or a JSON schema; enforced token by token, and not shown to the model";
constexpr std::string_view kThink =
    "false: no thoughts; true: thoughts, where the model has any; `low`, `medium`, `high`: how "
    "many; "
    "thoughts are told apart from the answer unless given false";
constexpr std::string_view kStream = "lines of JSON; true unless given";
constexpr std::string_view kOptionsDoc = "sampling; see docs/ollama.md";
constexpr std::string_view kNoImages = "the models read and write only text";

constexpr Field kChatFields[] = {
    {"_debug_render_only", kBoolean, kRefused, 0, 0, "use POST /tokenize with messages", "false"},
    {"format", kAny, kHonoured, 0, 0, kFormat},
    {"keep_alive", kAny, kHonoured, 0, 0, kKeepAlive},
    {"logprobs", kBoolean, kHonoured, 0, 0, "log-probabilities of the answer's tokens"},
    {"messages", kArray, kHonoured, 0, 4096,
     "the conversation; a last message of the assistant's is continued; none: is the model "
     "loaded?"},
    {"model", kString, kHonoured, 1, 256, kModel},
    {"options", kObject, kHonoured, 0, 0, kOptionsDoc, {}, OllamaOptions},
    {"shift", kBoolean, kNoEffect, 0, 0, kNotCut},
    {"stream", kBoolean, kHonoured, 0, 0, kStream},
    {"think", kAny, kHonoured, 0, 0, kThink},
    {"tools", kArray, kHonoured, 0, 128, "functions the model may call"},
    {"top_logprobs", kInteger, kHonoured, 0, 20, "so many of the likeliest tokens beside each"},
    {"truncate", kBoolean, kNoEffect, 0, 0, kNotCut},
};

constexpr Field kGenerateFields[] = {
    {"_debug_render_only", kBoolean, kRefused, 0, 0, "use POST /tokenize with messages", "false"},
    {"context", kArray, kRefused, 0, 0, "send the conversation to /api/chat", "[]"},
    {"format", kAny, kHonoured, 0, 0, kFormat},
    {"height", kInteger, kRefused, 0, 0, kNoImages, "0"},
    {"images", kArray, kRefused, 0, 0, kNoImages, "[]"},
    {"keep_alive", kAny, kHonoured, 0, 0, kKeepAlive},
    {"logprobs", kBoolean, kHonoured, 0, 0, "log-probabilities of the answer's tokens"},
    {"model", kString, kHonoured, 1, 256, kModel},
    {"options", kObject, kHonoured, 0, 0, kOptionsDoc, {}, OllamaOptions},
    {"prompt", kString, kHonoured, 0, 0, "what the user says; none: is the model loaded?"},
    {"raw", kBoolean, kHonoured, 0, 0,
     "the prompt goes on as it is, without the chat template; what it spells is text, never a "
     "special token; not with `system` or `think`"},
    {"shift", kBoolean, kNoEffect, 0, 0, kNotCut},
    {"steps", kInteger, kRefused, 0, 0, kNoImages, "0"},
    {"stream", kBoolean, kHonoured, 0, 0, kStream},
    {"suffix", kString, kRefused, 0, 0, "fill-in-the-middle is not supported", "\"\""},
    {"system", kString, kHonoured, 0, 0, "a system message before the prompt"},
    {"template", kString, kRefused, 0, 0,
     "the model's own chat template is used; with `raw` none is", "\"\""},
    {"think", kAny, kHonoured, 0, 0, kThink},
    {"top_logprobs", kInteger, kHonoured, 0, 20, "so many of the likeliest tokens beside each"},
    {"truncate", kBoolean, kNoEffect, 0, 0, kNotCut},
    {"width", kInteger, kRefused, 0, 0, kNoImages, "0"},
};

constexpr Field kEmbedFields[] = {
    {"dimensions", kInteger, kRefused, 0, 0, "embeddings always have the model's own size", "0"},
    {"input", kAny, kHonoured, 0, 0, "a text or a list of up to 2048"},
    {"keep_alive", kAny, kHonoured, 0, 0, kKeepAlive},
    {"model", kString, kHonoured, 1, 256, kModel},
    {"options", kObject, kNoEffect, 0, 0, "nothing is sampled", {}, OllamaOptions},
    {"truncate", kBoolean, kNoEffect, 0, 0, kNotCut},
};

constexpr Field kEmbeddingsFields[] = {
    {"keep_alive", kAny, kHonoured, 0, 0, kKeepAlive},
    {"model", kString, kHonoured, 1, 256, kModel},
    {"options", kObject, kNoEffect, 0, 0, "nothing is sampled", {}, OllamaOptions},
    {"prompt", kString, kHonoured, 0, 0, "a text"},
};

// What every request has. A name must be given, as Ollama wants it.
ApiStatus ReadCommon(const Fields& fields, TurnRequest& out) {
  const auto model = fields.text("model");
  if (!model) return BadField("model", "is missing");
  out.model = *model;
  const Json* alive = fields.find("keep_alive");
  if (alive == nullptr) return {};
  out.keep_alive_s = alive->number();
  if (const std::string* text = alive->string()) {
    Result<double> seconds = ParseDuration(*text);
    if (seconds.ok()) out.keep_alive_s = *seconds;
  }
  if (out.keep_alive_s) return {};
  return BadField("keep_alive", "must be a number of seconds or a duration such as \"5m\"");
}

ApiStatus ReadFormat(const Json& format, AnswerShape& out) {
  const std::string* word = format.string();
  if (word != nullptr && word->empty()) return {};
  out.field = "format";
  if (word != nullptr && *word == "json") {
    out.kind = AnswerShape::Kind::kObject;
    return {};
  }
  if (format.object() == nullptr) {
    return BadField("format", "must be \"json\" or a JSON schema, which is an object");
  }
  out.kind = AnswerShape::Kind::kSchema;
  out.schema = format;
  return {};
}

ApiStatus ReadThink(const Json& think, OllamaRequest& out) {
  if (const bool* flag = think.boolean()) {
    out.wants_thoughts = *flag;
    if (!*flag) out.turn.reasoning_tokens = 0;
    return {};
  }
  const std::string* word = think.string();
  if (word == nullptr || !ReadEffort(*word, "think", out.turn).ok()) {
    return BadField("think", "must be true, false, \"low\", \"medium\" or \"high\"");
  }
  out.wants_thoughts = out.has_effort = out.turn.reasoning_tokens != 0;
  return {};
}

// What chats and prompts share.
ApiStatus ReadReply(const Fields& fields, OllamaRequest& out) {
  TurnRequest& turn = out.turn;
  turn.streams = fields.flag("stream", true);
  if (const Json* options = fields.find("options")) {
    HEARTH_TRY(ReadOllamaOptions(*options, turn));
  }
  if (const Json* format = fields.find("format")) {
    HEARTH_TRY(ReadFormat(*format, turn.answer));
  }
  if (const Json* think = fields.find("think")) {
    HEARTH_TRY(ReadThink(*think, out));
  }
  const auto top = fields.integer("top_logprobs");
  const bool wants_logprobs = fields.flag("logprobs", false);
  if (top.value_or(0) > 0 && !wants_logprobs) {
    return BadField("top_logprobs", "needs logprobs: true");
  }
  if (wants_logprobs) turn.sampling.num_logprobs = static_cast<int>(top.value_or(0));
  return {};
}

// What both ways to ask for embeddings share.
ApiStatus ReadPooled(const Fields& fields, const char* prompt_field, TurnRequest& out) {
  HEARTH_TRY(ReadCommon(fields, out));
  out.prompt_field = prompt_field;
  out.prompt_only = out.pools = true;
  if (const Json* options = fields.find("options")) {
    HEARTH_TRY(IgnoreOllamaOptions(*options, out));
  }
  return {};
}

ApiStatus ReadRawPrompt(const Fields& fields, const std::string& prompt, TurnRequest& out) {
  for (const char* name : {"system", "think"}) {
    const Json* given = fields.find(name);
    if (given == nullptr || *given == Json("") || *given == Json(false)) continue;
    return BadField(name, "not supported with raw, where no chat template is applied",
                    "unsupported_parameter");
  }
  out.plain_prompts = {prompt};
  return {};
}

}  // namespace

std::span<const Field> OllamaChatFields() { return kChatFields; }
std::span<const Field> OllamaGenerateFields() { return kGenerateFields; }
std::span<const Field> OllamaEmbedFields() { return kEmbedFields; }
std::span<const Field> OllamaEmbeddingsFields() { return kEmbeddingsFields; }

ApiResult<OllamaRequest> ReadOllamaChat(const Json& body) {
  HEARTH_ASSIGN(const Fields fields, ReadFields(body, kChatFields));
  OllamaRequest out;
  HEARTH_TRY(ReadCommon(fields, out.turn));
  const Json* messages = fields.find("messages");
  out.is_empty = messages == nullptr || messages->array()->empty();
  if (!out.is_empty) {
    HEARTH_ASSIGN(out.turn.conversation,
                  ReadOllamaMessages(*messages->array(), fields.find("tools")));
  }
  // After the conversation, which `think` adds to.
  HEARTH_TRY(ReadReply(fields, out));
  return out;
}

ApiResult<OllamaRequest> ReadOllamaGenerate(const Json& body) {
  HEARTH_ASSIGN(const Fields fields, ReadFields(body, kGenerateFields));
  OllamaRequest out;
  HEARTH_TRY(ReadCommon(fields, out.turn));
  HEARTH_TRY(ReadReply(fields, out));
  out.turn.prompt_field = "prompt";
  const std::string prompt = fields.text("prompt").value_or("");
  out.is_empty = prompt.empty();
  if (fields.flag("raw", false)) {
    HEARTH_TRY(ReadRawPrompt(fields, prompt, out.turn));
    return out;
  }
  const std::string system = fields.text("system").value_or("");
  const auto say = [&out](Role role, const std::string& text) {
    Message& message = out.turn.conversation.messages.emplace_back();
    message.role = role;
    message.content = text;
  };
  if (!system.empty()) say(Role::kSystem, system);
  say(Role::kUser, prompt);
  return out;
}

ApiResult<OllamaRequest> ReadOllamaEmbed(const Json& body) {
  HEARTH_ASSIGN(const Fields fields, ReadFields(body, kEmbedFields));
  OllamaRequest out;
  HEARTH_TRY(ReadPooled(fields, "input", out.turn));
  const Json* input = fields.find("input");
  if (input == nullptr) return BadField("input", "is missing");
  out.is_empty = input->array() != nullptr && input->array()->empty();
  if (out.is_empty) return out;
  HEARTH_TRY(ReadPlainPrompts(*input, "input", kMaxInputs, out.turn.plain_prompts));
  return out;
}

ApiResult<OllamaRequest> ReadOllamaEmbeddings(const Json& body) {
  HEARTH_ASSIGN(const Fields fields, ReadFields(body, kEmbeddingsFields));
  OllamaRequest out;
  HEARTH_TRY(ReadPooled(fields, "prompt", out.turn));
  const std::string prompt = fields.text("prompt").value_or("");
  out.is_empty = prompt.empty();
  out.turn.plain_prompts = {prompt};
  return out;
}

}  // namespace hearth
