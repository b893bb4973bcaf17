// SPDX-License-Identifier: Apache-2.0
#include "talk/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "platform/file.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;

// What the next turn does: answers, fails, or is stopped.
struct Plan {
  TurnResult result;
  Status status;
};

struct World {
  std::vector<std::string> asked;  // the last message of every turn
  std::vector<size_t> lengths;     // messages that every turn saw
  TalkSettings settings;           // of the last turn
  Plan plan;
  std::vector<std::string> opened;
};

class FakeAnswerer : public Answerer {
 public:
  FakeAnswerer(World& world, std::string name) : world_(world), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::string place() const override { return "in a test"; }
  int max_context() const override { return 100; }
  Status Check(const TalkSettings& settings) const override {
    return settings.effort ? Error(Code::kInvalid, "no effort here") : Status();
  }
  Result<TurnResult> Answer(const Conversation& conversation, const TalkSettings& settings,
                            const TurnListener& listener, const std::atomic<bool>&) override {
    world_.asked.push_back(conversation.messages.back().content);
    world_.lengths.push_back(conversation.messages.size());
    world_.settings = settings;
    if (!world_.plan.status.ok()) return world_.plan.status;
    listener.hear(ReplyEvent::Kind::kContent, world_.plan.result.message.content);
    return world_.plan.result;
  }

 private:
  World& world_;
  const std::string name_;
};

class FakeSource : public AnswererSource {
 public:
  explicit FakeSource(World& world) : world_(world) {}
  Status Find(const std::string& name) override {
    return name == "absent" ? Error(Code::kNotFound, "absent: no such model") : Status();
  }
  Result<std::unique_ptr<Answerer>> Open(const std::string& name) override {
    world_.opened.push_back(name);
    if (name.starts_with("broken")) return Error(Code::kCorrupt, "%s: bad bytes", name.c_str());
    return std::unique_ptr<Answerer>(std::make_unique<FakeAnswerer>(world_, name));
  }

 private:
  World& world_;
};

class Session : public ::testing::Test {
 protected:
  Session() { Answers("fine"); }
  void Answers(const std::string& text, TurnEnd end = TurnEnd::kStop) {
    world_.plan = {};
    world_.plan.result.end = end;
    world_.plan.result.message.content = text;
    world_.plan.result.figures = {
        .num_prompt = 10, .num_cached = 4, .num_generated = 3, .first_token_s = 1, .total_s = 2};
  }
  std::string Notes() {
    std::string all;
    all.swap(notes_);
    return all;
  }
  std::vector<std::string> Said() const {
    std::vector<std::string> said;
    for (const Message& message : session_.conversation().messages) said.push_back(message.content);
    return said;
  }

  World world_;
  FakeSource source_{world_};
  std::string shown_, notes_, figures_;
  std::atomic<bool> interrupted_ = false;
  ReplyView view_{{},
                  [this](std::string_view bytes) { shown_ += bytes; },
                  [] { return 0.0; },
                  [] { return 80; }};
  TalkSession session_{
      source_,
      "first",
      std::make_unique<FakeAnswerer>(world_, "first"),
      {},
      {view_, [this](const std::string& text) { notes_ += text + "\n"; },
       [this](const std::string& text) { figures_ += text + "\n"; }, interrupted_}};
};

TEST_F(Session, ATurnIsAMessageAndItsReply) {
  Result<TurnEnd> end = session_.Say("hello");
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(*end, TurnEnd::kStop);
  EXPECT_EQ(shown_, "fine\n");
  EXPECT_THAT(Said(), ElementsAre("hello", "fine"));
  EXPECT_EQ(session_.conversation().messages[1].role, Role::kAssistant);
  EXPECT_THAT(figures_, HasSubstr("4 of 10 prompt tokens cached"));
  ASSERT_TRUE(session_.Say("and?").ok());
  EXPECT_THAT(world_.lengths, ElementsAre(1, 3)) << "the second turn sees the first";
}

TEST_F(Session, ATurnThatFailsTakesItsMessageBack) {
  world_.plan.status = Error(Code::kInvalid, "too long");
  EXPECT_EQ(session_.Say("hello").status().message(), "too long");
  EXPECT_TRUE(Said().empty());
}

TEST_F(Session, InterruptsKeepWhatWasSaid) {
  Answers("half", TurnEnd::kInterrupted);
  ASSERT_TRUE(session_.Say("one").ok());
  EXPECT_EQ(Notes(), "[interrupted]\n");
  EXPECT_THAT(Said(), ElementsAre("one", "half"));
  Answers("", TurnEnd::kInterrupted);
  EXPECT_EQ(session_.Say("two").status().code(), Code::kCancelled);
  EXPECT_THAT(Said(), ElementsAre("one", "half"));
  Answers("cut", TurnEnd::kLength);
  ASSERT_TRUE(session_.Say("three").ok());
  EXPECT_EQ(Notes(), "[stopped: the reply reached --max-tokens]\n");
}

