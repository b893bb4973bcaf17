// SPDX-License-Identifier: Apache-2.0
// What a client sees of a reply: reasoning, answer, tool calls.
#include <gtest/gtest.h>

#include "testing/byte_tokenizer.h"
#include "text/harmony.h"

namespace hearth {
namespace {

const ChatFormat& Format() {
  static const testing::ByteTokenizer tokenizer;
  static const std::unique_ptr<ChatFormat> format = *MakeHarmonyFormat(tokenizer);
  return *format;
}

// "reasoning: ...; content: ...; call f: ...;" with pieces of one kind joined.
std::string Seen(std::string_view stream) {
  static const testing::ByteTokenizer tokenizer;
  const std::unique_ptr<ReplyReader> reader = Format().NewReader();
  std::vector<ReplyEvent> events;
  for (const Token token : tokenizer.Stream(stream)) reader->Feed(token, events);
  reader->Finish(events);
  std::string out;
  std::optional<ReplyEvent::Kind> last;
  for (const ReplyEvent& event : events) {
    switch (event.kind) {
      case ReplyEvent::Kind::kReasoning:
        if (last != event.kind) out += "reasoning: ";
        break;
      case ReplyEvent::Kind::kContent:
        if (last != event.kind) out += "content: ";
        break;
      case ReplyEvent::Kind::kToolCall:
        out += "call ";
        break;
      case ReplyEvent::Kind::kToolArguments:
        if (last != event.kind) out += ": ";
        break;
      case ReplyEvent::Kind::kToolCallEnd:
        out += ";";
        break;
    }
    out += event.text;
    last = event.kind;
  }
  return out;
}

TEST(HarmonyReply, ReasoningThenAnswer) {
  EXPECT_EQ(Seen("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final"
                 "<|message|>Hi.<|return|>"),
            "reasoning: Hm.content: Hi.");
}

TEST(HarmonyReply, PreambleIsContent) {
  EXPECT_EQ(Seen("<|channel|>commentary<|message|>Looking.<|end|><|start|>assistant to=functions.f"
                 "<|channel|>commentary <|constrain|>json<|message|>{}<|call|>"),
            "content: Looking.call f: {};");
}

TEST(HarmonyReply, CallOnAnyChannel) {
  EXPECT_EQ(Seen("<|channel|>analysis to=functions.f<|message|>{}<|call|>"), "call f: {};");
  EXPECT_EQ(Seen("<|channel|>commentary to=f<|message|>{}<|call|>"), "call f: {};");
}

TEST(HarmonyReply, CallCutOffStillEnds) {
  EXPECT_EQ(Seen("<|channel|>commentary to=functions.f<|message|>{\"a"), "call f: {\"a;");
  EXPECT_EQ(Seen("<|channel|>commentary to=functions.f"), "call f;");
}

TEST(HarmonyReply, UnsolicitedBuiltInToolIsAThought) {
  EXPECT_EQ(Seen("<|channel|>analysis to=python code<|message|>1+1<|call|>"), "reasoning: 1+1");
}

TEST(HarmonyReply, AddressedToNobodyInParticular) {
  // llama.cpp #27720
  EXPECT_EQ(Seen("<|channel|>commentary to=assistant<|channel|>final<|message|>x<|return|>"),
            "content: x");
  EXPECT_EQ(Seen("<|channel|>final to=user<|message|>x<|return|>"), "content: x");
}

TEST(HarmonyReply, WordsOfOthersAreNotTheReply) {
  EXPECT_EQ(Seen("<|channel|>final<|message|>Hi.<|end|><|start|>user<|message|>And?<|end|>"
                 "<|start|>functions.f to=assistant<|channel|>commentary<|message|>7<|end|>"),
            "content: Hi.");
}

TEST(HarmonyReply, MarkupNeverShows) {
  // mlxcel #654, mlx-lm #1867: channel markup in the answer
  EXPECT_EQ(Seen("<|channel|>final<|channel|>final<|message|><|message|>x<|constrain|>y<|return|>"),
            "content: xy");
}

TEST(HarmonyReply, StopsAreTheEndsOfATurn) {
  static const testing::ByteTokenizer tokenizer;
  EXPECT_EQ(Format().stop_tokens(),
            (std::vector<Token>{*tokenizer.Special("<|return|>"), *tokenizer.Special("<|call|>"),
                                *tokenizer.Special("<|endoftext|>")}));
}

class NoSpecials : public testing::ByteTokenizer {
 public:
  std::optional<Token> Special(std::string_view name) const override {
    if (name == "<|channel|>") return std::nullopt;
    return ByteTokenizer::Special(name);
  }
};

TEST(HarmonyReply, OtherVocabulariesAreRefused) {
  const NoSpecials tokenizer;
  Result<std::unique_ptr<ChatFormat>> format = MakeHarmonyFormat(tokenizer);
  ASSERT_FALSE(format.ok());
  EXPECT_EQ(format.status().message(),
            "the tokenizer has no token <|channel|>: not a harmony model");
}

TEST(HarmonyReply, AnAnswerThatGoesOnIsContentAtOnce) {
  const testing::ByteTokenizer tokenizer;
  Conversation conversation;
  conversation.messages.emplace_back().role = Role::kAssistant;
  conversation.messages.back().content = "Hel";
  EXPECT_FALSE(Format().StartOf(conversation, {}).begins_in_answer);
  conversation.continues_last = true;
  const ReplyStart start = Format().StartOf(conversation, {});
  EXPECT_EQ(start.said, tokenizer.Stream("<|channel|>final<|message|>Hel"));
  std::vector<ReplyEvent> events;
  const auto reader = Format().NewReaderAt(start);
  // Where a header were still to come, "lo" would be part of it.
  for (const Token token : tokenizer.Stream("lo<|message|><|return|>")) reader->Feed(token, events);
  reader->Finish(events);
  std::string text;
  for (const ReplyEvent& event : events) {
    EXPECT_EQ(event.kind, ReplyEvent::Kind::kContent);
    text += event.text;
  }
  EXPECT_EQ(text, "lo") << "what was said before is not told again";
}

}  // namespace
}  // namespace hearth
