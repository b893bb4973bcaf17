// SPDX-License-Identifier: Apache-2.0
#include "server/turns/reply_masks.h"

#include <gtest/gtest.h>

#include "testing/byte_tokenizer.h"

namespace hearth {
namespace {

// A model that knows no harmony, and whose template has no way to write a call.
class PlainTokenizer : public testing::ByteTokenizer {
 public:
  std::optional<Token> Special(std::string_view name) const override {
    return name == "<|start|>" ? std::nullopt : ByteTokenizer::Special(name);
  }
};

class ReplyMasksTest : public ::testing::Test {
 protected:
  ReplyMasksTest()
      : masks_(*ReplyMasks::Make(tokenizer_, {*tokenizer_.Special("<|return|>")}, {})) {}
  // The error for tools, or none.
  std::optional<ApiError> Refusal(TurnRequest& request) {
    const Status status = masks_->New(request).status();
    if (status.ok()) return std::nullopt;
    return MaskError(status, request);
  }

  const PlainTokenizer tokenizer_;
  const std::unique_ptr<ReplyMasks> masks_;
};

TEST_F(ReplyMasksTest, RefusesToolsThatATemplateCannotWrite) {
  TurnRequest request;
  request.conversation.tools = {{"get", "", Json()}};
  const auto error = Refusal(request);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status, 400);
  EXPECT_EQ(error->param, "tools");
  EXPECT_EQ(error->code, "unsupported");
  EXPECT_NE(error->message.find("no tool calls"), std::string::npos) << error->message;
  request.tool_choice = ToolChoice::kNone;
  EXPECT_FALSE(Refusal(request)) << "they are not to be called";
  request.tool_choice = ToolChoice::kNamed;
  request.named_tool = "other";
  EXPECT_EQ(Refusal(request)->param, "tool_choice");
}

TEST_F(ReplyMasksTest, BlamesTheAnswersOwnField) {
  TurnRequest request;
  request.answer = {AnswerShape::Kind::kRegex, "guided_regex", Json(), "(", {}};
  const auto error = Refusal(request);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status, 400);
  EXPECT_EQ(error->param, "guided_regex");
  const ApiError large = MaskError(Status(Code::kExhausted, "grammar: too large"), request);
  EXPECT_EQ(large.status, 400) << "trying again later would not help";
  EXPECT_EQ(large.param, "guided_regex");
}

}  // namespace
}  // namespace hearth
