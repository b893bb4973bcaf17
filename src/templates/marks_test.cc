// SPDX-License-Identifier: Apache-2.0
#include "templates/marks.h"

#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"
#include "templates/program.h"
#include "testing/template_tokenizer.h"

namespace hearth {
namespace {

std::string Utf8(uint32_t code_point) {
  std::string out;
  AppendUtf8(code_point, out);
  return out;
}

TEST(Marks, EveryCodePointSurvivesAndIsMarked) {
  const TestingTokenizer tokenizer({"<|a|>"});
  const SpecialFinder finder(tokenizer);
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    const std::string text = Utf8(c), marked = Mark(text);
    ASSERT_EQ(Unmark(marked), text) << c;
    // Every byte of a mark belongs to a code point in planes 4 to 13.
    for (size_t i = 0; i < marked.size(); i += 4) {
      const auto lead = static_cast<unsigned char>(marked[i]);
      const auto next = static_cast<unsigned char>(marked[i + 1]);
      const int plane = (lead & 7) << 2 | (next >> 4 & 3);
      ASSERT_TRUE(lead >= 0xf0 && plane >= 4 && plane <= 13) << c;
    }
  }
}

// The engine's half of the table: every character equals its twin there, in any case and escaped,
// and what is made from a twin is a twin.
TEST(Marks, TheEngineSeesThroughEveryTwin) {
  auto program = TemplateProgram::Compile(
      "{{ a == b }}{{ a in b }}{{ (a | upper) == (b | upper) }}{{ a.lower() == b.lower() }}"
      "{{ (a | tojson) == (b | tojson) }}{{ a.split() == b.split() }}|{{ a | upper }}"
      "{{ a | lower }}{{ a | title }}{{ a | tojson(ensure_ascii=true) }}");
  ASSERT_TRUE(program.ok()) << program.status().message();
  std::string text;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c == 0xd800) c = 0xe000;
    if (c == 0x40000) c = 0xe0000;
    AppendUtf8(c, text);
    if (c % 2048 != 2047) continue;
    auto out = program->Run(WriteJson(JsonObject{{"a", Mark(text)}, {"b", text}}));
    ASSERT_TRUE(out.ok()) << out.status().message();
    const std::string_view rendered = *out;
    const size_t bar = rendered.find('|');
    ASSERT_EQ(rendered.substr(0, bar), "TrueTrueTrueTrueTrueTrue") << std::hex << c;
    // All that is not marked are the quotes of tojson.
    std::string plain;
    for (const char* at = rendered.data() + bar + 1; at < rendered.data() + rendered.size();) {
      const Utf8Char next = DecodeUtf8(at, rendered.data() + rendered.size());
      if (next.code_point < 0x40000 || next.code_point >= 0xe0000) plain.append(at, next.num_bytes);
      at += next.num_bytes;
    }
    ASSERT_EQ(plain, "\"\"") << std::hex << c;
    text.clear();
  }
}

TEST(Marks, BytesThatAreNotUtf8Survive) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 12, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    ASSERT_EQ(Unmark(Mark(bytes)), bytes);
  }
}

TEST(Marks, HalvesOfAPairAreReplaced) {
  const std::string pair = Mark(Utf8(0x54321));
  ASSERT_EQ(pair.size(), 8u);
  EXPECT_EQ(Unmark(pair.substr(0, 4)), "\xef\xbf\xbd");
  EXPECT_EQ(Unmark(pair.substr(4)), "\xef\xbf\xbd");
  EXPECT_EQ(Unmark(pair.substr(4) + pair.substr(0, 4)), "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(Marks, JsonIsMarkedBelowAndInNames) {
  auto json = ParseJson(R"({"a": ["<|a|>", 1, null, {"<|a|>": true}]})");
  ASSERT_TRUE(json.ok());
  const std::string marked = WriteJson(MarkJson(*json));
  EXPECT_EQ(marked.find("<|a|>"), std::string::npos);
  EXPECT_EQ(Unmark(marked), WriteJson(*json));
}

std::string Show(const std::vector<PromptPiece>& pieces) {
  std::string out;
  for (const PromptPiece& piece : pieces)
    out += piece.special ? "{" + piece.text + "}" : piece.text;
  return out;
}

TEST(SpecialFinder, FindsTheLongestNameInUnmarkedTextOnly) {
  const TestingTokenizer tokenizer({"<s>", "<s>x", "<|im_start|>", "42", "true"});
  const SpecialFinder finder(tokenizer);
  EXPECT_EQ(Show(finder.Split("<s>y<s>x<|im_start|>user 42 true <|im_start|")),
            "{<s>}y{<s>x}{<|im_start|>}user 42 true <|im_start|");
  EXPECT_EQ(Show(finder.Split(Mark("<s><|im_start|>"))), "<s><|im_start|>");
}

TEST(SpecialFinder, NoMixOfTemplateAndMessageIsSpecial) {
  const TestingTokenizer tokenizer({"<|im_start|>"});
  const SpecialFinder finder(tokenizer);
  const std::string name = "<|im_start|>";
  for (unsigned mask = 0; mask < 1u << name.size(); ++mask) {
    std::string rendered;
    for (size_t i = 0; i < name.size(); ++i) {
      rendered += (mask >> i & 1) != 0 ? Mark(name.substr(i, 1)) : name.substr(i, 1);
    }
    const auto pieces = finder.Split(rendered);
    ASSERT_EQ(pieces.size(), 1u);
    ASSERT_EQ(pieces[0].special.has_value(), mask == 0) << mask;
    ASSERT_EQ(pieces[0].text, name);
  }
}

TEST(SpecialFinder, TextIsOnePieceAcrossTheEdgeOfAMessage) {
  const TestingTokenizer tokenizer({"<s>"});
  const auto pieces = SpecialFinder(tokenizer).Split("a " + Mark("b") + " c<s>" + Mark("d") + "e");
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].text, "a b c");
  EXPECT_EQ(pieces[2].text, "de");
}

}  // namespace
}  // namespace hearth
