// SPDX-License-Identifier: Apache-2.0
// Conversations as templates expect them, and replies as they come back.
#include "templates/jinja_format.h"

#include <algorithm>
#include <array>

#include "text/plain_tools.h"

namespace hearth {
namespace {

// Names that end an assistant's turn in some family. A model file names one end token, and often
// not the one its template writes.
constexpr std::array kTurnEnds = {"<|im_end|>", "<|eot_id|>",      "<|eom_id|>",      "<|end|>",
                                  "</s>",       "<|endoftext|>",   "<|end_of_text|>", "<eos>",
                                  "<|eos|>",    "<|end_of_turn|>", "<end_of_turn>"};

// Special tokens that are part of what a reply says; others are not shown.
bool IsReplyTag(std::string_view name) {
  constexpr std::array kTags = {"<think>", "</think>", "<tool_call>", "</tool_call>",
                                "<|python_tag|>"};
  return std::find(kTags.begin(), kTags.end(), name) != kTags.end();
}

const char* RoleName(Role role) {
  switch (role) {
    case Role::kSystem:
    case Role::kDeveloper:  // the same person to every template seen
      return "system";
    case Role::kUser:
      return "user";
    case Role::kAssistant:
      return "assistant";
    case Role::kTool:
      return "tool";
  }
  return "user";
}

// Templates dump arguments as JSON, so they get the object, unless the model wrote none.
Json Arguments(const std::string& text) {
  auto parsed = ParseJson(text);
  if (parsed.ok() && parsed->object() != nullptr) return MarkJson(*parsed);
  return Mark(text);
}

Json MessageContext(const Message& message) {
  JsonObject context;
  context.push_back({"role", RoleName(message.role)});
  context.push_back({"content", Mark(message.content)});
  if (!message.reasoning.empty()) {
    // Two names are in use; templates look for one of them.
    context.push_back({"reasoning_content", Mark(message.reasoning)});
    context.push_back({"thinking", Mark(message.reasoning)});
  }
  if (!message.tool_calls.empty()) {
    JsonArray calls;
    for (const ToolCall& call : message.tool_calls) {
      JsonObject function = {{"name", Mark(call.name)}, {"arguments", Arguments(call.arguments)}};
      calls.push_back(JsonObject{
          {"type", "function"}, {"id", Mark(call.id)}, {"function", std::move(function)}});
    }
    context.push_back({"tool_calls", std::move(calls)});
  }
  if (!message.name.empty()) context.push_back({"name", Mark(message.name)});
  if (!message.tool_call_id.empty()) {
    context.push_back({"tool_call_id", Mark(message.tool_call_id)});
  }
  return context;
}

Json ToolContext(const ToolDefinition& tool) {
  JsonObject function = {{"name", Mark(tool.name)}};
  function.push_back({"description", Mark(tool.description)});
  if (!tool.parameters.is_null()) function.push_back({"parameters", MarkJson(tool.parameters)});
  return JsonObject{{"type", "function"}, {"function", std::move(function)}};
}

// The spelling of a token of the vocabulary: the template's own, so not marked.
Json TokenName(const Tokenizer& tokenizer, std::optional<Token> token) {
  if (!token) return "";
  return tokenizer.Bytes(*token);
}

// `size` digits at `at`, or -1.
int Digits(std::string_view text, size_t at, size_t size) {
  int number = 0;
  for (const char c : text.substr(at, size)) {
    if (c < '0' || c > '9') return -1;
    number = number * 10 + (c - '0');
  }
  return number;
}

// Seconds since 1970 of YYYY-MM-DD, 00:00.
Result<int64_t> SecondsOf(const std::string& date) {
  const bool is_date = date.size() == 10 && date[4] == '-' && date[7] == '-';
  const int year = is_date ? Digits(date, 0, 4) : -1;
  const int month = is_date ? Digits(date, 5, 2) : 0, day = is_date ? Digits(date, 8, 2) : 0;
  if (year < 0 || month < 1 || month > 12 || day < 1 || day > 31) {
    return Error(Code::kInvalid, "date %s: expected YYYY-MM-DD", Quoted(date).c_str());
  }
  // Days since 1970-01-01 in the proleptic Gregorian calendar, years counted from March.
  const int64_t y = year - (month <= 2 ? 1 : 0);
  const int64_t era = y / 400, year_of_era = y - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return (era * 146097 + day_of_era - 719468) * 86400;
}

std::set<std::string, std::less<>> WordsOf(std::string_view source) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  std::set<std::string, std::less<>> words;
  for (size_t at = 0; at < source.size(); ++at) {
    const size_t begin = at;
    while (at < source.size() && is_word(source[at])) ++at;
    if (at > begin) words.emplace(source.substr(begin, at - begin));
  }
  return words;
}

// Some templates leave an assistant's last message out: its author would never notice.
Status CheckLastShown(const Conversation& conversation, std::string_view rendered) {
  if (conversation.messages.empty()) return Status();
  const Message& last = conversation.messages.back();
  if (last.role != Role::kAssistant) return Status();
  const size_t begin = std::min(last.content.find_first_not_of(" \t\r\n"), last.content.size());
  const size_t end = last.content.find_last_not_of(" \t\r\n") + 1;
  const std::string solid = last.content.substr(begin, end - std::min(begin, end));
  if (rendered.find(Mark(solid)) != std::string_view::npos) return Status();
  return Error(
      Code::kInvalid,
      "messages: the last message is the assistant's, and the model's chat template leaves "
      "it out; end with a user message");
}

class TextReplyReader : public ReplyReader {
 public:
  TextReplyReader(const Tokenizer& tokenizer, ToolCallStyle style, ToolCallParser::Begins begins)
      : tokenizer_(tokenizer), parser_(style, begins) {}

