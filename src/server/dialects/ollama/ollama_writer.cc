// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/ollama/ollama_writer.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "server/dialects/logprob_json.h"
#include "server/turns/utc_time.h"

namespace hearth {
namespace {

using Kind = ReplyEvent::Kind;

// Durations are nanoseconds there.
int64_t Nanoseconds(int64_t us) { return us * 1000; }

std::string Now() { return Rfc3339(std::chrono::system_clock::now()); }

// What stands between an object's braces.
std::string Members(const JsonObject& object) {
  const std::string text = WriteJson(object);
  return text.substr(1, text.size() - 2);
}

// JSON without blanks between its tokens, line breaks above all: the text was parsed before.
std::string Compact(const std::string& json) {
  std::string out;
  bool in_string = false, after_backslash = false;
  for (const char c : json) {
    const bool is_blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!in_string && is_blank) continue;
    out += c;
    if (c == '"' && !after_backslash) in_string = !in_string;
    after_backslash = in_string && c == '\\' && !after_backslash;
  }
  return out;
}

// Arguments as the model wrote them, if they are an object. The text itself is passed on: numbers
// of any length stay what they were.
std::optional<std::string> WholeArguments(const std::string& text) {
  Result<Json> parsed = ParseJson(text, {.is_passed_on = true});
  if (!parsed.ok() || parsed->object() == nullptr) return std::nullopt;
  return Compact(text);
}

}  // namespace

Json OllamaError(const ApiError& error) {
  std::string message = error.message;
  // Masks know the field of a schema by OpenAI's name.
  constexpr std::string_view kOpenAi = "response_format: ";
  if (message.starts_with(kOpenAi)) message.erase(0, kOpenAi.size());
  // There is no other place for the field at fault; a field that is unknown is named in quotes.
  const bool is_named = message.starts_with(error.param) || error.code == "unknown_parameter";
  if (!is_named) message = error.param + ": " + message;
  return JsonObject{{"error", std::move(message)}};
}

Json OllamaLoaded(const std::string& model, bool is_chat, const char* reason) {
  JsonObject out{{"model", model}, {"created_at", Now()}};
  if (is_chat) {
    out.push_back({"message", JsonObject{{"role", "assistant"}, {"content", ""}}});
  } else {
    out.push_back({"response", ""});
  }
  out.push_back({"done", true});
  out.push_back({"done_reason", reason});
  return out;
}

OllamaWriter::OllamaWriter(Form form, const TurnRequest& request, const ReplyFacts& facts)
    : form_(form),
      model_(request.model),
      id_(facts.id),
      streams_(request.streams),
      wants_logprobs_(request.sampling.num_logprobs >= 0) {}

std::string OllamaWriter::AsText(const Piece& piece, const JsonObject& end) const {
  const bool is_chat = form_ == Form::kChat;
  JsonObject words;
  if (is_chat) words.push_back({"role", "assistant"});
  words.push_back({is_chat ? "content" : "response", piece.content});
  if (!piece.thinking.empty()) words.push_back({"thinking", piece.thinking});
  std::string said = Members(words);
  std::string calls;
  for (const std::string& call : piece.calls) calls += (calls.empty() ? "" : ",") + call;
  if (!calls.empty()) said += ",\"tool_calls\":[" + calls + "]";
  std::string out = "{" + Members({{"model", model_}, {"created_at", Now()}}) + ",";
  out += is_chat ? "\"message\":{" + said + "}" : said;
  if (!piece.logprobs.empty()) out += "," + Members({{"logprobs", piece.logprobs}});
  return out + "," + Members(end) + "}";
}

std::string OllamaWriter::Line(const Piece& piece) const {
  return streams_ ? AsText(piece, {{"done", false}}) + "\n" : "";
}

std::string OllamaWriter::Ping() const { return AsText({}, {{"done", false}}) + "\n"; }

std::string OllamaWriter::TellCall(size_t index, const std::string& arguments) {
  Call& call = calls_[index];
  call.is_told = true;
  const JsonObject function{{"index", static_cast<int64_t>(index)}, {"name", call.name}};
  Piece piece;
  piece.calls.push_back("{" + Members({{"id", "call_" + id_ + Printf("%02zu", index)}}) +
                        ",\"function\":{" + Members(function) + ",\"arguments\":" + arguments +
                        "}}");
  whole_.calls.push_back(piece.calls.back());
  return Line(piece);
}

