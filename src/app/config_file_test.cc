// SPDX-License-Identifier: Apache-2.0
#include "app/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<ConfigEntry> Parse(std::string_view text) {
  Result<std::vector<ConfigEntry>> entries = ParseConfig(text, "f.toml");
  EXPECT_TRUE(entries.ok()) << entries.status().message();
  return entries.ok() ? *std::move(entries) : std::vector<ConfigEntry>();
}

TEST(ConfigFile, GivesEveryValueWithItsSectionTypeAndLine) {
  const auto entries = Parse(
      "# a comment\n"
      "[serve]\n"
      "port = 8_080\n"
      "name = 'a\"b'\n"
      "rate = 0.7\n"
      "on = true\n"
      "\n"
      "[bench.load]\n"
      "list = [\"x\", \"y\"]\n");
  ASSERT_EQ(entries.size(), 8u);
  EXPECT_EQ(entries[0].type, ConfigType::kSection);
  EXPECT_EQ(entries[0].section, "serve");
  EXPECT_EQ(entries[0].line, 2);
  EXPECT_EQ(entries[1].key, "port");
  EXPECT_EQ(entries[1].type, ConfigType::kNumber);
  EXPECT_THAT(entries[1].values, ElementsAre("8080"));
  EXPECT_EQ(entries[1].line, 3);
  EXPECT_THAT(entries[2].values, ElementsAre("a\"b"));
  EXPECT_EQ(entries[2].type, ConfigType::kText);
  EXPECT_THAT(entries[3].values, ElementsAre("0.7")) << "not 0.69999999999999996";
  EXPECT_EQ(entries[4].type, ConfigType::kSwitch);
  EXPECT_EQ(entries[7].section, "bench.load");
  EXPECT_EQ(entries[7].type, ConfigType::kList);
  EXPECT_EQ(entries[7].element, ConfigType::kText);
  EXPECT_THAT(entries[7].values, ElementsAre("x", "y"));
  EXPECT_EQ(entries[7].line, 9);
}

TEST(ConfigFile, KnowsWhatNoFlagTakes) {
  const auto entries =
      Parse("[a]\nday = 2026-11-16\nmixed = [1, \"x\"]\ndeep = [[1]]\n[[rows]]\nx = 1\n");
  for (const ConfigEntry& entry : entries) {
    if (entry.type == ConfigType::kSection) continue;
    EXPECT_EQ(entry.type, ConfigType::kOther) << entry.key;
  }
  EXPECT_EQ(entries.size(), 5u);
}

TEST(ConfigFile, AnEmptyFileIsFine) {
  EXPECT_TRUE(Parse("").empty());
  EXPECT_TRUE(Parse("\n# nothing\n").empty());
}

TEST(ConfigFile, WhatIsNotTomlIsRefusedWithItsLine) {
  for (const char* text :
       {"[serve]\nport = \n", "[serve]\nport 1\n", "[serve]\nport = 1\nport = 2\n",
        "[serve\nport = 1\n", "[serve]\nname = \"x\n", "\n\xff\xfe = 1\n"}) {
    const Result<std::vector<ConfigEntry>> entries = ParseConfig(text, "f.toml");
    ASSERT_FALSE(entries.ok()) << text;
    EXPECT_EQ(entries.status().code(), Code::kInvalid);
    EXPECT_THAT(entries.status().message(), HasSubstr("f.toml:"));
    EXPECT_THAT(entries.status().message(), HasSubstr("not valid TOML"));
  }
  EXPECT_THAT(ParseConfig("[a]\nb = 1\nb = 2\n", "f.toml").status().message(),
              HasSubstr("f.toml:3"));
}

TEST(ConfigFile, DeepNestingEndsAsAnError) {
  const std::string deep = "a = " + std::string(100000, '[');
  EXPECT_FALSE(ParseConfig(deep, "f.toml").ok());
}

}  // namespace
}  // namespace hearth
