// SPDX-License-Identifier: Apache-2.0
// What a typed line is: a message to the model, or a command to the program.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>
namespace hearth {

struct TypedLine {
  enum class Kind : unsigned char { kNothing, kMessage, kCommand };
  Kind kind = Kind::kNothing;
  std::string text;     // the message, or what follows the command
  std::string command;  // without its slash; need not be a known one
};

// `/word` is a command, `//…` a message that starts with one slash, and everything else a message:
// `/usr/bin` too, which is no word.
TypedLine ReadTyped(std::string_view line);

struct SlashCommand {
  const char* name;
  const char* arguments;  // as shown in the help
  const char* help;
};
std::span<const SlashCommand> SlashCommands();

// The command's full name; empty when there is none. Other names for the same are known.
std::string KnownCommand(std::string_view command);
// "unknown command /hlep; did you mean /help?"
std::string UnknownCommand(std::string_view command);
// One line for each command.
std::string SlashHelp();
// The commands that begin so, with their slashes; for completion.
std::vector<std::string> CommandsStartingWith(std::string_view typed);

}  // namespace hearth
