// SPDX-License-Identifier: Apache-2.0
// Readings of replies, right and wrong ones. Numbers of public threads stand where a case was
// first seen; docs/harmony.md has the rules.
#include "text/harmony_parse.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "testing/byte_tokenizer.h"
#include "testing/harmony_stream.h"

namespace hearth {
namespace {

const testing::ByteTokenizer& Bytes() {
  static const testing::ByteTokenizer tokenizer;
  return tokenizer;
}
const HarmonyTokens& Control() {
  static const HarmonyTokens tokens = *HarmonyTokens::Find(Bytes());
  return tokens;
}

const char* RoleName(Role role) {
  constexpr const char* kNames[] = {"system", "developer", "user", "assistant", "tool"};
  return kNames[static_cast<size_t>(role)];
}

// "assistant/final to=x (json): content|return" per message, joined by newlines.
std::string Described(const std::vector<HarmonyEvent>& events) {
  constexpr const char* kChannels[] = {"", "/analysis", "/commentary", "/final"};
  constexpr const char* kEnds[] = {"|end", "|call", "|return", "|cut"};
  std::string out;
  for (const HarmonyEvent& event : events) {
    const HarmonyHeader& header = event.header;
    switch (event.kind) {
      case HarmonyEvent::Kind::kStart:
        out += out.empty() ? "" : "\n";
        out += RoleName(header.role);
        if (!header.name.empty()) out += ":" + header.name;
        out += kChannels[static_cast<size_t>(header.channel)];
        if (!header.recipient.empty()) out += " to=" + header.recipient;
        if (!header.content_type.empty()) {
          out += (header.is_constrained ? " (constrained " : " (") + header.content_type + ")";
        }
        out += ": ";
        break;
      case HarmonyEvent::Kind::kContent:
        out += event.bytes;
        break;
      case HarmonyEvent::Kind::kEnd:
        out += kEnds[static_cast<size_t>(event.end)];
        break;
    }
  }
  return out;
}

testing::HarmonyRun ReadStream(std::string_view stream) {
  const std::vector<Token> tokens = Bytes().Stream(stream);
  EXPECT_EQ(testing::CheckHarmonyStream(Bytes(), Control(), tokens, 3), nullptr) << stream;
  return testing::RunHarmony(Bytes(), Control(), tokens, 0);
}

struct Case {
  const char* name;
  const char* stream;
  const char* reading;
  uint64_t HarmonyRepairs::* repair = nullptr;  // the one kind of repair made, if any
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class HarmonyParse : public ::testing::TestWithParam<Case> {};

TEST_P(HarmonyParse, Reads) {
  const testing::HarmonyRun run = ReadStream(GetParam().stream);
  EXPECT_EQ(Described(run.events), GetParam().reading);
  if (GetParam().repair == nullptr) {
    EXPECT_EQ(run.repairs.total(), 0u);
    EXPECT_EQ(run.counts.repaired_tokens, 0u);
  } else {
    EXPECT_GT(run.repairs.*GetParam().repair, 0u);
  }
}

std::string NameOf(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

using R = HarmonyRepairs;

const Case kWellFormed[] = {
    {"Nothing", "", ""},
    {"Answer", "<|channel|>final<|message|>Hi.<|return|>", "assistant/final: Hi.|return"},
    {"ThoughtThenAnswer",
     "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hi."
     "<|return|>",
     "assistant/analysis: Hm.|end\nassistant/final: Hi.|return"},
    {"CallWithRecipientInChannel",
     "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>",
     "assistant/commentary to=functions.f (constrained json): {}|call"},
    // llama.cpp #15181
    {"CallWithRecipientInRole",
     " to=functions.f<|channel|>commentary <|constrain|>json<|message|>{}<|call|>",
     "assistant/commentary to=functions.f (constrained json): {}|call"},
    {"CallWithPlainType", " to=functions.f<|channel|>commentary json<|message|>{}<|call|>",
     "assistant/commentary to=functions.f (json): {}|call"},
    {"ConstrainTouchesRecipient",
     "<|channel|>commentary to=functions.f<|constrain|>json<|message|>{}<|call|>",
     "assistant/commentary to=functions.f (constrained json): {}|call"},
    {"BuiltInTool", "<|channel|>analysis to=python code<|message|>1<|call|>",
     "assistant/analysis to=python (code): 1|call"},
    // vLLM #51977
    {"RecipientWithDash", "<|channel|>commentary to=functions.web-browsing<|message|>{}<|call|>",
     "assistant/commentary to=functions.web-browsing: {}|call"},
    // The type of a final answer; the official package takes it for a recipient.
    {"ConstrainedFinal", "<|channel|>final <|constrain|>json<|message|>{}<|return|>",
     "assistant/final (constrained json): {}|return"},
    {"PlainTypeOfFinal", "<|channel|>final json<|message|>{}<|return|>",
     "assistant/final (json): {}|return"},
    {"Preamble", "<|channel|>commentary<|message|>Looking.<|end|>",
     "assistant/commentary: Looking.|end"},
    {"CutOffInContent", "<|channel|>final<|message|>Hi", "assistant/final: Hi|cut"},
    // What follows is written by others, but stands in streams that begin with a whole prompt.
    {"OtherRoles",
     "<|channel|>final<|message|>A<|end|><|start|>user<|message|>B<|end|>"
     "<|start|>functions.f to=assistant<|channel|>commentary<|message|>C<|end|>"
     "<|start|>developer<|message|>D<|end|><|start|>system<|message|>E<|end|>"
     "<|start|>user:ann<|message|>F<|end|><|start|>oracle to=assistant<|message|>G<|end|>",
     "assistant/final: A|end\nuser: B|end\ntool:functions.f/commentary to=assistant: C|end\n"
     "developer: D|end\nsystem: E|end\nuser:ann: F|end\ntool:oracle to=assistant: G|end"},
};
INSTANTIATE_TEST_SUITE_P(WellFormed, HarmonyParse, ::testing::ValuesIn(kWellFormed), NameOf);

const Case kBrokenHeaders[] = {
    // llama.cpp #27720
    {"ChannelWithQuestionMark", "<|channel|>commentary?<|message|>x<|end|>",
     "assistant/commentary: x|end", &R::odd_channels},
    // openai/harmony #38
    {"ChannelWithDashes", "<|channel|>\u2013\u2013commentary to=functions.f<|message|>{}<|call|>",
     "assistant/commentary to=functions.f: {}|call", &R::odd_channels},
    {"DashesAfterTheChannel",
     "<|channel|>analysis \u2013\u2013commentary to=functions.f json<|message|>{}<|call|>",
     "assistant/analysis to=functions.f (json): {}|call", &R::unknown_words},
    // llama.cpp #27720: the last channel that is one wins
    {"DoubledChannel", "<|channel|>commentary to=assistant<|channel|>final<|message|>x<|return|>",
     "assistant/final to=assistant: x|return", &R::odd_channels},
    {"ChannelAfterChannel", "<|channel|>commentary<|channel|>analysis<|message|>x<|end|>",
     "assistant/analysis: x|end", &R::odd_channels},
    {"DoubledChannelSecondUnknown", "<|channel|>analysis<|channel|>blah<|message|>x<|end|>",
     "assistant/analysis: x|end", &R::odd_channels},
    // llama.cpp #25321
    {"NoChannel", "<|message|>x<|return|>", "assistant/final: x|return", &R::missing_channels},
    {"NoChannelButCall", " to=functions.f<|message|>{}<|call|>",
     "assistant/commentary to=functions.f: {}|call", &R::missing_channels},
    {"EmptyChannel", "<|channel|><|message|>x<|return|>", "assistant/final: x|return",
     &R::missing_channels},
    {"UnknownChannel", "<|channel|>thinking<|message|>x<|return|>", "assistant/final: x|return",
     &R::unknown_words},
    {"SpaceBeforeChannel", "<|channel|> final<|message|>x<|return|>", "assistant/final: x|return"},
    {"UnknownWords", "<|channel|>final for the user<|message|>x<|return|>",
     "assistant/final: x|return", &R::unknown_words},
    {"TextBeforeChannel", "We should answer.<|channel|>final<|message|>x<|return|>",
     "assistant/final: x|return", &R::unknown_words},
    {"AuthorTwice", "<|start|>assistant<|channel|>final<|message|>x<|return|>",
     "assistant/final: x|return"},
    {"AuthorAgainWithoutStart", "assistant<|channel|>final<|message|>x<|return|>",
     "assistant/final: x|return"},
    {"UnknownAuthor",
     "<|channel|>analysis<|message|>a<|end|><|start|>bot<|channel|>final<|message|>x<|return|>",
     "assistant/analysis: a|end\nassistant/final: x|return", &R::unknown_words},
    {"RecipientWithoutTo", "<|channel|>commentary functions.f<|message|>{}<|call|>",
     "assistant/commentary to=functions.f: {}|call"},
    {"RecipientIsTheChannel", "<|channel|>to=functions.f<|message|>{}<|call|>",
     "assistant/commentary to=functions.f: {}|call", &R::missing_channels},
    {"RecipientBeforeTypeBeforeChannel",
     " to=functions.f<|constrain|>json<|channel|>commentary<|message|>{}<|call|>",
     "assistant/commentary to=functions.f (constrained json): {}|call"},
    {"TypeTwice", "<|channel|>commentary to=functions.f json extra<|message|>{}<|call|>",
     "assistant/commentary to=functions.f (json): {}|call", &R::unknown_words},
    {"EmptyRecipient", "<|channel|>commentary to=<|message|>{}<|call|>",
     "assistant/commentary: {}|call", &R::unknown_words},
};
INSTANTIATE_TEST_SUITE_P(BrokenHeaders, HarmonyParse, ::testing::ValuesIn(kBrokenHeaders), NameOf);

const Case kBrokenStreams[] = {
    // llama.cpp #25321, mlx-lm #1867: an answer without any markup
    {"NoMarkup", "Hello  world.<|return|>", "assistant/final: Hello  world.|return",
     &R::missing_messages},
    {"NoMarkupCutOff", "Hello wor", "assistant/final: Hello wor|cut", &R::missing_messages},
    {"MissingMessage", "<|channel|>final Hello world<|return|>",
     "assistant/final: Hello world|return", &R::missing_messages},
    {"MissingMessageInCall",
     "<|channel|>commentary to=functions.f <|constrain|>json{\"a\": 1}<|call|>",
     "assistant/commentary to=functions.f (constrained json): {\"a\": 1}|call",
     &R::missing_messages},
    {"MissingMessageAfterRecipient", "<|channel|>commentary to=functions.f{\"a\": 1}<|call|>",
     "assistant/commentary to=functions.f: {\"a\": 1}|call", &R::missing_messages},
    {"MissingMessageAndSpace", "<|channel|>commentary to=functions.f {\"a\": 1}<|call|>",
     "assistant/commentary to=functions.f: {\"a\": 1}|call", &R::missing_messages},
    {"CallWithoutArguments", "<|channel|>commentary to=functions.f<|call|>",
     "assistant/commentary to=functions.f: |call", &R::missing_messages},
    {"CutOffInChannel", "<|channel|>fin", "", &R::unknown_words},
    {"CutOffInRecipient", "<|channel|>commentary to=functions.ge",
     "assistant/commentary to=functions.ge: |cut", &R::missing_messages},
    {"EmptyTurn", "<|return|>", "", &R::stray_tokens},
    {"StartOnly", "<|start|>assistant", "", &R::missing_messages},
    {"StartInsideContent",
     "<|channel|>analysis<|message|>Hm<|start|>assistant<|channel|>final<|message|>x<|return|>",
     "assistant/analysis: Hm|cut\nassistant/final: x|return", &R::missing_ends},
    {"ChannelInsideContent",
     "<|channel|>analysis<|message|>Hm<|channel|>final<|message|>x<|return|>",
     "assistant/analysis: Hm|cut\nassistant/final: x|return", &R::missing_ends},
    {"StartInsideHeader",
     "<|channel|>analysis<|start|>assistant<|channel|>final<|message|>x<|end|>",
     "assistant/analysis: |cut\nassistant/final: x|end", &R::missing_messages},
    {"MessageTwice", "<|channel|>final<|message|><|message|>x<|return|>",
     "assistant/final: x|return", &R::stray_tokens},
    {"ConstrainInsideContent", "<|channel|>final<|message|>a<|constrain|>b<|return|>",
     "assistant/final: ab|return", &R::stray_tokens},
    // openai/harmony #60: "Unexpected token 12606 while expecting start token"
    {"NoStart",
     "<|channel|>analysis<|message|>a<|end|>commentary to=functions.f <|constrain|>json<|message|>"
     "{}<|call|>",
     "assistant/analysis: a|end\nassistant/commentary to=functions.f (constrained json): {}|call",
     &R::missing_starts},
    {"NoStartButChannel",
     "<|channel|>analysis<|message|>a<|end|><|channel|>final<|message|>x<|return|>",
     "assistant/analysis: a|end\nassistant/final: x|return", &R::missing_starts},
    {"TextAfterEnd", "<|channel|>final<|message|>a<|end|>and more",
     "assistant/final: a|end\nassistant/final: and more|cut", &R::missing_starts},
    {"NewlineBetweenMessages",
     "<|channel|>analysis<|message|>a<|end|>\n<|start|>assistant<|channel|>final<|message|>x<|"
     "return|>",
     "assistant/analysis: a|end\nassistant/final: x|return", &R::stray_tokens},
    {"EndTwice", "<|channel|>final<|message|>a<|end|><|end|>", "assistant/final: a|end",
     &R::stray_tokens},
    {"EndOfText", "<|channel|>final<|message|>a<|endoftext|>", "assistant/final: a|cut",
     &R::missing_ends},
    {"EndOfTextInHeader", "<|channel|>final<|endoftext|>", "assistant/final: |cut",
     &R::missing_messages},
    {"ReservedToken", "<|channel|>fin<|reserved_1|>al<|message|>a<|reserved_1|>b<|return|>",
     "assistant/final: ab|return", &R::stray_tokens},
};
INSTANTIATE_TEST_SUITE_P(BrokenStreams, HarmonyParse, ::testing::ValuesIn(kBrokenStreams), NameOf);

TEST(HarmonyParser, IdsOutsideTheVocabularyAreLeftOut) {
  std::vector<Token> tokens = Bytes().Stream("<|channel|>final<|message|>ab<|return|>");
  tokens.insert(tokens.end() - 2, {-1, Bytes().vocab_size(), INT32_MAX, INT32_MIN});
  const testing::HarmonyRun run = testing::RunHarmony(Bytes(), Control(), tokens, 0);
  EXPECT_EQ(Described(run.events), "assistant/final: ab|return");
  EXPECT_EQ(run.repairs.stray_tokens, 4u);
  EXPECT_EQ(run.counts.repaired_tokens, 4u);
}

TEST(HarmonyParser, AnAnswerWithoutMarkupIsShownBeforeItEnds) {
  const std::string text = "An answer. " + std::string(2000, 'x');
  HarmonyParser parser(Bytes(), Control());
  std::vector<HarmonyEvent> events;
  parser.Feed(Bytes().Stream(text), events);
  EXPECT_EQ(Described(events), "assistant/final: " + text);
  EXPECT_EQ(parser.num_pending(), 0u);
  EXPECT_EQ(parser.counts().content_tokens, text.size());
}

TEST(HarmonyParser, EndlessHeadersTakeBoundedMemory) {
  for (const char* piece :
       {"<|channel|>", "<|constrain|>", " ", "<|start|>", "to=", "<|channel|>?"}) {
    std::string stream;
    for (int i = 0; i < 5000; ++i) stream += piece;
    HarmonyParser parser(Bytes(), Control());
    size_t most = 0;
    for (const Token token : Bytes().Stream(stream)) {
      std::vector<HarmonyEvent> events;
      parser.Feed(token, events);
      most = std::max(most, parser.num_pending());
    }
    EXPECT_LE(most, HeaderText::kMaxTokens + 1) << piece;
    ReadStream(stream);
  }
}

TEST(HarmonyParser, CountsSayWhereEveryTokenWent) {
  const testing::HarmonyRun run =
      ReadStream("<|channel|>final oops<|message|>abc<|constrain|><|return|><|end|>");
  // channel "final" message return; abc; "oops" constrain end. The space belongs to the header.
  EXPECT_EQ(run.counts.header_tokens, 1u + 5 + 1 + 1 + 1);
  EXPECT_EQ(run.counts.content_tokens, 3u);
  EXPECT_EQ(run.counts.repaired_tokens, 4u + 1 + 1);
}

// A token of a random stream: control tokens half of the time, header words often.
Token RandomToken(std::mt19937_64& random) {
  const uint64_t bits = random();
  const auto pick = static_cast<Token>((bits >> 8) % 1024);
  switch (bits & 15) {
    case 0:
      return pick % 256;  // any byte
    case 1:
      return pick % 8 == 0 ? pick * 131071 - 7 : ' ';  // sometimes no token at all
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
    case 7:
      return 265 + pick % (Bytes().vocab_size() - 265);  // words
    default:
      return 256 + pick % 9;  // control tokens
  }
}

// HEARTH_HARMONY_STREAMS=10000000 for the long run.
TEST(HarmonyParser, ManyRandomStreamsHaveAReading) {
  const char* wanted = std::getenv("HEARTH_HARMONY_STREAMS");
  const long count = wanted != nullptr ? std::atol(wanted) : 50000;
  std::mt19937_64 random(20260131);
  std::vector<Token> tokens;
  uint64_t num_tokens = 0;
  for (long i = 0; i < count; ++i) {
    tokens.resize(random() % (i % 64 == 0 ? 512 : 24));
    for (Token& token : tokens) token = RandomToken(random);
    num_tokens += tokens.size();
    const size_t piece = 2 + random() % 7;
    const char* wrong = testing::CheckHarmonyStream(Bytes(), Control(), tokens, piece);
    ASSERT_EQ(wrong, nullptr) << "stream " << i;
  }
  RecordProperty("tokens", std::to_string(num_tokens));
  EXPECT_GT(num_tokens, static_cast<uint64_t>(count));
}

}  // namespace
}  // namespace hearth