TEST_F(Session, UndoAndRetry) {
  EXPECT_TRUE(session_.Run("undo", ""));
  EXPECT_EQ(Notes(), "there is nothing to take back\n");
  EXPECT_TRUE(session_.Run("retry", ""));
  EXPECT_EQ(Notes(), "there is no message to answer\n");
  ASSERT_TRUE(session_.Say("one").ok());
  ASSERT_TRUE(session_.Say("two").ok());
  Answers("better");
  EXPECT_TRUE(session_.Run("retry", ""));
  EXPECT_THAT(Said(), ElementsAre("one", "fine", "two", "better"));
  EXPECT_EQ(world_.asked.back(), "two");
  world_.plan.status = Error(Code::kIo, "gone");
  EXPECT_TRUE(session_.Run("retry", ""));
  EXPECT_EQ(Notes(), "gone\n");
  Answers("", TurnEnd::kInterrupted);
  EXPECT_TRUE(session_.Run("retry", ""));
  EXPECT_EQ(Notes(), "[interrupted; the conversation is as it was]\n");
  EXPECT_THAT(Said(), ElementsAre("one", "fine", "two", "better"));
  EXPECT_TRUE(session_.Run("undo", ""));
  EXPECT_EQ(Notes(), "taken back: \"two\"\n");
  EXPECT_THAT(Said(), ElementsAre("one", "fine"));
}

TEST_F(Session, TheSystemPromptStandsFirst) {
  EXPECT_TRUE(session_.Run("system", ""));
  EXPECT_EQ(Notes(), "no system prompt\n");
  ASSERT_TRUE(session_.Say("one").ok());
  EXPECT_TRUE(session_.Run("system", "Be brief."));
  EXPECT_TRUE(session_.Run("system", "Be long."));
  EXPECT_THAT(Said(), ElementsAre("Be long.", "one", "fine"));
  Notes();
  EXPECT_TRUE(session_.Run("system", ""));
  EXPECT_EQ(Notes(), "Be long.\n");
  EXPECT_TRUE(session_.Run("undo", ""));
  EXPECT_THAT(Said(), ElementsAre("Be long."));
  EXPECT_TRUE(session_.Run("system", "clear"));
  EXPECT_TRUE(Said().empty());
}

TEST_F(Session, Settings) {
  EXPECT_TRUE(session_.Run("set", "temperature 0.25"));
  EXPECT_EQ(Notes(), "temperature is now 0.25\n");
  EXPECT_TRUE(session_.Run("set", "effort high"));
  EXPECT_EQ(Notes(), "no effort here\n") << "the model's own word";
  EXPECT_TRUE(session_.Run("set", "temperature"));
  EXPECT_THAT(Notes(), HasSubstr("expected a name and a value"));
  EXPECT_TRUE(session_.Run("set", ""));
  EXPECT_THAT(Notes(), HasSubstr("temperature  0.25\n"));
  ASSERT_TRUE(session_.Say("x").ok());
  EXPECT_EQ(world_.settings.temperature, 0.25);
  EXPECT_FALSE(world_.settings.effort.has_value());
}

TEST_F(Session, AnotherModelContinues) {
  ASSERT_TRUE(session_.Say("one").ok());
  EXPECT_TRUE(session_.Run("model", ""));
  EXPECT_EQ(Notes(), "first in a test, 100 tokens of context\n");
  EXPECT_TRUE(session_.Run("model", "second"));
  EXPECT_THAT(Notes(), HasSubstr("second in a test"));
  ASSERT_TRUE(session_.Say("two").ok());
  EXPECT_EQ(world_.lengths.back(), 3u);
  EXPECT_TRUE(session_.Run("model", "absent"));
  EXPECT_EQ(Notes(), "absent: no such model\n");
  EXPECT_THAT(world_.opened, ElementsAre("second")) << "nothing is given up for a wrong name";
  EXPECT_TRUE(session_.Run("model", "broken"));
  EXPECT_THAT(Notes(), HasSubstr("bad bytes"));
  EXPECT_THAT(world_.opened, ElementsAre("second", "broken", "second"));
  EXPECT_TRUE(session_.Say("three").ok());
}

