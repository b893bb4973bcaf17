// SPDX-License-Identifier: Apache-2.0
// Conversation -> harmony messages -> tokens. Which bytes are encoded together decides the tokens,
// so the writer keeps to the units of training: author, " to=recipient", channel, content.
#include <optional>
#include <string_view>

#include "text/harmony.h"
#include "text/harmony_tools.h"

namespace hearth {
namespace {

constexpr std::string_view kChannelsLine =
    "# Valid channels: analysis, commentary, final. Channel must be included for every message.";
constexpr std::string_view kRoutingLine =
    "Calls to these tools must go to the commentary channel: 'functions'.";

// One message as harmony has it. Clients' messages become one or more of these.
struct Turn {
  Role role = Role::kUser;
  std::string author{};        // what stands after start
  std::string name{};          // of one participant among several
  std::string recipient{};     // empty: everybody
  std::string_view channel{};  // empty: none
  bool has_json_arguments = false;
  std::string content{};
};

std::string SystemText(const Conversation& conversation, const HarmonyOptions& options) {
  std::string text = options.identity;
  if (!options.knowledge_cutoff.empty()) text += "\nKnowledge cutoff: " + options.knowledge_cutoff;
  if (!options.date.empty()) text += "\nCurrent date: " + options.date;
  switch (conversation.reasoning_effort.value_or(ReasoningEffort::kMedium)) {
    case ReasoningEffort::kLow:
      text += "\n\nReasoning: low";
      break;
    case ReasoningEffort::kMedium:
      text += "\n\nReasoning: medium";
      break;
    case ReasoningEffort::kHigh:
      text += "\n\nReasoning: high";
      break;
  }
  text.append("\n\n").append(kChannelsLine);
  if (!conversation.tools.empty()) text.append("\n").append(kRoutingLine);
  return text;
}

bool IsInstruction(const Message& message) {
  return message.role == Role::kSystem || message.role == Role::kDeveloper;
}

std::string AnswerSection(const AnswerFormat& answer) {
  std::string text = "# Response Formats\n\n## " + answer.name + "\n\n";
  if (!answer.description.empty()) text += "// " + answer.description + "\n";
  return text + WriteJson(answer.schema);
}

Turn DeveloperTurn(const std::string& instructions, const std::vector<ToolDefinition>& tools,
                   const AnswerFormat* answer) {
  Turn turn{.role = Role::kDeveloper, .author = "developer"};
  const auto add = [&turn](const std::string& section) {
    if (!turn.content.empty()) turn.content += "\n\n";
    turn.content += section;
  };
  if (!instructions.empty()) add("# Instructions\n\n" + instructions);
  if (!tools.empty()) add(HarmonyToolsSection(tools));
  if (answer != nullptr) add(AnswerSection(*answer));
  return turn;
}

// Thought, then what was said aloud, then the calls. Words beside calls are not the answer yet:
// they go to commentary, where the user sees them and the turn stays open.
void AssistantTurns(const Message& message, std::vector<Turn>& out) {
  Turn turn{.role = Role::kAssistant, .author = "assistant", .name = message.name};
  if (!message.reasoning.empty()) {
    turn.channel = "analysis";
    turn.content = message.reasoning;
    out.push_back(turn);
  }
  const bool has_calls = !message.tool_calls.empty();
  if (!message.content.empty() || (!has_calls && message.reasoning.empty())) {
    turn.channel = has_calls ? "commentary" : "final";
    turn.content = message.content;
    out.push_back(turn);
  }
  turn.channel = "commentary";
  turn.has_json_arguments = true;
  for (const ToolCall& call : message.tool_calls) {
    turn.recipient = "functions." + call.name;
    turn.content = call.arguments;
    out.push_back(turn);
  }
}

Status AppendTurns(const Message& message, std::vector<Turn>& out) {
  switch (message.role) {
    case Role::kSystem:
    case Role::kDeveloper:
      if (!message.content.empty()) out.push_back(DeveloperTurn(message.content, {}, nullptr));
      break;
    case Role::kUser:
      out.push_back(Turn{
          .role = Role::kUser, .author = "user", .name = message.name, .content = message.content});
      break;
    case Role::kAssistant:
      AssistantTurns(message, out);
      break;
    case Role::kTool:
      if (message.name.empty()) {
        return Error(Code::kInvalid, "a tool message does not name its tool");
      }
      out.push_back(Turn{.role = Role::kTool,
                         .author = "functions." + message.name,
                         .recipient = "assistant",
                         .channel = "commentary",
                         .content = message.content});
      break;
  }
  return {};
}

Result<std::vector<Turn>> ListTurns(const Conversation& conversation,
                                    const HarmonyOptions& options) {
  std::vector<Turn> turns;
  turns.push_back(Turn{
      .role = Role::kSystem, .author = "system", .content = SystemText(conversation, options)});
  // Instructions that open the conversation share one developer message with the tools and the form
  // of the answer.
  size_t next = 0;
  std::string instructions;
  for (; next < conversation.messages.size(); ++next) {
    const Message& message = conversation.messages[next];
    if (!IsInstruction(message)) break;
    if (!instructions.empty() && !message.content.empty()) instructions += "\n\n";
    instructions += message.content;
  }
  if (!instructions.empty() || !conversation.tools.empty() || options.answer != nullptr) {
    turns.push_back(DeveloperTurn(instructions, conversation.tools, options.answer));
  }
  for (; next < conversation.messages.size(); ++next) {
    HEARTH_TRY(AppendTurns(conversation.messages[next], turns));
  }
  return turns;
}

// Reasoning before this index belongs to turns that are over. A final answer ends its turn when
// the assistant says nothing more before the user does.
size_t EndOfFinishedTurns(const std::vector<Turn>& turns) {
  size_t finished = 0;
  size_t answer = 0;  // index of the open turn's final answer, 0 while it has none
  for (size_t i = 0; i < turns.size(); ++i) {
    if (turns[i].role == Role::kAssistant) answer = turns[i].channel == "final" ? i : 0;
    if (turns[i].role == Role::kUser && answer != 0) finished = answer;
  }
  return answer != 0 ? answer : finished;
}

class TurnWriter {
 public:
  TurnWriter(const Tokenizer& tokenizer, const HarmonyTokens& tokens)
      : tokenizer_(tokenizer), tokens_(tokens) {}

