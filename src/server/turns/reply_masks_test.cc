// SPDX-License-Identifier: Apache-2.0
#include "server/turns/reply_masks.h"

#include <gtest/gtest.h>

#include <algorithm>

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

// Whether a mask of the request lets this be the whole reply.
bool Passes(ReplyMasks& masks, const TurnRequest& request, const PlainTokenizer& tokenizer,
            const std::string& text) {
  auto mask = masks.New(request);
  EXPECT_TRUE(mask.ok()) << mask.status().message();
  std::vector<Token> tokens;
  tokenizer.Encode(text, tokens);
  tokens.push_back(*tokenizer.Special("<|return|>"));
  return std::all_of(tokens.begin(), tokens.end(),
                     [&](Token token) { return (*mask)->Accept(token); });
}

TEST_F(ReplyMasksTest, HoldsModelsWithoutToolsToGenericCalls) {
  constexpr const char* kCall = R"({"name": "get", "arguments": {"n": 7}})";
  TurnRequest request;
  request.conversation.tools = {
      {"get", "", *ParseJson(R"({"properties": {"n": {"enum": [7]}}, "required": ["n"]})")},
      {"now", "", Json()}};
  const auto passes = [&](const std::string& text) {
    return Passes(*masks_, request, tokenizer_, text);
  };
  EXPECT_TRUE(passes(kCall));
  EXPECT_TRUE(passes(std::string(kCall) + "\n" + R"({"name": "now", "arguments": {}})"));
  EXPECT_TRUE(passes("It is {late}."));
  EXPECT_FALSE(passes(R"({"name": "get", "arguments": {"n": 8}})")) << "not of the schema";
  EXPECT_FALSE(passes(R"({"name": "other", "arguments": {}})"));
  EXPECT_FALSE(passes("{}")) << "text that could be taken for a call";
  request.parallel_calls = false;
  EXPECT_FALSE(passes(std::string(kCall) + "\n" + kCall));
  request.tool_choice = ToolChoice::kRequired;
  EXPECT_TRUE(passes(kCall));
  EXPECT_FALSE(passes("It is late."));
  request.tool_choice = ToolChoice::kNamed;
  request.named_tool = "now";
  EXPECT_FALSE(passes(kCall));
  request.tool_choice = ToolChoice::kNone;
  EXPECT_FALSE(passes(kCall));
  EXPECT_TRUE(passes("It is late."));
}

TEST_F(ReplyMasksTest, RefusesToolsThatAreNotThere) {
  TurnRequest request;
  request.conversation.tools = {{"get", "", Json()}};
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

TEST_F(ReplyMasksTest, EachOwnerCompilesItsOwn) {
  TurnRequest shapes[2];
  shapes[0].answer.kind = AnswerShape::Kind::kRegex;
  shapes[0].answer.text = "a+";
  shapes[1].answer.kind = AnswerShape::Kind::kSchema;
  shapes[1].answer.schema = JsonObject{{"type", "integer"}};
  for (const TurnRequest& request : shapes) {
    const uint64_t before = masks_->counts().found;
    EXPECT_TRUE(masks_->New(request, "anna").ok());
    EXPECT_TRUE(masks_->New(request, "bert").ok());
    EXPECT_EQ(masks_->counts().found, before);
    EXPECT_TRUE(masks_->New(request, "anna").ok());
    EXPECT_EQ(masks_->counts().found, before + 1);
  }
}

}  // namespace
}  // namespace hearth
