// SPDX-License-Identifier: Apache-2.0
#include "talk/slash.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/near_match.h"
#include "base/result.h"

namespace hearth {
namespace {

constexpr std::array<SlashCommand, 12> kCommands = {{
    {"help", "", "this list"},
    {"system", "[TEXT|clear]", "show, set or remove the system prompt"},
    {"model", "[NAME]", "show which model answers, or continue with another"},
    {"set", "[NAME VALUE]", "show or change settings, such as /set temperature 0.2"},
    {"retry", "", "answer the last message again"},
    {"undo", "", "take back the last message and its reply"},
    {"save", "FILE", "save the conversation; -f FILE replaces any file"},
    {"load", "FILE", "continue a saved conversation"},
    {"file", "PATH", "attach a text file to the next message"},
    {"thoughts", "", "show the reasoning of the last reply"},
    {"stats", "", "tokens, speed and context so far"},
    {"bye", "", "end (also /exit, Ctrl-D, or Ctrl-C twice)"},
}};
constexpr std::array<std::pair<const char*, const char*>, 3> kOtherNames = {
    {{"exit", "bye"}, {"quit", "bye"}, {"?", "help"}}};

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '?' || c == '-' || c == '_';
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

// Two letters wrong, but never most of the word; or the beginning of a name.
bool IsNear(std::string_view typed, std::string_view name) {
  if (typed.size() >= 2 && name.starts_with(typed)) return true;
  return EditDistance(typed, name) <= std::min<size_t>(2, (name.size() + 1) / 3);
}

}  // namespace

TypedLine ReadTyped(std::string_view line) {
  const std::string_view text = Trimmed(line);
  if (text.empty()) return {};
  if (text.starts_with("//")) {
    return {TypedLine::Kind::kMessage, std::string(text.substr(1)), ""};
  }
  // The first line's indentation belongs to the message: it may be code.
  const TypedLine message{TypedLine::Kind::kMessage,
                          std::string(line.substr(0, line.find_last_not_of(" \t\r\n") + 1)), ""};
  if (text[0] != '/') return message;
  size_t end = 1;
  while (end < text.size() && IsWordByte(text[end])) ++end;
  const bool is_word = end > 1 && (end == text.size() || IsSpace(text[end]));
  if (!is_word) return message;
  return {TypedLine::Kind::kCommand, std::string(Trimmed(text.substr(end))),
          std::string(text.substr(1, end - 1))};
}

std::span<const SlashCommand> SlashCommands() { return kCommands; }

std::string KnownCommand(std::string_view command) {
  for (const SlashCommand& row : kCommands) {
    if (command == row.name) return row.name;
  }
  for (const auto& [other, name] : kOtherNames) {
    if (command == other) return name;
  }
  return "";
}

std::string UnknownCommand(std::string_view command) {
  std::string near;
  for (const SlashCommand& row : kCommands) {
    if (IsNear(command, row.name)) near += std::string(near.empty() ? "/" : " or /") + row.name;
  }
  const std::string what = "unknown command /" + std::string(command.substr(0, 40));
  if (!near.empty()) return what + "; did you mean " + near + "?";
  return what + "; /help lists the commands, and // sends a message that starts with a slash";
}

std::string SlashHelp() {
  std::string out;
  for (const SlashCommand& row : kCommands) {
    const std::string usage = std::string("/") + row.name + " " + row.arguments;
    out += Printf("%-24s %s\n", usage.c_str(), row.help);
  }
  out += Printf("%-24s %s\n", "//TEXT", "a message that starts with a slash");
  out += Printf("%-24s %s\n", "\"\"\"", "begins and ends a message of several lines");
  out += Printf("%-24s %s\n", "Alt-Enter", "a new line inside the message");
  return out;
}

std::vector<std::string> CommandsStartingWith(std::string_view typed) {
  std::vector<std::string> found;
  for (const SlashCommand& row : kCommands) {
    const std::string name = std::string("/") + row.name;
    if (name.starts_with(typed)) found.push_back(name);
  }
  return found;
}

}  // namespace hearth
