// SPDX-License-Identifier: Apache-2.0
#include "app/config_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "app/flag_checks.h"

namespace hearth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ConfigValuesTest : public ::testing::Test {
 protected:
  ConfigValuesTest() {
    CLI::App* sub = app_.add_subcommand("c", "A command");
    sub->add_option("--port", port_, "Port")->check(Between(0, 65535));
    sub->add_option("--memory", memory_, "Memory")->transform(CLI::AsSizeValue(false));
    sub->add_option("--name", name_, "Name");
    sub->add_flag("--quick", is_quick_, "Quick");
    sub->add_flag("--colour,!--no-colour", has_colour_, "Colour");
    sub->add_option("--host", hosts_, "Hosts");
    sub->add_option("--batch", batches_, "Batches")->delimiter(',');
    flags_ = ListFlags(app_)[0].flags;
  }
  const Flag& Named(const std::string& key) const {
    for (const Flag& flag : flags_) {
      if (flag.key == key) return flag;
    }
    ADD_FAILURE() << "no flag " << key;
    return flags_[0];
  }
  // What is wrong with `line`, such as `port = "80"`.
  std::string Problem(const std::string& line) const {
    Result<std::vector<ConfigEntry>> entries = ParseConfig(line, "f");
    EXPECT_TRUE(entries.ok()) << line;
    return TypeProblem(Named(entries->at(0).key), entries->at(0));
  }
  CLI::App app_;
  int port_ = 1;
  uint64_t memory_ = 0;
  std::string name_;
  bool is_quick_ = false, has_colour_ = true;
  std::vector<std::string> hosts_;
  std::vector<int> batches_;
  std::vector<Flag> flags_;
};

TEST_F(ConfigValuesTest, TypesMustFit) {
  for (const char* right :
       {"port = 80", "memory = 1024", "memory = \"4GiB\"", "name = \"x\"", "quick = false",
        "host = \"a\"", "host = [\"a\", \"b\"]", "batch = [1, 2]", "batch = 1"}) {
    EXPECT_EQ(Problem(right), "") << right;
  }
  EXPECT_EQ(Problem("port = \"80\""),
            "expected a number, found a string; write port = 80 without quotes");
  EXPECT_EQ(Problem("name = 5"), "expected a string, found a number; write name = \"5\"");
  EXPECT_EQ(Problem("quick = 1"), "expected true or false, found a number");
  EXPECT_EQ(Problem("quick = \"true\""), "expected true or false, found a string");
  EXPECT_EQ(Problem("port = true"), "expected a number, found true or false");
  EXPECT_EQ(Problem("port = [80]"), "expected a number, found a list");
  EXPECT_EQ(Problem("host = []"), "expected at least one value, found an empty list");
  EXPECT_THAT(Problem("host = [1]"), HasSubstr("expected a string"));
  EXPECT_THAT(Problem("name = 2026-11-16"), HasSubstr("put it in quotes"));
}

TEST_F(ConfigValuesTest, VariablesOfListsAreCommaSeparated) {
  EXPECT_THAT(ValuesOfVariable(Named("host"), "a, b,,c"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(ValuesOfVariable(Named("name"), "a, b"), ElementsAre("a, b"));
}

TEST_F(ConfigValuesTest, ValuesReachTheFlags) {
  EXPECT_TRUE(SetFlag(Named("port"), {"8081"}).ok());
  EXPECT_TRUE(SetFlag(Named("memory"), {"4GiB"}).ok());
  EXPECT_TRUE(SetFlag(Named("quick"), {"on"}).ok());
  EXPECT_TRUE(SetFlag(Named("colour"), {"false"}).ok());
  EXPECT_TRUE(SetFlag(Named("host"), {"a", "b"}).ok());
  EXPECT_TRUE(SetFlag(Named("batch"), {"1", "8"}).ok());
  EXPECT_EQ(port_, 8081);
  EXPECT_EQ(memory_, uint64_t{4} << 30);
  EXPECT_TRUE(is_quick_);
  EXPECT_FALSE(has_colour_);
  EXPECT_THAT(hosts_, ElementsAre("a", "b"));
  EXPECT_THAT(batches_, ElementsAre(1, 8));
  EXPECT_EQ(Named("port").option->count(), 1u) << "given, as if on the line";
}

TEST_F(ConfigValuesTest, RefusedValuesLeaveTheFlagAlone) {
  EXPECT_EQ(SetFlag(Named("port"), {"99999"}).message(),
            "expected a whole number from 0 to 65535, found \"99999\"");
  EXPECT_EQ(Named("port").option->count(), 0u);
  EXPECT_EQ(port_, 1);
  EXPECT_EQ(SetFlag(Named("batch"), {"x"}).message(), "expected a number, found \"x\"");
  EXPECT_EQ(SetFlag(Named("batch"), {}).code(), Code::kInvalid);
  EXPECT_EQ(SetFlag(Named("quick"), {"maybe"}).message(),
            "expected true or false, found \"maybe\"");
  EXPECT_TRUE(SetFlag(Named("quick"), {"off"}).ok());
  EXPECT_EQ(Named("quick").option->count(), 0u) << "off is what it is without";
}

}  // namespace
}  // namespace hearth
