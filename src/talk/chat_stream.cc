// SPDX-License-Identifier: Apache-2.0
#include "talk/chat_stream.h"

#include <algorithm>

#include "base/terminal.h"
#include "talk/settings.h"
#include "talk/transcript.h"

namespace hearth {
namespace {

constexpr size_t kMaxLineBytes = size_t{4} << 20;

const Json* Present(const Json& object, std::string_view name) {
  const Json* member = object.Find(name);
  return member != nullptr && !member->is_null() ? member : nullptr;
}

int Count(const Json& object, std::string_view name) {
  const Json* member = Present(object, name);
  const auto value = member != nullptr ? member->integer() : std::nullopt;
  return static_cast<int>(std::clamp<int64_t>(value.value_or(0), 0, 1 << 30));
}

std::string TextOf(const Json& object, std::string_view name) {
  const Json* member = Present(object, name);
  return member != nullptr && member->string() != nullptr ? *member->string() : "";
}

}  // namespace

Json ChatRequestBody(const std::string& model, const Conversation& conversation,
                     const TalkSettings& settings, const Json* schema) {
  JsonObject body{{"model", model},
                  {"messages", MessagesAsJson(conversation.messages)},
                  {"stream", true},
                  {"stream_options", JsonObject{{"include_usage", true}}}};
  const auto add = [&](const char* name, const auto& value) {
    if (value) body.push_back({name, Json(*value)});
  };
  add("temperature", settings.temperature);
  add("top_p", settings.top_p);
  add("min_p", settings.min_p);
  add("top_k", settings.top_k);
  add("seed", settings.seed);
  if (settings.max_tokens.value_or(0) > 0) add("max_tokens", settings.max_tokens);
  if (settings.effort) body.push_back({"reasoning_effort", NameOf(*settings.effort)});
  if (schema != nullptr) {
    JsonObject named{{"name", "reply"}, {"strict", true}, {"schema", *schema}};
    body.push_back({"response_format",
                    JsonObject{{"type", "json_schema"}, {"json_schema", std::move(named)}}});
  }
  return body;
}

void ChatStreamReader::Add(ReplyEvent::Kind kind, const std::string& text, const Hear& hear) {
  AddToMessage({kind, text}, result_.message);
  has_begun_ = true;
  hear(kind, text);
}

void ChatStreamReader::TakeCalls(const Json& calls, const Hear& hear) {
  if (calls.array() == nullptr) return;
  for (const Json& call : *calls.array()) {
    const Json* function = Present(call, "function");
    if (function == nullptr) continue;
    const int64_t index = Count(call, "index");
    if (index != last_call_) {
      if (last_call_ >= 0) Add(ReplyEvent::Kind::kToolCallEnd, "", hear);
      Add(ReplyEvent::Kind::kToolCall, TextOf(*function, "name"), hear);
      result_.message.tool_calls.back().id = TextOf(call, "id");
      last_call_ = index;
    }
    const std::string arguments = TextOf(*function, "arguments");
    if (!arguments.empty()) Add(ReplyEvent::Kind::kToolArguments, arguments, hear);
  }
}

void ChatStreamReader::TakeDelta(const Json& delta, const Hear& hear) {
  std::string reasoning = TextOf(delta, "reasoning_content");
  if (reasoning.empty()) reasoning = TextOf(delta, "reasoning");
  if (!reasoning.empty()) Add(ReplyEvent::Kind::kReasoning, reasoning, hear);
  const std::string content = TextOf(delta, "content");
  if (!content.empty()) Add(ReplyEvent::Kind::kContent, content, hear);
  if (const Json* calls = Present(delta, "tool_calls")) TakeCalls(*calls, hear);
}

Status ChatStreamReader::TakeData(std::string_view data, const Hear& hear) {
  if (data == "[DONE]") return Status();
  HEARTH_ASSIGN(const Json chunk,
                ParseJson(data, {.max_bytes = kMaxLineBytes}).Within("the reply"));
  if (const Json* error = Present(chunk, "error")) {
    const std::string message = TextOf(*error, "message");
    return Error(Code::kInvalid, "%s",
                 message.empty() ? "the server reported an error" : ForTerminal(message).c_str());
  }
  if (const Json* usage = Present(chunk, "usage")) {
    result_.figures.num_prompt = Count(*usage, "prompt_tokens");
    result_.figures.num_generated = Count(*usage, "completion_tokens");
    if (const Json* details = Present(*usage, "prompt_tokens_details")) {
      result_.figures.num_cached = Count(*details, "cached_tokens");
    }
  }
  const Json* choices = Present(chunk, "choices");
  if (choices == nullptr || choices->array() == nullptr || choices->array()->empty()) {
    return Status();
  }
  const Json& choice = choices->array()->front();
  if (const Json* delta = Present(choice, "delta")) TakeDelta(*delta, hear);
  const std::string finish = TextOf(choice, "finish_reason");
  if (!finish.empty()) finish_ = finish;
  return Status();
}

Status ChatStreamReader::Feed(std::string_view bytes, const Hear& hear) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    line_ += bytes.substr(0, end);
    if (line_.size() > kMaxLineBytes) {
      return Error(Code::kCorrupt, "the server sent a line of more than %zu bytes", kMaxLineBytes);
    }
    if (end == std::string_view::npos) return Status();
    bytes.remove_prefix(end + 1);
    std::string line;
    line.swap(line_);
    if (line.ends_with('\r')) line.pop_back();
    // Events have one line of data each; comments keep the connection awake.
    constexpr std::string_view kData = "data:";
    if (!line.starts_with(kData)) continue;
    std::string_view data = std::string_view(line).substr(kData.size());
    if (data.starts_with(' ')) data.remove_prefix(1);
    HEARTH_TRY(TakeData(data, hear));
  }
  return Status();
}

Result<TurnResult> ChatStreamReader::Finish() const {
  if (!finish_)
    return Error(Code::kIo, "the server ended the stream before the reply was complete");
  TurnResult result = result_;
  if (*finish_ == "length") {
    const bool is_full = max_tokens_ > 0 && result.figures.num_generated >= max_tokens_;
    result.end = is_full ? TurnEnd::kLength : TurnEnd::kContext;
  }
  return result;
}

TurnResult ChatStreamReader::Stopped() const {
  TurnResult result = result_;
  result.end = TurnEnd::kInterrupted;
  return result;
}

std::string ErrorMessage(long http_status, std::string_view body) {
  Result<Json> json = ParseJson(body, {.max_bytes = kMaxLineBytes});
  const Json* error = json.ok() ? json->Find("error") : nullptr;
  const std::string message = error != nullptr ? TextOf(*error, "message") : "";
  if (message.empty()) return Printf("the server answered with HTTP %ld", http_status);
  return ForTerminal(message.substr(0, 2000));
}

}  // namespace hearth
