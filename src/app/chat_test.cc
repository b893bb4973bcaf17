// SPDX-License-Identifier: Apache-2.0
#include "app/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/talking_model.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;

Message Says(Role role, const std::string& text) {
  Message message;
  message.role = role;
  message.content = text;
  return message;
}

// A model whose weights are all zero: it says nothing sensible, but what it reads and keeps is
// real.
class LocalChat : public ::testing::Test {
 protected:
  LocalChat() : path_(folder_.Write("tiny.gguf", testing::TalkingModel()).Path("tiny.gguf")) {
    settings_.temperature = 0;
    settings_.max_tokens = 4;
  }
  std::unique_ptr<Answerer> Open(ChatOptions options = {}) {
    Result<std::unique_ptr<Answerer>> opened = NewLocalSource(std::move(options))->Open(path_);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened.ok() ? *std::move(opened) : nullptr;
  }
  Result<TurnResult> Answer(Answerer& answerer, const std::vector<Message>& messages) {
    Conversation conversation;
    conversation.messages = messages;
    heard_.clear();
    return answerer.Answer(
        conversation, settings_,
        {[this](ReplyEvent::Kind, const std::string& text) { heard_ += text; }, [] {}},
        interrupted_);
  }

  const TempDir folder_;
  const std::string path_;
  TalkSettings settings_;
  std::atomic<bool> interrupted_ = false;
  std::string heard_;
};

TEST_F(LocalChat, SaysWhatItIs) {
  const std::unique_ptr<Answerer> answerer = Open();
  EXPECT_EQ(answerer->name(), "tiny");
  EXPECT_EQ(answerer->place(), "in this process");
  EXPECT_EQ(answerer->max_context(), 64);
}

TEST_F(LocalChat, AReplyIsBoundedAndHeard) {
  const std::unique_ptr<Answerer> answerer = Open();
  Result<TurnResult> turn = Answer(*answerer, {Says(Role::kUser, "hello")});
  ASSERT_TRUE(turn.ok()) << turn.status().message();
  EXPECT_EQ(turn->end, TurnEnd::kLength);
  EXPECT_EQ(turn->figures.num_generated, 4);
  EXPECT_EQ(turn->figures.num_cached, 0);
  EXPECT_GT(turn->figures.total_s, 0);
  EXPECT_EQ(heard_, turn->message.content + turn->message.reasoning);
}

TEST_F(LocalChat, TurnsFindWhatEarlierOnesComputed) {
  const std::unique_ptr<Answerer> answerer = Open();
  const Message question = Says(Role::kUser, "a question of some length");
  Result<TurnResult> first = Answer(*answerer, {question});
  ASSERT_TRUE(first.ok());
  ASSERT_GE(first->figures.num_prompt, 16) << "a block at least";
  Result<TurnResult> again = Answer(*answerer, {question});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->figures.num_prompt, first->figures.num_prompt);
  EXPECT_GE(again->figures.num_cached, 16);
  Result<TurnResult> next =
      Answer(*answerer, {question, Says(Role::kAssistant, "yes"), Says(Role::kUser, "so?")});
  ASSERT_TRUE(next.ok());
  EXPECT_GE(next->figures.num_cached, 16);
}

TEST_F(LocalChat, TheContextIsTheLastBound) {
  const std::unique_ptr<Answerer> answerer = Open();
  settings_.max_tokens = 0;
  Result<TurnResult> full = Answer(*answerer, {Says(Role::kUser, "hello")});
  ASSERT_TRUE(full.ok()) << full.status().message();
  EXPECT_EQ(full->end, TurnEnd::kContext);
  EXPECT_EQ(full->figures.num_prompt + full->figures.num_generated, 64);
  Result<TurnResult> over = Answer(*answerer, {Says(Role::kUser, std::string(80, 'x'))});
  EXPECT_THAT(over.status().message(), HasSubstr("but the context length is 64"));
}

