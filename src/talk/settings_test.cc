// SPDX-License-Identifier: Apache-2.0
#include "talk/settings.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace hearth {
namespace {

TEST(Settings, AreSetAndTakenBack) {
  TalkSettings settings;
  ASSERT_TRUE(SetSetting("temperature", "0.25", settings).ok());
  ASSERT_TRUE(SetSetting("top-k", "40", settings).ok());
  ASSERT_TRUE(SetSetting("seed", "4611686018427387904", settings).ok());
  ASSERT_TRUE(SetSetting("max-tokens", "100", settings).ok());
  ASSERT_TRUE(SetSetting("effort", "high", settings).ok());
  ASSERT_TRUE(SetSetting("reasoning", "hide", settings).ok());
  EXPECT_EQ(settings.temperature, 0.25);
  EXPECT_EQ(settings.top_k, 40);
  EXPECT_EQ(settings.seed, uint64_t{1} << 62);
  EXPECT_EQ(settings.max_tokens, 100);
  EXPECT_EQ(settings.effort, ReasoningEffort::kHigh);
  EXPECT_EQ(settings.reasoning, ReasoningView::kHide);
  EXPECT_EQ(ListSettings(settings),
            "temperature  0.25\ntop-p        default\nmin-p        default\ntop-k        40\n"
            "seed         4611686018427387904\nmax-tokens   100\neffort       high\n"
            "reasoning    hide\n");
  for (const char* name : {"temperature", "top-k", "seed", "max-tokens", "effort", "reasoning"}) {
    ASSERT_TRUE(SetSetting(name, "default", settings).ok()) << name;
  }
  EXPECT_EQ(ListSettings(settings), ListSettings(TalkSettings{}));
}

TEST(Settings, WhatMakesNoSenseChangesNothing) {
  TalkSettings settings;
  for (const auto& [name, value] :
       std::vector<std::pair<const char*, const char*>>{{"temperature", "warm"},
                                                        {"temperature", "nan"},
                                                        {"temperature", "-1"},
                                                        {"temperature", "11"},
                                                        {"temperature", "0.5x"},
                                                        {"top-p", "1.5"},
                                                        {"min-p", ""},
                                                        {"top-k", "1.5"},
                                                        {"top-k", "-1"},
                                                        {"seed", "-1"},
                                                        {"max-tokens", "-1"},
                                                        {"effort", "extreme"},
                                                        {"reasoning", "maybe"},
                                                        {"colour", "red"}}) {
    const Status status = SetSetting(name, value, settings);
    EXPECT_EQ(status.code(), Code::kInvalid) << name << " " << value;
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
    EXPECT_EQ(ListSettings(settings), ListSettings(TalkSettings{}));
  }
  EXPECT_NE(SetSetting("temprature", "1", settings).message().find("temperature"),
            std::string::npos)
      << "the names that would do";
}

}  // namespace
}  // namespace hearth
