// SPDX-License-Identifier: Apache-2.0
#include "talk/answerer.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

using Kind = ReplyEvent::Kind;

TEST(Answerer, EventsBecomeTheMessage) {
  Message message;
  for (const ReplyEvent& event : std::vector<ReplyEvent>{{Kind::kReasoning, "h"},
                                                         {Kind::kReasoning, "m"},
                                                         {Kind::kContent, "so "},
                                                         {Kind::kToolCall, "f"},
                                                         {Kind::kToolArguments, "{"},
                                                         {Kind::kToolArguments, "}"},
                                                         {Kind::kToolCallEnd, ""},
                                                         {Kind::kToolCall, "g"},
                                                         {Kind::kToolCallEnd, ""},
                                                         {Kind::kContent, "there"}}) {
    AddToMessage(event, message);
  }
  EXPECT_EQ(message.reasoning, "hm");
  EXPECT_EQ(message.content, "so there");
  ASSERT_EQ(message.tool_calls.size(), 2u);
  EXPECT_EQ(message.tool_calls[0].name, "f");
  EXPECT_EQ(message.tool_calls[0].arguments, "{}");
  EXPECT_EQ(message.tool_calls[1].name, "g");
  EXPECT_EQ(message.tool_calls[1].arguments, "");
}

TEST(Answerer, ArgumentsOfNoCallAreLeftOut) {
  Message message;
  AddToMessage({Kind::kToolArguments, "{}"}, message);
  EXPECT_TRUE(message.tool_calls.empty());
}

}  // namespace
}  // namespace hearth