std::string OllamaWriter::Add(int /*choice*/, const Delta& delta) {
  Piece piece;
  switch (delta.kind) {
    case Kind::kReasoning:
      whole_.thinking += delta.text;
      piece.thinking = delta.text;
      return Line(piece);
    case Kind::kContent:
      whole_.content += delta.text;
      piece.content = delta.text;
      if (wants_logprobs_) {
        piece.logprobs = LogprobsAsJson(delta.logprobs);
        if (!streams_) {
          whole_.logprobs.insert(whole_.logprobs.end(), piece.logprobs.begin(),
                                 piece.logprobs.end());
        }
      }
      return Line(piece);
    case Kind::kToolCall:
      calls_.push_back({delta.text, ""});
      return "";
    case Kind::kToolArguments:
      calls_.back().arguments += delta.text;
      return "";
    case Kind::kToolCallEnd:
      break;
  }
  // Arguments are objects here, so a call is told when it is whole. A reply that was cut ends its
  // call as well: without arguments it is not known yet which of the two this is.
  const std::optional<std::string> arguments = WholeArguments(calls_.back().arguments);
  return arguments ? TellCall(calls_.size() - 1, *arguments) : "";
}

std::string OllamaWriter::EndChoice(int /*choice*/, const ChoiceEnd& end) {
  const bool is_cut = end.why == ChoiceEnd::Why::kLength;
  done_reason_ = is_cut ? "length" : "stop";
  std::string out;
  // Half a call must not be run: one that the length cut is left out, and `length` says so.
  for (size_t i = 0; i < calls_.size() && !is_cut; ++i) {
    if (calls_[i].is_told) continue;
    const std::string& text = calls_[i].arguments;
    const std::string broken = WriteJson(JsonObject{{"_incomplete", text}});
    out += TellCall(i, text.empty() ? "{}" : WholeArguments(text).value_or(broken));
  }
  return out;
}

JsonObject OllamaWriter::EndOf(const TurnUsage& usage) const {
  // Clients divide by these durations: a reply of one token took no time after its first one.
  return {{"done", true},
          {"done_reason", done_reason_},
          {"total_duration", Nanoseconds(usage.total_us)},
          {"load_duration", 0},
          {"prompt_eval_count", usage.prompt_tokens},
          {"prompt_eval_duration", std::max<int64_t>(1, Nanoseconds(usage.prompt_us))},
          {"eval_count", usage.completion_tokens},
          {"eval_duration", std::max<int64_t>(1, Nanoseconds(usage.reply_us))}};
}

std::string OllamaWriter::End(const TurnUsage& usage) {
  return streams_ ? AsText({}, EndOf(usage)) + "\n" : "";
}

std::string OllamaWriter::Fail(const ApiError& error) {
  return WriteJson(OllamaError(error)) + "\n";
}

std::string OllamaWriter::Whole(const TurnUsage& usage) { return AsText(whole_, EndOf(usage)); }

OllamaEmbeddingWriter::OllamaEmbeddingWriter(const TurnRequest& request, bool is_single)
    : model_(request.model), is_single_(is_single), embeddings_(request.plain_prompts.size()) {}

void OllamaEmbeddingWriter::AddEmbedding(int choice, std::vector<float> embedding) {
  embeddings_[static_cast<size_t>(choice)] = std::move(embedding);
}

std::string OllamaEmbeddingWriter::Whole(const TurnUsage& usage) {
  JsonArray all;
  for (const std::vector<float>& embedding : embeddings_) {
    JsonArray numbers;
    for (const float number : embedding) numbers.emplace_back(static_cast<double>(number));
    all.push_back(std::move(numbers));
  }
  if (is_single_) return WriteJson(JsonObject{{"embedding", std::move(all.front())}});
  return WriteJson(JsonObject{{"model", model_},
                              {"embeddings", std::move(all)},
                              {"total_duration", Nanoseconds(usage.total_us)},
                              {"load_duration", 0},
                              {"prompt_eval_count", usage.prompt_tokens}});
}

}  // namespace hearth
