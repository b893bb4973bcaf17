// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/messages/anthropic_writer.h"

#include <utility>

namespace hearth {
namespace {

using Kind = ReplyEvent::Kind;

// Clients send thoughts back with the signature they came with, and some drop those without one.
// Thoughts of this server need no proof.
constexpr const char* kSignature = "hearth";

const char* ErrorType(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
    case 529:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

const char* StopReason(ChoiceEnd::Why why) {
  switch (why) {
    case ChoiceEnd::Why::kLength:
      return "max_tokens";
    case ChoiceEnd::Why::kStopString:
      return "stop_sequence";
    case ChoiceEnd::Why::kToolCalls:
      return "tool_use";
    case ChoiceEnd::Why::kEnd:
      break;
  }
  return "end_turn";
}

// Here what was read from the cache is no part of input_tokens. The null members are what this
// server has nothing to say of; the SDKs' types want them all the same.
JsonObject UsageOf(const TurnUsage& usage) {
  return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.cached_tokens},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", JsonObject{{"thinking_tokens", usage.reasoning_tokens}}},
          {"server_tool_use", Json()}};
}

// A message's usage says more than that of the event which ends a stream.
JsonObject WholeUsageOf(const TurnUsage& usage) {
  JsonObject out = UsageOf(usage);
  out.push_back({"cache_creation", Json()});
  out.push_back({"inference_geo", Json()});
  out.push_back({"service_tier", "standard"});
  out.push_back({"speed", Json()});
  return out;
}

// A call that was cut short has no object to show, and must not look like one that was not.
Json ArgumentsAsJson(const std::string& text) {
  if (text.empty()) return JsonObject{};
  Result<Json> parsed = ParseJson(text);
  if (parsed.ok() && parsed->object() != nullptr) return *std::move(parsed);
  return JsonObject{{"_incomplete", text}};
}

}  // namespace

Json AnthropicError(const ApiError& error) {
  // Agents look for these words to know that they must shorten the conversation.
  const bool is_long = error.code == "context_length_exceeded";
  JsonObject what{{"type", ErrorType(error.status)},
                  {"message", (is_long ? "prompt is too long: " : "") + error.message}};
  // The SDKs look for this one to know that they must send the whole conversation again.
  if (error.code == "thread_not_found") {
    what.push_back({"details", JsonObject{{"error_code", error.code}}});
  }
  return JsonObject{{"type", "error"},
                    {"error", std::move(what)},
                    {"request_id", error.request_id.empty() ? Json() : Json(error.request_id)}};
}

MessagesWriter::MessagesWriter(ReplyFacts facts, bool shows_thinking)
    : facts_(std::move(facts)), shows_thinking_(shows_thinking) {}

Json MessagesWriter::Message(JsonArray content, Json stop_reason, Json stop_sequence,
                             Json usage) const {
  return JsonObject{{"id", "msg_" + facts_.id},
                    {"type", "message"},
                    {"role", "assistant"},
                    {"model", facts_.model},
                    {"content", std::move(content)},
                    {"stop_reason", std::move(stop_reason)},
                    {"stop_sequence", std::move(stop_sequence)},
                    {"stop_details", Json()},
                    {"container", Json()},
                    {"diagnostics", Json()},
                    {"usage", std::move(usage)}};
}

std::string MessagesWriter::Begin() {
  const TurnUsage so_far{.prompt_tokens = facts_.num_prompt};
  return AsEvent("message_start",
                 JsonObject{{"type", "message_start"},
                            {"message", Message({}, Json(), Json(), WholeUsageOf(so_far))}});
}

