// SPDX-License-Identifier: Apache-2.0
#include "talk/slash.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace hearth {
namespace {

using Kind = TypedLine::Kind;

TEST(Slash, ACommandIsASlashAndAWord) {
  for (const auto& [line, command, rest] : std::vector<std::array<std::string, 3>>{
           {"/help", "help", ""},
           {"  /set temperature 0.5 ", "set", "temperature 0.5"},
           {"/system be\nbrief", "system", "be\nbrief"},
           {"/hlep", "hlep", ""},
           {"/?", "?", ""}}) {
    const TypedLine typed = ReadTyped(line);
    EXPECT_EQ(typed.kind, Kind::kCommand) << line;
    EXPECT_EQ(typed.command, command);
    EXPECT_EQ(typed.text, rest);
  }
}

TEST(Slash, EverythingElseIsAMessage) {
  for (const auto& [line, message] : std::vector<std::array<std::string, 2>>{
           {"hello /help", "hello /help"},
           {"//etc/passwd is what?", "/etc/passwd is what?"},
           {"//help", "/help"},
           {"/usr/bin/env", "/usr/bin/env"},
           {"/2 of them", "/2 of them"},
           {"/", "/"},
           {"    indented\n  code \n", "    indented\n  code"}}) {
    const TypedLine typed = ReadTyped(line);
    EXPECT_EQ(typed.kind, Kind::kMessage) << line;
    EXPECT_EQ(typed.text, message);
  }
  EXPECT_EQ(ReadTyped(" \t\n").kind, Kind::kNothing);
  EXPECT_EQ(ReadTyped("").kind, Kind::kNothing);
}

TEST(Slash, KnowsItsNamesAndTheOthers) {
  for (const SlashCommand& row : SlashCommands()) EXPECT_EQ(KnownCommand(row.name), row.name);
  EXPECT_EQ(KnownCommand("exit"), "bye");
  EXPECT_EQ(KnownCommand("quit"), "bye");
  EXPECT_EQ(KnownCommand("?"), "help");
  EXPECT_EQ(KnownCommand("hel"), "");
  EXPECT_EQ(KnownCommand("Help"), "");
}

TEST(Slash, UnknownCommandsNameNearOnes) {
  EXPECT_EQ(UnknownCommand("hlep"), "unknown command /hlep; did you mean /help?");
  EXPECT_EQ(UnknownCommand("rerty"), "unknown command /rerty; did you mean /retry?");
  EXPECT_EQ(UnknownCommand("stat"), "unknown command /stat; did you mean /stats?");
  EXPECT_NE(UnknownCommand("zzzzzz").find("/help lists"), std::string::npos);
  EXPECT_EQ(UnknownCommand("zzzzzz").find("did you mean"), std::string::npos);
}

TEST(Slash, HelpHasALineForEach) {
  const std::string help = SlashHelp();
  for (const SlashCommand& row : SlashCommands()) {
    EXPECT_NE(help.find(std::string("/") + row.name + " "), std::string::npos) << row.name;
    EXPECT_NE(help.find(row.help), std::string::npos) << row.name;
  }
}

TEST(Slash, Completion) {
  EXPECT_EQ(CommandsStartingWith("/h"), std::vector<std::string>{"/help"});
  EXPECT_EQ(CommandsStartingWith("/s"),
            (std::vector<std::string>{"/system", "/set", "/save", "/stats"}));
  EXPECT_TRUE(CommandsStartingWith("h").empty());
}

}  // namespace
}  // namespace hearth
