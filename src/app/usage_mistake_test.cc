// SPDX-License-Identifier: Apache-2.0
#include "app/usage_mistake.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

namespace hearth {
namespace {

class UsageMistake : public ::testing::Test {
 protected:
  UsageMistake() {
    app_.require_subcommand(1);
    CLI::App* serve = app_.add_subcommand("serve", "Serves");
    serve->add_option("MODEL,--model", text_, "Which")->required();
    serve->add_flag("--old-name", flag_, "Out of use")->group("");
    auto* group = serve->add_option_group("source");
    group->add_option("--port", text_, "Where");
    app_.add_subcommand("pull", "Fetches");
    app_.add_subcommand("docs", "Hidden")->group("");
    app_.add_subcommand("inspect", "Looks")->add_option("model", text_, "Which")->required();
    CLI::App* eval = app_.add_subcommand("eval", "Measures")->require_subcommand(1);
    eval->add_subcommand("logits", "Writes")->add_option("--out", text_, "Whereto");
  }
  std::string Of(std::vector<std::string> words) {
    const std::string first = words.empty() ? "" : words.front();
    std::reverse(words.begin(), words.end());  // as CLI11 takes a vector
    try {
      app_.parse(words);
    } catch (const CLI::ParseError&) {
      return UnknownWord(app_, first);
    }
    return "parsed";
  }
  CLI::App app_;
  std::string text_;
  bool flag_ = false;
};

TEST_F(UsageMistake, CommandsAreToldWhatWasMeant) {
  EXPECT_EQ(Of({"srve"}), R"(unknown command "srve"; did you mean "serve"?)");
  EXPECT_EQ(Of({"pul", "x"}), R"(unknown command "pul"; did you mean "pull"?)");
  EXPECT_EQ(Of({"bogus"}), R"(unknown command "bogus")");
  EXPECT_EQ(Of({"doc"}), R"(unknown command "doc")") << "nobody is sent to a hidden command";
  EXPECT_EQ(Of({"eval", "logist"}), R"(unknown command "logist"; did you mean "logits"?)");
}

TEST_F(UsageMistake, FlagsAreToldWhatWasMeant) {
  EXPECT_EQ(Of({"serve", "--modle", "x"}), R"(unknown flag "--modle"; did you mean "--model"?)");
  EXPECT_EQ(Of({"serve", "--prot=1"}), R"(unknown flag "--prot"; did you mean "--port"?)");
  EXPECT_EQ(Of({"serve", "x", "--hlep"}), R"(unknown flag "--hlep"; did you mean "--help"?)");
  EXPECT_EQ(Of({"eval", "logits", "--otu", "x"}), R"(unknown flag "--otu"; did you mean "--out"?)");
  EXPECT_EQ(Of({"serve", "x", "--colour"}), R"(unknown flag "--colour")");
  EXPECT_EQ(Of({"serve", "x", "--old-nam"}), R"(unknown flag "--old-nam")") << "hidden";
  EXPECT_EQ(Of({"pull", "--model"}), R"(unknown flag "--model")") << "of another command";
  EXPECT_EQ(Of({"serve", "x", "-z"}), R"(unknown flag "-z")") << "a letter is near everything";
}

TEST_F(UsageMistake, WhatIsMissingIsToldInPlainWords) {
  const auto said = [this](std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());
    try {
      app_.parse(words);
    } catch (const CLI::ParseError& error) {
      return InPlainWords(error.what());
    }
    return std::string("parsed");
  };
  EXPECT_EQ(said({"inspect"}), "MODEL is missing");
  EXPECT_EQ(said({"serve"}), "--model is missing");
  EXPECT_EQ(said({"serve", "x", "--port"}), "--port: its value is missing");
  EXPECT_EQ(said({}).substr(0, 20), "a command is missing");
  EXPECT_EQ(InPlainWords("Exactly 1 option from [--model,--tokenizer] is required"),
            "expected --model or --tokenizer");
  EXPECT_EQ(InPlainWords("--port: expected a number"), "--port: expected a number");
  EXPECT_EQ(InPlainWords(""), "");
}

TEST_F(UsageMistake, OtherMistakesAreNotItsOwn) {
  EXPECT_EQ(Of({}), "");
  EXPECT_EQ(Of({"serve"}), "") << "a missing argument is CLI11's to tell";
  EXPECT_EQ(Of({"eval"}), "");
  EXPECT_EQ(Of({"serve", "x"}), "parsed");
}

}  // namespace
}  // namespace hearth