TEST_F(LocalChat, AnInterruptStopsAndTheNextTurnGoesOn) {
  const std::unique_ptr<Answerer> answerer = Open();
  settings_.max_tokens = 0;
  interrupted_ = true;
  Result<TurnResult> stopped = Answer(*answerer, {Says(Role::kUser, "hello")});
  ASSERT_TRUE(stopped.ok());
  EXPECT_EQ(stopped->end, TurnEnd::kInterrupted);
  interrupted_ = false;
  settings_.max_tokens = 2;
  EXPECT_TRUE(Answer(*answerer, {Says(Role::kUser, "hello")}).ok());
}

TEST_F(LocalChat, SeedsCountTurnsAndStartAgain) {
  settings_.temperature = 1;
  settings_.max_tokens = 12;
  const std::unique_ptr<Answerer> one = Open(), other = Open();
  const std::vector<Message> asked = {Says(Role::kUser, "hello")};
  const std::string first = Answer(*one, asked)->message.content;
  const std::string second = Answer(*one, asked)->message.content;
  EXPECT_NE(second, first) << "another turn, other draws";
  EXPECT_EQ(Answer(*other, asked)->message.content, first);
  settings_.seed = 1;
  EXPECT_EQ(Answer(*other, asked)->message.content, second) << "one more than the usual seed";
  settings_.seed.reset();
  EXPECT_EQ(Answer(*other, asked)->message.content, first) << "set anew, it starts again";
}

TEST_F(LocalChat, BothBackendsAgree) {
  ChatOptions options;
  options.backend = "reference";
  const std::unique_ptr<Answerer> reference = Open(options), cpu = Open();
  const std::vector<Message> asked = {Says(Role::kUser, "hello")};
  Result<TurnResult> slow = Answer(*reference, asked), fast = Answer(*cpu, asked);
  ASSERT_TRUE(slow.ok() && fast.ok());
  EXPECT_EQ(slow->message.content, fast->message.content);
  EXPECT_EQ(slow->figures.num_prompt, fast->figures.num_prompt);
  EXPECT_EQ(slow->figures.num_generated, 4);
}

TEST_F(LocalChat, RefusesWhatTheModelDoesNotHave) {
  const std::unique_ptr<Answerer> answerer = Open();
  settings_.effort = ReasoningEffort::kHigh;
  EXPECT_THAT(answerer->Check(settings_).message(), HasSubstr("no reasoning effort"));
  EXPECT_FALSE(Answer(*answerer, {Says(Role::kUser, "x")}).ok());
  ChatOptions long_context;
  long_context.context = 65;
  EXPECT_THAT(NewLocalSource(long_context)->Open(path_).status().message(),
              HasSubstr("more than the model's maximum"));
  EXPECT_FALSE(NewLocalSource({})->Open(folder_.Path("absent.gguf")).ok());
  EXPECT_FALSE(NewLocalSource({})->Find(folder_.Path("absent.gguf")).ok());
  EXPECT_TRUE(NewLocalSource({})->Find(path_).ok());
}

TEST_F(LocalChat, ASchemaHoldsTheReply) {
  ChatOptions options;
  options.schema = Json(JsonObject{{"enum", JsonArray{"red", "green"}}});
  settings_.max_tokens = 0;
  settings_.temperature = 1;
  const std::unique_ptr<Answerer> answerer = Open(options);
  ASSERT_NE(answerer, nullptr);
  Result<TurnResult> turn = Answer(*answerer, {Says(Role::kUser, "a colour")});
  ASSERT_TRUE(turn.ok()) << turn.status().message();
  EXPECT_EQ(turn->end, TurnEnd::kStop);
  EXPECT_THAT(turn->message.content, ::testing::AnyOf("\"red\"", "\"green\""));
  options.schema = Json(JsonObject{{"type", "nonsense"}});
  EXPECT_THAT(NewLocalSource(options)->Open(path_).status().message(), HasSubstr("--json-schema"));
  options.schema = Json(JsonObject{{"type", "object"}});
  options.backend = "reference";
  EXPECT_EQ(NewLocalSource(options)->Open(path_).status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace hearth
