// SPDX-License-Identifier: Apache-2.0
#include "talk/session.h"

#include <filesystem>
#include <map>
#include <utility>

#include "base/terminal.h"
#include "talk/settings.h"
#include "talk/transcript.h"

namespace hearth {
namespace {

bool SaysNothing(const Message& message) {
  return message.content.empty() && message.reasoning.empty() && message.tool_calls.empty();
}

const char* NoteFor(TurnEnd end) {
  switch (end) {
    case TurnEnd::kStop:
      break;
    case TurnEnd::kLength:
      return "[stopped: the reply reached --max-tokens]";
    case TurnEnd::kContext:
      return "[stopped: the context is full]";
    case TurnEnd::kInterrupted:
      return "[interrupted]";
  }
  return "";
}

// What follows a command that takes nothing may be the message that somebody meant to send.
std::string Surplus(const std::string& name, const std::string& arguments) {
  if (arguments.empty()) return "";
  for (const SlashCommand& row : SlashCommands()) {
    if (name != row.name || row.arguments[0] != '\0') continue;
    return "/" + name + " takes no arguments; // sends a message that starts with a slash";
  }
  return "";
}

}  // namespace

TalkSession::TalkSession(AnswererSource& source, std::string name,
                         std::unique_ptr<Answerer> answerer, TalkSettings settings,
                         SessionPlaces places)
    : source_(source),
      answerer_(std::move(answerer)),
      given_name_(std::move(name)),
      settings_(settings),
      places_(std::move(places)) {}

void TalkSession::SetSystem(const std::string& text) {
  std::vector<Message>& messages = conversation_.messages;
  if (!messages.empty() && messages[0].role == Role::kSystem) messages.erase(messages.begin());
  if (text.empty()) return;
  Message message;
  message.role = Role::kSystem;
  message.content = text;
  messages.insert(messages.begin(), std::move(message));
}

size_t TalkSession::LastUserMessage() const {
  for (size_t i = conversation_.messages.size(); i > 0; --i) {
    if (conversation_.messages[i - 1].role == Role::kUser) return i - 1;
  }
  return std::string::npos;
}

void TalkSession::Sum(const TurnFigures& figures) {
  ++num_turns_;
  last_ = figures;
  sum_.num_prompt += figures.num_prompt;
  sum_.num_cached += figures.num_cached;
  sum_.num_generated += figures.num_generated;
  sum_.total_s += figures.total_s;
}

// A change of models that failed twice leaves none.
Status TalkSession::CheckAnswerer() const {
  if (answerer_ != nullptr) return Status();
  return Error(Code::kInvalid, "no model is loaded; /model NAME loads one");
}

// The reply to what stands there; it is not added when nothing was said.
Result<TurnEnd> TalkSession::Turn() {
  HEARTH_TRY(CheckAnswerer());
  conversation_.reasoning_effort = settings_.effort;
  places_.interrupted = false;
  places_.view.Begin(settings_.reasoning);
  Result<TurnResult> result = answerer_->Answer(
      conversation_, settings_,
      {[this](ReplyEvent::Kind kind, const std::string& text) { places_.view.Hear(kind, text); },
       [this] { places_.view.Wait(); }},
      places_.interrupted);
  places_.view.End();
  if (!result.ok()) return std::move(result).status();
  const bool is_nothing = result->end == TurnEnd::kInterrupted && SaysNothing(result->message);
  if (is_nothing) return Status(Code::kCancelled, "[interrupted; the message was taken back]");
  result->message.role = Role::kAssistant;
  conversation_.messages.push_back(std::move(result->message));
  Sum(result->figures);
  if (result->end != TurnEnd::kStop) places_.note(NoteFor(result->end));
  places_.figures(FiguresLine(result->figures));
  return result->end;
}

Result<TurnEnd> TalkSession::Say(const std::string& text) {
  Message user;
  user.content = text;
  for (const Attachment& file : attachments_) {
    user.content = WithFile(user.content, file.name, file.text);
  }
  conversation_.messages.push_back(std::move(user));
  Result<TurnEnd> end = Turn();
  if (end.ok()) {
    attachments_.clear();
  } else {
    conversation_.messages.pop_back();
  }
  return end;
}

bool TalkSession::Run(const std::string& command, const std::string& arguments) {
  const std::string name = KnownCommand(command);
  const std::string problem = name.empty() ? UnknownCommand(command) : Surplus(name, arguments);
  if (!problem.empty()) {
    places_.note(problem);
    return true;
  }
  if (name == "bye") return false;
  const Status status = Dispatch(name, arguments);
  if (!status.ok()) places_.note(status.message());
  return true;
}

Status TalkSession::Dispatch(const std::string& command, const std::string& arguments) {
  using Action = std::function<Status()>;
  const std::map<std::string, Action> actions = {
      {"help",
       [&] {
         places_.note(SlashHelp());
         return Status();
       }},
      {"system", [&] { return RunSystem(arguments); }},
      {"model", [&] { return RunModel(arguments); }},
      {"set", [&] { return RunSet(arguments); }},
      {"retry", [&] { return RunRetry(); }},
      {"undo", [&] { return RunUndo(); }},
      {"save", [&] { return RunSave(arguments); }},
      {"load", [&] { return RunLoad(arguments); }},
      {"file", [&] { return RunFile(arguments); }},
      {"thoughts", [&] { return RunThoughts(); }},
      {"stats", [&] { return RunStats(); }},
  };
  const auto found = actions.find(command);
  HEARTH_CHECK(found != actions.end());  // every known command has its line above
  return found->second();
}

Status TalkSession::RunSystem(const std::string& text) {
  if (!text.empty()) {
    SetSystem(text == "clear" ? "" : text);
    places_.note(text == "clear" ? "system prompt removed" : "system prompt set");
    return Status();
  }
  const auto& messages = conversation_.messages;
  const bool has_one = !messages.empty() && messages[0].role == Role::kSystem;
  places_.note(has_one ? ForTerminal(messages[0].content) : "no system prompt");
  return Status();
}

// The old model goes before the new one comes: both may not fit.
Status TalkSession::RunModel(const std::string& name) {
  if (!name.empty()) {
    HEARTH_TRY(source_.Find(name));
    places_.note("loading " + ForTerminal(name));
    answerer_.reset();
    Result<std::unique_ptr<Answerer>> opened = source_.Open(name);
    if (!opened.ok()) {
      Result<std::unique_ptr<Answerer>> before = source_.Open(given_name_);
      if (before.ok()) answerer_ = *std::move(before);
      return std::move(opened).status();
    }
    answerer_ = *std::move(opened);
    given_name_ = name;
  }
  HEARTH_TRY(CheckAnswerer());
  places_.note(Greeting());
  return Status();
}

std::string TalkSession::Greeting() const {
  std::string line = answerer_->name() + " " + answerer_->place();
  if (answerer_->max_context() > 0) {
    line += Printf(", %d tokens of context", answerer_->max_context());
  }
  return line;
}

Status TalkSession::RunSet(const std::string& arguments) {
  if (arguments.empty()) {
    places_.note(ListSettings(settings_));
    return Status();
  }
  const size_t space = arguments.find_first_of(" \t=");
  const size_t value = std::min(arguments.find_first_not_of(" \t=", space), arguments.size());
  if (space == std::string::npos || value == arguments.size()) {
    return Error(Code::kInvalid, "expected a name and a value, such as /set temperature 0.2");
  }
  HEARTH_TRY(CheckAnswerer());
  TalkSettings changed = settings_;
  HEARTH_TRY(SetSetting(arguments.substr(0, space), arguments.substr(value), changed));
  HEARTH_TRY(answerer_->Check(changed));
  settings_ = changed;
  places_.note(arguments.substr(0, space) + " is now " + arguments.substr(value));
  return Status();
}

Status TalkSession::RunRetry() {
  const size_t last = LastUserMessage();
  if (last == std::string::npos) return Error(Code::kInvalid, "there is no message to answer");
  std::vector<Message>& messages = conversation_.messages;
  const auto replies = messages.begin() + static_cast<std::ptrdiff_t>(last) + 1;
  const std::vector<Message> before(replies, messages.end());
  messages.erase(replies, messages.end());
  Result<TurnEnd> end = Turn();
  if (end.ok()) return Status();
  messages.insert(messages.end(), before.begin(), before.end());
  if (end.status().code() == Code::kCancelled) {
    places_.note("[interrupted; the conversation is as it was]");
    return Status();
  }
  return std::move(end).status();
}

Status TalkSession::RunUndo() {
  const size_t last = LastUserMessage();
  if (last == std::string::npos) return Error(Code::kInvalid, "there is nothing to take back");
  const std::string text = conversation_.messages[last].content;
  conversation_.messages.resize(last);
  const std::string line = text.substr(0, text.find('\n'));
  places_.note("taken back: " + Quoted(line));
  return Status();
}

Status TalkSession::RunSave(std::string path) {
  bool may_replace = path == own_file_;
  if (path.starts_with("-f ")) {
    may_replace = true;
    path.erase(0, path.find_first_not_of(' ', 2));
  }
  HEARTH_TRY(SaveConversation(path, conversation_, may_replace));
  own_file_ = path;
  places_.note(
      Printf("%zu messages saved to %s", conversation_.messages.size(), ForTerminal(path).c_str()));
  return Status();
}

Status TalkSession::RunLoad(const std::string& path) {
  if (path.empty()) return Error(Code::kInvalid, "expected the name of a file");
  HEARTH_ASSIGN(conversation_, LoadConversation(path));
  own_file_ = path;
  places_.note(Printf("%zu messages loaded from %s", conversation_.messages.size(),
                      ForTerminal(path).c_str()));
  return Status();
}

Status TalkSession::RunFile(const std::string& path) {
  HEARTH_ASSIGN(std::string text, ReadAttachment(path));
  const std::string name = std::filesystem::path(path).filename().string();
  places_.note(
      Printf("%s (%zu bytes) goes with the next message", ForTerminal(name).c_str(), text.size()));
  attachments_.push_back({name, std::move(text)});
  return Status();
}

Status TalkSession::RunThoughts() {
  const auto& messages = conversation_.messages;
  const bool has_some = !messages.empty() && !messages.back().reasoning.empty();
  places_.note(has_some ? ForTerminal(messages.back().reasoning)
                        : "the last reply has no reasoning");
  return Status();
}

Status TalkSession::RunStats() {
  std::string text =
      Printf("%d %s: %d tokens generated, %d prompt tokens, %d of them cached, %.1f s", num_turns_,
             num_turns_ == 1 ? "reply" : "replies", sum_.num_generated, sum_.num_prompt,
             sum_.num_cached, sum_.total_s);
  const int used = last_.num_prompt + last_.num_generated;
  if (answerer_ != nullptr && answerer_->max_context() > 0) {
    text +=
        Printf("\ncontext: %d of %d tokens after the last reply", used, answerer_->max_context());
  }
  places_.note(text);
  return Status();
}

}  // namespace hearth