  void Feed(Token token, std::vector<ReplyEvent>& out) override {
    if (token < 0 || token >= tokenizer_.vocab_size()) return;
    const std::string_view bytes = tokenizer_.Bytes(token);
    if (!tokenizer_.IsSpecial(token) || IsReplyTag(bytes)) parser_.Feed(bytes, out);
  }
  void Finish(std::vector<ReplyEvent>& out) override { parser_.Finish(out); }

 private:
  const Tokenizer& tokenizer_;
  ToolCallParser parser_;
};

}  // namespace

std::string TemplateContext(const Conversation& conversation, const Tokenizer& tokenizer) {
  JsonArray messages, tools;
  for (const Message& message : conversation.messages) messages.push_back(MessageContext(message));
  for (const ToolDefinition& tool : conversation.tools) tools.push_back(ToolContext(tool));
  const TokenizerTraits& traits = tokenizer.traits();
  JsonObject context;
  context.push_back({"messages", std::move(messages)});
  context.push_back({"tools", tools.empty() ? Json() : Json(std::move(tools))});
  context.push_back({"documents", Json()});
  context.push_back({"add_generation_prompt", !conversation.continues_last});
  context.push_back({"bos_token", TokenName(tokenizer, traits.bos)});
  context.push_back({"eos_token", TokenName(tokenizer, traits.eos)});
  if (conversation.reasoning_effort) {
    constexpr std::array kEfforts = {"low", "medium", "high"};
    context.push_back(
        {"reasoning_effort", kEfforts[static_cast<size_t>(*conversation.reasoning_effort)]});
  }
  // Last, and never in the place of one above.
  const Json known(context);
  for (const auto& [name, value] : conversation.template_variables) {
    if (known.Find(name) == nullptr) context.push_back({name, MarkJson(value)});
  }
  return WriteJson(context);
}

JinjaChatFormat::JinjaChatFormat(TemplateProgram program, const Tokenizer& tokenizer)
    : program_(std::move(program)), tokenizer_(tokenizer), finder_(tokenizer) {
  if (tokenizer.traits().eos) stop_tokens_.push_back(*tokenizer.traits().eos);
  for (const char* name : kTurnEnds) {
    const auto token = tokenizer.Special(name);
    if (token &&
        std::find(stop_tokens_.begin(), stop_tokens_.end(), *token) == stop_tokens_.end()) {
      stop_tokens_.push_back(*token);
    }
  }
}

Result<std::unique_ptr<JinjaChatFormat>> JinjaChatFormat::Make(std::string_view source,
                                                               const Tokenizer& tokenizer,
                                                               const TemplateLimits& limits) {
  HEARTH_ASSIGN(TemplateProgram program, TemplateProgram::Compile(source, limits));
  std::unique_ptr<JinjaChatFormat> format(new JinjaChatFormat(std::move(program), tokenizer));
  format->words_ = WordsOf(source);
  format->tool_call_style_ = ToolCallStyleOf(source);
  format->has_reasoning_effort_ = source.find("reasoning_effort") != std::string_view::npos;
  // A prompt shows whether the model begins its reply inside a thought. Some templates refuse this
  // one (no tools, no system message), and say so again when asked to.
  Conversation hello;
  hello.messages.emplace_back().content = "Hello";
  format->has_system_ = format->ShowsSystem();
  auto prompt = format->Render(hello, {.date = "2024-01-01"});
  if (prompt.ok()) format->begins_in_reasoning_ = format->EndsInThought(*prompt);
  return format;
}

Result<std::string> JinjaChatFormat::Run(const Conversation& conversation,
                                         const RenderOptions& options) const {
  std::optional<int64_t> now;
  if (!options.date.empty()) {
    HEARTH_ASSIGN(now, SecondsOf(options.date));
  }
  return program_.Run(TemplateContext(conversation, tokenizer_), now);
}

Result<std::vector<PromptPiece>> JinjaChatFormat::RenderPieces(const Conversation& conversation,
                                                               const RenderOptions& options) const {
  HEARTH_ASSIGN(const std::string rendered, Run(conversation, options));
  return finder_.Split(rendered);
}

