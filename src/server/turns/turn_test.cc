// SPDX-License-Identifier: Apache-2.0
#include "server/turns/turn.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

using Kind = ReplyEvent::Kind;

// Says what it was told to say for each token: token i is script[i].
class ScriptReader : public ReplyReader {
 public:
  explicit ScriptReader(std::vector<std::vector<ReplyEvent>> script) : script_(std::move(script)) {}
  void Feed(Token token, std::vector<ReplyEvent>& out) override {
    for (const ReplyEvent& event : script_[static_cast<size_t>(token)]) out.push_back(event);
  }
  void Finish(std::vector<ReplyEvent>&) override {}

 private:
  std::vector<std::vector<ReplyEvent>> script_;
};

class LetterTokenizer : public Tokenizer {
 public:
  void Encode(std::string_view, std::vector<Token>&) const override {}
  std::optional<Token> Special(std::string_view) const override { return std::nullopt; }
  const std::vector<SpecialName>& specials() const override { return specials_; }
  bool IsSpecial(Token token) const override { return token == 26; }
  std::string_view Bytes(Token token) const override {
    return std::string_view("abcdefghijklmnopqrstuvwxyz").substr(static_cast<size_t>(token), 1);
  }
  int vocab_size() const override { return 27; }
  const TokenizerTraits& traits() const override { return traits_; }

 private:
  std::vector<SpecialName> specials_;
  TokenizerTraits traits_;
};
const LetterTokenizer kLetters;

std::string Told(const std::vector<Delta>& deltas) {
  std::string out;
  for (const Delta& delta : deltas) {
    constexpr const char* kNames[] = {"think", "say", "call", "args", "end"};
    out += std::string(kNames[static_cast<size_t>(delta.kind)]) + std::to_string(delta.call) + "(" +
           delta.text + ")";
  }
  return out;
}

struct Heard {
  std::string told;
  bool is_stopped = false;
  int reasoning_tokens = 0, calls = 0, tokens = 0;
};

// One at a time or all at once makes no difference but in how much is joined.
Heard Play(std::vector<std::vector<ReplyEvent>> script, const std::vector<std::string>& stops,
           bool one_at_a_time) {
  const auto size = static_cast<Token>(script.size());
  Turn turn(std::make_unique<ScriptReader>(std::move(script)), *StopStrings::Make(stops), kLetters);
  std::vector<Delta> all;
  for (Token token = 0; token < size; ++token) {
    std::vector<Delta> now;
    turn.Feed(token, nullptr, one_at_a_time ? now : all);
    for (Delta& delta : now) {
      if (!all.empty() && all.back().kind == delta.kind && delta.kind != Kind::kToolCall) {
        all.back().text += delta.text;
      } else {
        all.push_back(delta);
      }
    }
  }
  turn.Finish(all);
  return {Told(all), turn.is_stopped(), turn.num_reasoning_tokens(), turn.num_calls(),
          turn.num_tokens()};
}

TEST(Turn, TellsKindsInOrderAndJoinsNeighbours) {
  for (const bool one : {false, true}) {
    const Heard heard = Play({{{Kind::kReasoning, "hm"}},
                              {{Kind::kReasoning, "m"}},
                              {{Kind::kContent, "a"}, {Kind::kContent, "b"}},
                              {{Kind::kToolCall, "f"}},
                              {{Kind::kToolArguments, "{"}},
                              {{Kind::kToolArguments, "}"}},
                              {{Kind::kToolCallEnd, ""}, {Kind::kToolCall, "g"}},
                              {{Kind::kToolArguments, "[]"}}},
                             {}, one);
    EXPECT_EQ(heard.told, "think0(hmm)say0(ab)call0(f)args0({})end0()call1(g)args1([])");
    EXPECT_EQ(heard.reasoning_tokens, 2);
    EXPECT_EQ(heard.calls, 2);
    EXPECT_EQ(heard.tokens, 8);
  }
}

TEST(Turn, StopsInTheAnswerOnly) {
  for (const bool one : {false, true}) {
    const Heard heard = Play({{{Kind::kReasoning, "STOP"}},
                              {{Kind::kContent, "a S"}},
                              {{Kind::kContent, "TO"}},
                              {{Kind::kContent, "P never"}},
                              {{Kind::kToolCall, "f"}}},
                             {"STOP"}, one);
    EXPECT_EQ(heard.told, "think0(STOP)say0(a )");
    EXPECT_TRUE(heard.is_stopped);
    EXPECT_EQ(heard.calls, 0);
    EXPECT_EQ(heard.tokens, 4);  // the call came after the end
  }
  EXPECT_EQ(Play({{{Kind::kContent, "ST"}}}, {"STOP"}, false).told, "say0(ST)");
}

TEST(Turn, HoldsBackHalfCharacters) {
  const Heard heard = Play({{{Kind::kContent, "\xf0\x9f"}},
                            {{Kind::kContent, "\xa6\x89!"}},
                            {{Kind::kContent, "\xc3"}},
                            {{Kind::kReasoning, "x"}}},
                           {}, true);
  EXPECT_EQ(heard.told, "say0(\xf0\x9f\xa6\x89!\xef\xbf\xbd)think0(x)");
}

TEST(Turn, BringsLogprobsWithTheTextTheyBelongTo) {
  Turn turn(NewPlainReader(kLetters), *StopStrings::Make({"bcd"}), kLetters);
  std::vector<Delta> out;
  const auto feed = [&](Token token) {
    const Logprobs logprobs{{token, -0.5f}, {{token, -0.5f}, {25, -1.0f}}};
    turn.Feed(token, &logprobs, out);
  };
  feed(0);
  ASSERT_EQ(out.size(), 1u);
  ASSERT_EQ(out[0].logprobs.size(), 1u);
  EXPECT_EQ(out[0].logprobs[0].chosen.bytes, "a");
  EXPECT_EQ(out[0].logprobs[0].top[1].bytes, "z");
  feed(1);
  feed(2);  // "bc" might become the stop string
  EXPECT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].logprobs.size(), 1u);
  feed(23);
  EXPECT_EQ(out[0].text, "abcx");
  EXPECT_EQ(out[0].logprobs.size(), 4u);
  feed(26);  // special: no text
  EXPECT_EQ(out[0].logprobs.size(), 4u);
}

}  // namespace
}  // namespace hearth
