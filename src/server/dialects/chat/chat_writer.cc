// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/chat/chat_writer.h"

#include <utility>

#include "base/result.h"
#include "server/dialects/logprob_json.h"
#include "server/dialects/prompt_scores.h"

namespace hearth {
namespace {

using Kind = ReplyEvent::Kind;

const char* FinishReason(ChoiceEnd::Why why) {
  switch (why) {
    case ChoiceEnd::Why::kLength:
      return "length";
    case ChoiceEnd::Why::kToolCalls:
      return "tool_calls";
    case ChoiceEnd::Why::kEnd:
    case ChoiceEnd::Why::kStopString:
      break;
  }
  return "stop";
}

}  // namespace

Json UsageAsJson(const TurnUsage& usage) {
  return JsonObject{
      {"prompt_tokens", usage.prompt_tokens},
      {"completion_tokens", usage.completion_tokens},
      {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
      {"prompt_tokens_details", JsonObject{{"cached_tokens", usage.cached_tokens}}},
      {"completion_tokens_details", JsonObject{{"reasoning_tokens", usage.reasoning_tokens}}}};
}

ChatWriter::ChatWriter(const TurnRequest& request, ReplyFacts facts)
    : facts_(std::move(facts)),
      streams_(request.streams),
      wants_usage_(request.wants_usage),
      wants_logprobs_(request.sampling.num_logprobs >= 0),
      num_prompt_logprobs_(request.sampling.num_prompt_logprobs),
      choices_(static_cast<size_t>(request.num_choices)) {}

// Calls are numbered within a reply; the reply's own id makes them unique in a conversation.
std::string ChatWriter::CallId(int choice, int call) const {
  return "call_" + facts_.id + Printf("%02d%02d", choice, call);
}

Json ChatWriter::Envelope(const char* object, JsonArray choices) const {
  return JsonObject{{"id", "chatcmpl-" + facts_.id},
                    {"object", object},
                    {"created", facts_.created_s},
                    {"model", facts_.model},
                    {"system_fingerprint", facts_.fingerprint},
                    {"choices", std::move(choices)}};
}

std::string ChatWriter::Chunk(int choice, JsonObject delta, Json finish_reason,
                              Json logprobs) const {
  if (!streams_) return "";
  Json chunk =
      Envelope("chat.completion.chunk", {JsonObject{{"index", choice},
                                                    {"delta", std::move(delta)},
                                                    {"logprobs", std::move(logprobs)},
                                                    {"finish_reason", std::move(finish_reason)}}});
  if (wants_usage_) chunk.object()->push_back({"usage", Json()});
  return AsEvent(chunk);
}

std::string ChatWriter::Begin() {
  std::string out;
  for (size_t i = 0; i < choices_.size(); ++i) {
    out += Chunk(static_cast<int>(i), {{"role", "assistant"}, {"content", ""}}, Json(), Json());
  }
  return out;
}

std::string ChatWriter::AddPrompt(int index, const std::vector<AnswerLogprob>& prompt) {
  if (index == 0 && num_prompt_logprobs_ >= 0) {
    prompt_logprobs_ = PromptLogprobsAsJson(prompt, num_prompt_logprobs_);
  }
  return "";
}

std::string ChatWriter::Add(int index, const Delta& delta) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  switch (delta.kind) {
    case Kind::kReasoning:
      choice.reasoning += delta.text;
      // Two names for one thing: clients disagree about it, and each ignores the other's.
      return Chunk(index, {{"reasoning", delta.text}, {"reasoning_content", delta.text}}, Json(),
                   Json());
    case Kind::kContent: {
      choice.content += delta.text;
      choice.has_content = true;
      Json logprobs;
      if (wants_logprobs_) {
        JsonArray entries = LogprobsAsJson(delta.logprobs);
        // A stream has told them: nothing asks for them again.
        if (!streams_) {
          choice.logprobs.insert(choice.logprobs.end(), entries.begin(), entries.end());
        }
        logprobs = JsonObject{{"content", std::move(entries)}, {"refusal", Json()}};
      }
      return Chunk(index, {{"content", delta.text}}, Json(), std::move(logprobs));
    }
    case Kind::kToolCall: {
      choice.calls.push_back({delta.text, ""});
      JsonObject call{{"index", delta.call},
                      {"id", CallId(index, delta.call)},
                      {"type", "function"},
                      {"function", JsonObject{{"name", delta.text}, {"arguments", ""}}}};
      return Chunk(index, {{"tool_calls", JsonArray{std::move(call)}}}, Json(), Json());
    }
    case Kind::kToolArguments: {
      choice.calls.back().arguments += delta.text;
      JsonObject call{{"index", delta.call}, {"function", JsonObject{{"arguments", delta.text}}}};
      return Chunk(index, {{"tool_calls", JsonArray{std::move(call)}}}, Json(), Json());
    }
    case Kind::kToolCallEnd:
      break;
  }
  return "";
}

std::string ChatWriter::EndChoice(int index, const ChoiceEnd& end) {
  choices_[static_cast<size_t>(index)].finish_reason = FinishReason(end.why);
  return Chunk(index, {}, FinishReason(end.why), Json());
}

std::string ChatWriter::End(const TurnUsage& usage) {
  if (!streams_) return "";
  std::string out;
  if (wants_usage_) {
    Json last = Envelope("chat.completion.chunk", {});
    last.object()->push_back({"usage", UsageAsJson(usage)});
    out = AsEvent(last);
  }
  return out + "data: [DONE]\n\n";
}

std::string ChatWriter::Fail(const ApiError& error) { return AsEvent(OpenAiError(error)); }

std::string ChatWriter::Progress(const PromptProgress& progress) const {
  Json chunk = Envelope("chat.completion.chunk", {});
  chunk.object()->push_back({"prompt_progress", ProgressAsJson(progress)});
  return AsEvent(chunk);
}

Json ChatWriter::WholeChoice(int index) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  JsonObject message{
      {"role", "assistant"},
      {"content", choice.has_content || choice.calls.empty() ? Json(choice.content) : Json()},
      {"refusal", Json()}};
  if (!choice.reasoning.empty()) {
    message.push_back({"reasoning", choice.reasoning});
    message.push_back({"reasoning_content", choice.reasoning});
  }
  if (!choice.calls.empty()) {
    JsonArray calls;
    for (size_t i = 0; i < choice.calls.size(); ++i) {
      calls.push_back(JsonObject{
          {"id", CallId(index, static_cast<int>(i))},
          {"type", "function"},
          {"function",
           JsonObject{{"name", choice.calls[i].name}, {"arguments", choice.calls[i].arguments}}}});
    }
    message.push_back({"tool_calls", std::move(calls)});
  }
  Json logprobs;
  if (wants_logprobs_) {
    logprobs = JsonObject{{"content", std::move(choice.logprobs)}, {"refusal", Json()}};
  }
  return JsonObject{{"index", index},
                    {"message", std::move(message)},
                    {"logprobs", std::move(logprobs)},
                    {"finish_reason", choice.finish_reason}};
}

std::string ChatWriter::Whole(const TurnUsage& usage) {
  JsonArray choices;
  for (size_t i = 0; i < choices_.size(); ++i) choices.push_back(WholeChoice(static_cast<int>(i)));
  Json whole = Envelope("chat.completion", std::move(choices));
  whole.object()->push_back({"usage", UsageAsJson(usage)});
  if (num_prompt_logprobs_ >= 0) {
    whole.object()->push_back({"prompt_logprobs", std::move(prompt_logprobs_)});
  }
  return WriteJson(whole);
}

}  // namespace hearth