// The last message is rendered with an end of its own, and all that the template writes from there
// on is cut off. An end that nobody wrote: it is looked for in every message first.
Result<std::string> JinjaChatFormat::RenderOpen(Conversation conversation,
                                                const RenderOptions& options) const {
  const std::string content = conversation.messages.back().content;
  std::string end;
  const auto has_end = [&end](const Message& message) {
    return message.content.find(end) != std::string::npos;
  };
  int number = 0;
  do {
    end = Printf("\xee\x82\xb7%d\xee\x82\xb7", number++);  // U+E0B7: no template changes it
  } while (std::any_of(conversation.messages.begin(), conversation.messages.end(), has_end));
  conversation.messages.back().content += end;
  HEARTH_ASSIGN(std::string rendered, Run(conversation, options));
  const size_t at = rendered.find(Mark(end));
  const bool is_once = at != std::string::npos && at == rendered.rfind(Mark(end));
  if (!is_once || !std::string_view(rendered).substr(0, at).ends_with(Mark(content))) {
    return Error(
        Code::kInvalid,
        "messages: the last message is the assistant's, and the model's chat template does "
        "not show it as it was sent, so that it cannot be continued; end with a user "
        "message");
  }
  rendered.resize(at);
  return rendered;
}

Result<std::vector<Token>> JinjaChatFormat::Render(const Conversation& conversation,
                                                   const RenderOptions& options) const {
  if (!has_tool_calls() && MentionsTools(conversation)) {
    return Render(WithPlainTools(conversation, has_system_), options);
  }
  if (conversation.continues_last) {
    HEARTH_ASSIGN(const std::string open, RenderOpen(conversation, options));
    return TokensOf(finder_.Split(open));
  }
  HEARTH_ASSIGN(const std::string rendered, Run(conversation, options));
  HEARTH_TRY(CheckLastShown(conversation, rendered));
  return TokensOf(finder_.Split(rendered));
}

std::vector<Token> JinjaChatFormat::TokensOf(const std::vector<PromptPiece>& pieces) const {
  std::vector<Token> tokens;
  for (const PromptPiece& piece : pieces) {
    if (piece.special) {
      tokens.push_back(*piece.special);
    } else if (tokens.empty()) {
      tokenizer_.Encode(piece.text, tokens);
    } else {
      tokenizer_.EncodeMore(piece.text, tokens);
    }
  }
  return tokens;
}

bool JinjaChatFormat::ShowsSystem() const {
  constexpr const char* kWords = "Speak like a lighthouse.";
  Conversation told;
  told.messages.emplace_back().role = Role::kSystem;
  told.messages[0].content = kWords;
  told.messages.emplace_back().content = "Hello";
  auto pieces = RenderPieces(told, {.date = "2024-01-01"});
  std::string text;
  for (const PromptPiece& piece : pieces.ok() ? *pieces : std::vector<PromptPiece>()) {
    text += piece.text;
  }
  return text.find(kWords) != std::string::npos;
}

bool JinjaChatFormat::EndsInThought(std::span<const Token> prompt) const {
  // Where the tag is a token, text that spells it is none.
  const auto tag = tokenizer_.Special("<think>");
  std::string tail;
  while (!prompt.empty() && tail.size() < 16) {
    const std::string_view bytes = tokenizer_.Bytes(prompt.back());
    if (prompt.back() == tag) return tail.find_first_not_of(" \n") == std::string::npos;
    tail.insert(0, bytes);
    prompt = prompt.first(prompt.size() - 1);
  }
  tail.erase(tail.find_last_not_of(" \n") + 1);
  return !tag && tail.ends_with("<think>");
}

bool JinjaChatFormat::has_variable(std::string_view name) const { return words_.contains(name); }

ReplyStart JinjaChatFormat::StartOf(const Conversation& conversation,
                                    std::span<const Token> prompt) const {
  ReplyStart start;
  start.has_generic_calls = !has_tool_calls() && !conversation.tools.empty();
  start.begins_in_answer = conversation.continues_last;
  if (!conversation.continues_last) {
    start.begins_in_reasoning = EndsInThought(prompt);
    return start;
  }
  tokenizer_.EncodeMore(conversation.messages.back().content, start.said);
  return start;
}

std::unique_ptr<ReplyReader> JinjaChatFormat::NewReader() const {
  return NewReaderAt({.begins_in_reasoning = begins_in_reasoning_});
}

std::unique_ptr<ReplyReader> JinjaChatFormat::NewReaderAt(const ReplyStart& start) const {
  using Begins = ToolCallParser::Begins;
  const Begins begins = start.begins_in_reasoning ? Begins::kInReasoning
                        : start.begins_in_answer  ? Begins::kInAnswer
                                                  : Begins::kReply;
  const ToolCallStyle style = start.has_generic_calls ? ToolCallStyle::kGeneric : tool_call_style_;
  return std::make_unique<TextReplyReader>(tokenizer_, style, begins);
}

}  // namespace hearth