Json MessagesWriter::BlockAsJson(size_t index, bool is_whole) const {
  const Block& block = blocks_[index];
  switch (block.kind) {
    case BlockKind::kThinking:
      return JsonObject{{"type", "thinking"},
                        {"thinking", is_whole ? block.text : ""},
                        {"signature", is_whole ? kSignature : ""}};
    case BlockKind::kText:
      return JsonObject{
          {"type", "text"}, {"text", is_whole ? block.text : ""}, {"citations", Json()}};
    case BlockKind::kToolUse:
      break;
  }
  return JsonObject{{"type", "tool_use"},
                    {"id", "toolu_" + facts_.id + Printf("%02zu", index)},
                    {"name", block.name},
                    {"input", is_whole ? ArgumentsAsJson(block.text) : Json(JsonObject{})},
                    {"caller", JsonObject{{"type", "direct"}}}};
}

std::string MessagesWriter::BlockDelta(JsonObject delta) const {
  return AsEvent("content_block_delta", JsonObject{{"type", "content_block_delta"},
                                                   {"index", static_cast<int>(blocks_.size()) - 1},
                                                   {"delta", std::move(delta)}});
}

std::string MessagesWriter::OpenBlock(BlockKind kind, const std::string& name) {
  std::string out = CloseBlock();
  blocks_.push_back({kind, "", name});
  is_open_ = true;
  return out + AsEvent("content_block_start",
                       JsonObject{{"type", "content_block_start"},
                                  {"index", static_cast<int>(blocks_.size()) - 1},
                                  {"content_block", BlockAsJson(blocks_.size() - 1, false)}});
}

std::string MessagesWriter::CloseBlock() {
  if (!is_open_) return "";
  is_open_ = false;
  std::string out;
  if (blocks_.back().kind == BlockKind::kThinking) {
    out = BlockDelta({{"type", "signature_delta"}, {"signature", kSignature}});
  }
  return out +
         AsEvent("content_block_stop", JsonObject{{"type", "content_block_stop"},
                                                  {"index", static_cast<int>(blocks_.size()) - 1}});
}

std::string MessagesWriter::Add(int /*choice*/, const Delta& delta) {
  std::string out;
  const auto grow = [&](BlockKind kind, const char* type, const char* member) {
    if (!is_open_ || blocks_.back().kind != kind) out = OpenBlock(kind, "");
    blocks_.back().text += delta.text;
    return out + BlockDelta({{"type", type}, {member, delta.text}});
  };
  switch (delta.kind) {
    case Kind::kReasoning:
      if (!shows_thinking_) return "";
      return grow(BlockKind::kThinking, "thinking_delta", "thinking");
    case Kind::kContent:
      return grow(BlockKind::kText, "text_delta", "text");
    case Kind::kToolCall:
      return OpenBlock(BlockKind::kToolUse, delta.text);
    case Kind::kToolArguments:
      return grow(BlockKind::kToolUse, "input_json_delta", "partial_json");
    case Kind::kToolCallEnd:
      break;
  }
  return CloseBlock();
}

std::string MessagesWriter::EndChoice(int /*choice*/, const ChoiceEnd& end) {
  stop_reason_ = StopReason(end.why);
  if (end.why == ChoiceEnd::Why::kStopString) stop_sequence_ = end.stop_string;
  return CloseBlock();
}

std::string MessagesWriter::End(const TurnUsage& usage) {
  return AsEvent("message_delta", JsonObject{{"type", "message_delta"},
                                             {"delta", JsonObject{{"stop_reason", stop_reason_},
                                                                  {"stop_sequence", stop_sequence_},
                                                                  {"stop_details", Json()},
                                                                  {"container", Json()}}},
                                             {"usage", UsageOf(usage)}}) +
         AsEvent("message_stop", JsonObject{{"type", "message_stop"}});
}

std::string MessagesWriter::Fail(const ApiError& error) {
  return AsEvent("error", AnthropicError(error));
}

std::string MessagesWriter::Ping() const { return "event: ping\ndata: {\"type\":\"ping\"}\n\n"; }

std::string MessagesWriter::Whole(const TurnUsage& usage) {
  JsonArray content;
  for (size_t i = 0; i < blocks_.size(); ++i) content.push_back(BlockAsJson(i, true));
  return WriteJson(Message(std::move(content), stop_reason_, stop_sequence_, WholeUsageOf(usage)));
}

}  // namespace hearth
