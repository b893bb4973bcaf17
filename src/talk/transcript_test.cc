// SPDX-License-Identifier: Apache-2.0
#include "talk/transcript.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "platform/file.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using testing::TempDir;

Conversation Sample() {
  Conversation conversation;
  Message system, user, assistant;
  system.role = Role::kSystem;
  system.content = "Be brief.";
  user.content = "Grüße \"世界\"\n```x```";
  assistant.role = Role::kAssistant;
  assistant.content = "<|end|>";
  assistant.reasoning = "hm";
  assistant.tool_calls = {{"call_1", "look_up", "{\"a\": 1}"}};
  conversation.messages = {system, user, assistant};
  return conversation;
}

TEST(Transcript, ComesBackAsItWasSaved) {
  const TempDir dir;
  const std::string path = dir.Path("chat.json");
  ASSERT_TRUE(SaveConversation(path, Sample(), false).ok());
  Result<Conversation> loaded = LoadConversation(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(MessagesAsJson(loaded->messages), MessagesAsJson(Sample().messages));
  EXPECT_EQ(loaded->messages[2].reasoning, "hm");
  EXPECT_EQ(loaded->messages[2].tool_calls[0].arguments, "{\"a\": 1}");
  struct stat about{};
  ASSERT_EQ(stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u) << "its owner's alone";
}

TEST(Transcript, DoesNotReplaceAFileUnasked) {
  const TempDir dir;
  dir.Write("notes.txt", "precious");
  const Status status = SaveConversation(dir.Path("notes.txt"), Sample(), false);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("/save -f"), std::string::npos);
  EXPECT_EQ(*ReadTextFile(dir.Path("notes.txt"), 100), "precious");
  EXPECT_TRUE(SaveConversation(dir.Path("notes.txt"), Sample(), true).ok());
  EXPECT_EQ(SaveConversation("", Sample(), false).code(), Code::kInvalid);
  EXPECT_FALSE(SaveConversation(dir.Path("no/such/folder"), Sample(), false).ok());
}

TEST(Transcript, RefusesWhatIsNoConversation) {
  const TempDir dir;
  for (const char* text :
       {"", "{", "[]", "{\"messages\": 3}", "{\"messages\": [{\"role\": \"x\"}]}"}) {
    dir.Write("bad.json", text);
    Result<Conversation> loaded = LoadConversation(dir.Path("bad.json"));
    ASSERT_FALSE(loaded.ok()) << text;
    EXPECT_NE(loaded.status().message().find("bad.json"), std::string::npos);
  }
  EXPECT_FALSE(LoadConversation(dir.Path("absent.json")).ok());
}

TEST(Attachments, AreTextWithinBounds) {
  const TempDir dir;
  dir.Write("a.txt", "hello\n").Write("empty", "").Write("bin", std::string("a\0b", 3));
  dir.Write("latin", "\xe4");
  EXPECT_EQ(*ReadAttachment(dir.Path("a.txt")), "hello\n");
  for (const char* name : {"empty", "bin", "latin", "absent"}) {
    const Status status = ReadAttachment(dir.Path(name)).status();
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_NE(status.message().find(name), std::string::npos);
  }
  EXPECT_EQ(ReadAttachment("").status().code(), Code::kInvalid);
  EXPECT_NE(CheckText("it", "ab\xff").message().find("offset 2"), std::string::npos);
}

TEST(Attachments, AreFencedByMoreTicksThanTheyHave) {
  EXPECT_EQ(WithFile("look", "a.txt", "x\n"), "look\n\na.txt:\n```\nx\n```");
  EXPECT_EQ(WithFile("look", "a.md", "````\nx"), "look\n\na.md:\n`````\n````\nx\n`````");
}

TEST(Attachments, InputFollowsThePrompt) {
  EXPECT_EQ(WithInput("review this", "diff\n\n"), "review this\n\ndiff");
  EXPECT_EQ(WithInput("", "a\nb\n"), "a\nb");
  EXPECT_EQ(WithInput("only this", ""), "only this");
  EXPECT_EQ(WithInput("", "\n"), "");
}

}  // namespace
}  // namespace hearth