  void Write(const Turn& turn) {
    WriteOpen(turn);
    const bool is_call = turn.role == Role::kAssistant && !turn.recipient.empty();
    out_.push_back(is_call ? tokens_.call : tokens_.end);
  }
  // Without its end: more of it is to come.
  void WriteOpen(const Turn& turn) {
    Start(turn.author);
    if (!turn.name.empty()) Text(":" + turn.name);
    if (!turn.recipient.empty()) Text(" to=" + turn.recipient);
    if (!turn.channel.empty()) {
      out_.push_back(tokens_.channel);
      Text(turn.channel);
    }
    if (turn.has_json_arguments) {
      Text(" ");
      out_.push_back(tokens_.constrain);
      Text("json");
    }
    out_.push_back(tokens_.message);
    Text(turn.content);
  }
  void Start(std::string_view author) {
    out_.push_back(tokens_.start);
    Text(author);
  }
  std::vector<Token> Take() && { return std::move(out_); }

 private:
  void Text(std::string_view text) { tokenizer_.Encode(text, out_); }

  const Tokenizer& tokenizer_;
  const HarmonyTokens tokens_;
  std::vector<Token> out_;
};

}  // namespace

Result<HarmonyTokens> HarmonyTokens::Find(const Tokenizer& tokenizer) {
  HarmonyTokens found{};
  const std::pair<const char*, Token*> wanted[] = {
      {"<|start|>", &found.start},     {"<|message|>", &found.message},
      {"<|channel|>", &found.channel}, {"<|constrain|>", &found.constrain},
      {"<|end|>", &found.end},         {"<|call|>", &found.call},
      {"<|return|>", &found.finish},   {"<|endoftext|>", &found.end_of_text},
  };
  for (const auto& [name, token] : wanted) {
    const std::optional<Token> id = tokenizer.Special(name);
    if (!id)
      return Error(Code::kUnsupported, "the tokenizer has no token %s: not a harmony model", name);
    *token = *id;
  }
  return found;
}

Result<std::vector<Token>> RenderHarmony(const Conversation& conversation,
                                         const HarmonyOptions& options,
                                         const Tokenizer& tokenizer) {
  HEARTH_ASSIGN(const HarmonyTokens tokens, HarmonyTokens::Find(tokenizer));
  HEARTH_ASSIGN(std::vector<Turn> turns, ListTurns(conversation, options));
  std::optional<Turn> open;
  if (conversation.continues_last) {
    if (turns.back().channel != "final") {
      return Error(Code::kInvalid, "messages: only an answer in text can be continued");
    }
    open = std::move(turns.back());
    turns.pop_back();
  }
  const size_t finished = options.keeps_finished_reasoning ? 0 : EndOfFinishedTurns(turns);
  TurnWriter writer(tokenizer, tokens);
  for (size_t i = 0; i < turns.size(); ++i) {
    if (i < finished && turns[i].channel == "analysis") continue;
    writer.Write(turns[i]);
  }
  if (open) {
    writer.WriteOpen(*open);
  } else {
    writer.Start("assistant");
  }
  return std::move(writer).Take();
}

}  // namespace hearth
