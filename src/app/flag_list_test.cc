// SPDX-License-Identifier: Apache-2.0
#include "app/flag_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <set>

#include "app/commands.h"
#include "app/flag_checks.h"

namespace hearth {
namespace {

using ::testing::ElementsAre;

const Flag* Find(const std::vector<CommandFlags>& commands, const std::string& variable) {
  for (const CommandFlags& command : commands) {
    for (const Flag& flag : command.flags) {
      if (flag.variable == variable) return &flag;
    }
  }
  return nullptr;
}

class FlagListTest : public ::testing::Test {
 protected:
  FlagListTest() {
    CLI::App* outer = app_.add_subcommand("outer", "An outer command");
    outer->add_option("--max-things", number_, "How many")->check(Between(1, 9));
    outer->add_flag("--quick", is_quick_, "Be quick");
    outer->add_option("--old", text_, "Out of use")->group("");
    outer->add_option("file", text_, "A file")->required();
    auto* group = outer->add_option_group("source")->require_option(1);
    group->add_option("--names", names_, "Names");
    CLI::App* inner = outer->add_subcommand("in-ner", "An inner command");
    inner->add_option("--mode", text_, "Mode")->check(CLI::IsMember({"a", "b"}));
    inner->add_option("--kv", bytes_, "Memory")
        ->option_text("SIZE")
        ->transform(CLI::AsSizeValue(false));
    inner->add_option("--nodes", number_, "Nodes");
    inner->add_option("--model,model", text_, "With or without its name");
    app_.add_subcommand("docs", "Hidden")->group("")->add_subcommand("below", "Below it");
  }
  CLI::App app_;
  int number_ = 0;
  bool is_quick_ = false;
  uint64_t bytes_ = 0;
  std::string text_;
  std::vector<std::string> names_;
};

TEST_F(FlagListTest, FindsNestedCommandsGroupsAndPositionals) {
  const std::vector<CommandFlags> all = ListFlags(app_);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].name, "outer");
  EXPECT_EQ(all[1].name, "outer in-ner");
  EXPECT_EQ(all[1].section, "outer.in-ner");
  std::vector<std::string> keys;
  for (const Flag& flag : all[0].flags) keys.push_back(flag.key);
  ASSERT_THAT(keys, ElementsAre("max-things", "quick", "names")) << "no hidden one, no --help";
  ASSERT_EQ(all[0].positionals.size(), 1u);
  ASSERT_EQ(all[1].positionals.size(), 1u);
  EXPECT_EQ(all[1].flags.back().option, all[1].positionals[0]) << "a flag that needs no name";
  EXPECT_EQ(all[0].flags[2].owner->get_require_option_max(), 1u) << "the group, not the command";
}

TEST_F(FlagListTest, NamesVariablesAndKinds) {
  const std::vector<CommandFlags> all = ListFlags(app_);
  const Flag* number = Find(all, "HEARTH_OUTER_MAX_THINGS");
  const Flag* quick = Find(all, "HEARTH_OUTER_QUICK");
  const Flag* names = Find(all, "HEARTH_OUTER_NAMES");
  const Flag* mode = Find(all, "HEARTH_OUTER_IN_NER_MODE");
  const Flag* kv = Find(all, "HEARTH_OUTER_IN_NER_KV");
  const Flag* nodes = Find(all, "HEARTH_OUTER_IN_NER_NODES");
  ASSERT_TRUE(number && quick && names && mode && kv && nodes);
  EXPECT_EQ(TypeWords(*number), "whole number [1..9]");
  EXPECT_EQ(TypeWords(*quick), "switch");
  EXPECT_EQ(TypeWords(*names), "list: text");
  EXPECT_EQ(TypeWords(*mode), "text {a,b}");
  EXPECT_EQ(TypeWords(*kv), "size");
  EXPECT_EQ(ValueName(*number), "N");
  EXPECT_EQ(ValueName(*quick), "");
  EXPECT_EQ(ValueName(*kv), "SIZE");
  EXPECT_EQ(ValueName(*mode), "VALUE");
  nodes->option->option_text("auto|off|N");
  EXPECT_EQ(TypeWords(*nodes), "auto, off or whole number");
  nodes->option->option_text("on|off");
  EXPECT_EQ(TypeWords(*nodes), "on or off");
  EXPECT_TRUE(names->is_list);
  EXPECT_FALSE(mode->is_list);
  EXPECT_THAT(ChoicesOf(*mode->option), ElementsAre("a", "b"));
  EXPECT_THAT(ChoicesOf(*number->option), ElementsAre());
}

TEST_F(FlagListTest, HiddenCommandsAreNotShownAndDocsNotConfigured) {
  EXPECT_EQ(ListShown(app_).size(), 2u);
  EXPECT_EQ(ListConfigurable(app_).size(), 2u);
}

TEST_F(FlagListTest, TheChosenCommandIsTheInnermost) {
  EXPECT_EQ(&ChosenCommand(app_), &app_);
  app_.parse("outer x --names n");
  EXPECT_EQ(ChosenCommand(app_).get_name(), "outer");
}

// What the configuration relies on, for every command that the program has.
TEST(FlagList, EveryFlagOfTheProgramHasAVariableOfItsOwn) {
  CLI::App app;
  Command chosen;
  AddCommands(app, chosen);
  std::set<std::string> variables;
  size_t count = 0;
  for (const CommandFlags& command : ListConfigurable(app)) {
    for (const Flag& flag : command.flags) {
      EXPECT_TRUE(variables.insert(flag.variable).second) << flag.variable << " is taken twice";
      EXPECT_FALSE(flag.option->get_description().empty()) << flag.variable << " says nothing";
      ++count;
    }
  }
  EXPECT_GT(count, 100u);
  EXPECT_TRUE(variables.contains("HEARTH_SERVE_PORT"));
  EXPECT_TRUE(variables.contains("HEARTH_BENCH_LOAD_URL"));
  EXPECT_TRUE(variables.contains("HEARTH_RENDER_TOKENIZER")) << "flags inside a group too";
}

}  // namespace
}  // namespace hearth