TEST_F(Session, WithoutAnyModelItSaysSo) {
  TalkSession session(source_, "broken first", std::make_unique<FakeAnswerer>(world_, "x"), {},
                      {view_, [this](const std::string& text) { notes_ += text + "\n"; },
                       [](const std::string&) {}, interrupted_});
  EXPECT_TRUE(session.Run("model", "broken too"));
  EXPECT_THAT(session.Say("hello").status().message(), HasSubstr("no model is loaded"));
  EXPECT_TRUE(session.Run("set", "temperature 1"));
  EXPECT_TRUE(session.Run("stats", ""));
  EXPECT_TRUE(session.Run("model", "second"));
  EXPECT_TRUE(session.Say("hello").ok());
}

TEST_F(Session, FilesGoWithTheNextMessageThatIsAnswered) {
  const TempDir dir;
  dir.Write("a.txt", "alpha\n");
  EXPECT_TRUE(session_.Run("file", dir.Path("a.txt")));
  EXPECT_EQ(Notes(), "a.txt (6 bytes) goes with the next message\n");
  world_.plan.status = Error(Code::kIo, "gone");
  EXPECT_FALSE(session_.Say("look").ok());
  Answers("seen");
  ASSERT_TRUE(session_.Say("look").ok());
  EXPECT_EQ(world_.asked.back(), "look\n\na.txt:\n```\nalpha\n```");
  ASSERT_TRUE(session_.Say("again").ok());
  EXPECT_EQ(world_.asked.back(), "again");
  EXPECT_TRUE(session_.Run("file", dir.Path("b.txt")));
  EXPECT_THAT(Notes(), HasSubstr("b.txt"));
}

TEST_F(Session, SaveAndLoad) {
  const TempDir dir;
  const std::string path = dir.Path("chat.json");
  ASSERT_TRUE(session_.Say("one").ok());
  EXPECT_TRUE(session_.Run("save", path));
  EXPECT_THAT(Notes(), HasSubstr("2 messages saved"));
  ASSERT_TRUE(session_.Say("two").ok());
  EXPECT_TRUE(session_.Run("save", path));
  EXPECT_THAT(Notes(), HasSubstr("4 messages saved")) << "its own file may be replaced";
  dir.Write("other", "precious");
  EXPECT_TRUE(session_.Run("save", dir.Path("other")));
  EXPECT_THAT(Notes(), HasSubstr("exists"));
  EXPECT_TRUE(session_.Run("save", "-f " + dir.Path("other")));
  EXPECT_THAT(Notes(), HasSubstr("saved"));
  EXPECT_TRUE(session_.Run("undo", ""));
  EXPECT_TRUE(session_.Run("load", path));
  EXPECT_THAT(Said(), ElementsAre("one", "fine", "two", "fine"));
  EXPECT_TRUE(session_.Run("load", dir.Path("absent")));
  EXPECT_THAT(Said(), ElementsAre("one", "fine", "two", "fine")) << "a wrong name changes nothing";
  EXPECT_TRUE(session_.Run("load", ""));
}

TEST_F(Session, ThoughtsStatsHelpAndTheEnd) {
  EXPECT_TRUE(session_.Run("thoughts", ""));
  EXPECT_EQ(Notes(), "the last reply has no reasoning\n");
  world_.plan.result.message.reasoning = "because\x1b";
  ASSERT_TRUE(session_.Say("why?").ok());
  EXPECT_TRUE(session_.Run("thoughts", ""));
  EXPECT_EQ(Notes(), "because\\x1b\n");
  ASSERT_TRUE(session_.Say("so?").ok());
  EXPECT_TRUE(session_.Run("stats", ""));
  EXPECT_EQ(Notes(),
            "2 replies: 6 tokens generated, 20 prompt tokens, 8 of them cached, 4.0 s\n"
            "context: 13 of 100 tokens after the last reply\n");
  EXPECT_TRUE(session_.Run("help", ""));
  EXPECT_THAT(Notes(), HasSubstr("/retry"));
  EXPECT_TRUE(session_.Run("hlep", ""));
  EXPECT_THAT(Notes(), HasSubstr("did you mean /help?"));
  EXPECT_TRUE(session_.Run("bye", "and thanks"));
  EXPECT_THAT(Notes(), HasSubstr("/bye takes no arguments"));
  for (const char* command : {"bye", "exit", "quit"}) EXPECT_FALSE(session_.Run(command, ""));
}

TEST_F(Session, EveryCommandThatIsListedIsDone) {
  for (const SlashCommand& row : SlashCommands()) {
    if (std::string(row.name) == "bye") continue;
    EXPECT_TRUE(session_.Run(row.name, "")) << row.name;
    EXPECT_NE(Notes(), "") << row.name;
  }
}

}  // namespace
}  // namespace hearth
