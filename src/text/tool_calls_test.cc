// SPDX-License-Identifier: Apache-2.0
#include "text/tool_calls.h"

#include <gtest/gtest.h>

#include <random>

namespace hearth {
namespace {

using Kind = ReplyEvent::Kind;

// Events as one line, those of a kind that follow each other joined.
std::string Show(const std::vector<ReplyEvent>& events) {
  std::string out;
  const ReplyEvent* before = nullptr;
  for (const ReplyEvent& event : events) {
    const bool joins = before != nullptr && before->kind == event.kind &&
                       (event.kind == Kind::kContent || event.kind == Kind::kReasoning);
    constexpr const char* kNames[] = {"think:", "say:", "call:", "with:", "end"};
    if (!joins) out += (out.empty() ? "" : "|") + std::string(kNames[static_cast<int>(event.kind)]);
    out += event.text;
    before = &event;
  }
  return out;
}

std::string Read(ToolCallStyle style, std::string_view reply, bool begins_in_reasoning = false,
                 std::mt19937* random = nullptr) {
  using Begins = ToolCallParser::Begins;
  ToolCallParser parser(style, begins_in_reasoning ? Begins::kInReasoning : Begins::kReply);
  std::vector<ReplyEvent> events;
  while (random != nullptr && !reply.empty()) {
    const size_t size = std::min<size_t>(reply.size(), 1 + (*random)() % 7);
    parser.Feed(reply.substr(0, size), events);
    reply.remove_prefix(size);
  }
  parser.Feed(reply, events);
  parser.Finish(events);
  return Show(events);
}

struct Case {
  const char *reply, *shown;
};

// Every case in one piece, and cut in a hundred ways.
void Check(ToolCallStyle style, std::initializer_list<Case> cases) {
  std::mt19937 random(7);
  for (const Case& c : cases) {
    EXPECT_EQ(Read(style, c.reply), c.shown) << c.reply;
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(Read(style, c.reply, false, &random), c.shown) << c.reply;
    }
  }
}

TEST(ToolCalls, PlainTextIsContentByteForByte) {
  for (const auto style : {ToolCallStyle::kNone, ToolCallStyle::kChatMl, ToolCallStyle::kLlama3}) {
    Check(style, {{"", ""},
                  {"Hello.", "say:Hello."},
                  {"  two\n\nlines \n", "say:  two\n\nlines \n"},
                  {" \n", "say: \n"},
                  {"a < b <t <tool_", "say:a < b <t <tool_"},
                  {"</think>x", "say:</think>x"},
                  {"a<think>b</think>", "say:a<think>b</think>"},
                  {"<thin", "say:<thin"},
                  {"\xff\xfe<", "say:\xff\xfe<"}});
  }
}

TEST(ToolCalls, AThoughtBeforeTheAnswerIsReasoning) {
  for (const auto style : {ToolCallStyle::kNone, ToolCallStyle::kChatMl, ToolCallStyle::kLlama3}) {
    Check(style, {{"<think>\nso\nthen\n</think>\n\nYes.\n", "think:so\nthen|say:Yes.\n"},
                  {"\n<think></think>Yes", "say:Yes"},
                  {"<think>unfinished </thin", "think:unfinished </thin"},
                  {"<think>a</think><think>b</think>", "think:a|say:<think>b</think>"}});
    EXPECT_EQ(Read(style, "so\n</think>\nYes", true), "think:so|say:Yes");
  }
}

TEST(ToolCalls, ChatMl) {
  Check(
      ToolCallStyle::kChatMl,
      {{"<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1.50}}\n</tool_call>",
        "call:f|with:{\"a\": 1.50}|end"},
       {"Let me see.\n<tool_call>{\"arguments\": {\"s\": \"}</tool\\\"_call>\"}, \"name\": \"f\"}"
        "</tool_call>\n",
        "say:Let me see.|call:f|with:{\"s\": \"}</tool\\\"_call>\"}|end"},
       {"<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>"
        "{\"name\":\"g\",\"parameters\":{\"x\":[1,{}]}}</tool_call> done ",
        "call:f|with:{}|end|call:g|with:{\"x\":[1,{}]}|end|say:done"},
       {"<think>t</think>\n<tool_call>{\"name\":\"f\"}</tool_call>", "think:t|call:f|with:{}|end"},
       // Once more as a string, as some models do.
       {"<tool_call>{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}</tool_call>",
        "call:f|with:{\"a\":1}|end"},
       // The end tag lost to a length limit.
       {"<tool_call>{\"name\":\"f\",\"arguments\":{}}", "call:f|with:{}|end"},
       {"<tool_call>{\"name\":\"f\",\"\\u0061rguments\":{\"b\":2}}</tool_call>",
        "call:f|with:{\"b\":2}|end"}});
}

TEST(ToolCalls, OddArgumentsAreTheToolsToJudge) {
  Check(ToolCallStyle::kChatMl,
        {{R"(<tool_call>{"name": "f", "arguments": {"a": 1e999, "a": {}}}</tool_call>)",
          R"(call:f|with:{"a": 1e999, "a": {}}|end)"}});
}

TEST(ToolCalls, ABrokenChatMlCallIsContent) {
  Check(ToolCallStyle::kChatMl,
        {{"<tool_call>{\"name\": \"f\", }</tool_call>",
          "say:<tool_call>{\"name\": \"f\", }</tool_call>"},
         {"a\n<tool_call></tool_call>b", "say:a\n<tool_call></tool_call>b"},
         {"<tool_call>[1]</tool_call>", "say:<tool_call>[1]</tool_call>"},
         {"<tool_call>{\"name\":1}</tool_call>", "say:<tool_call>{\"name\":1}</tool_call>"},
         {"<tool_call>{\"name\":\"f\",\"argum", "say:<tool_call>{\"name\":\"f\",\"argum"},
         {"<tool_call>x<tool_call>{\"name\":\"f\"}</tool_call>",
          "say:<tool_call>x<tool_call>{\"name\":\"f\"}</tool_call>"}});
}

TEST(ToolCalls, Llama3) {
  Check(ToolCallStyle::kLlama3,
        {{"{\"name\": \"f\", \"parameters\": {\"a\": \"}{\"}}", "call:f|with:{\"a\": \"}{\"}|end"},
         {"<|python_tag|>{\"name\": \"f\", \"parameters\": {}}", "call:f|with:{}|end"},
         {" {\"type\": \"function\", \"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", "
          "\"parameters\": {\"b\": 2}}",
          "call:f|with:{}|end|call:g|with:{\"b\": 2}|end"},
         {"{\"name\": \"f\", \"parameters\": {}}\n\nDone.", "call:f|with:{}|end|say:Done."},
         {"<think>t</think>{\"name\": \"f\", \"parameters\": {}}", "think:t|call:f|with:{}|end"}});
}

TEST(ToolCalls, JsonThatIsNoLlama3CallIsContent) {
  Check(ToolCallStyle::kLlama3,
        {{"{\"name\": \"Ann\"} is JSON", "say:{\"name\": \"Ann\"} is JSON"},
         {" {\"a\": 1}", "say: {\"a\": 1}"},
         {"{not json}", "say:{not json}"},
         {"{\"name\": \"f\", \"parameters\": {", "say:{\"name\": \"f\", \"parameters\": {"},
         {"Use {\"name\": \"f\", \"parameters\": {}}",
          "say:Use {\"name\": \"f\", \"parameters\": {}}"},
         {"<|python_tag|>print(1)", "say:print(1)"},
         {"}", "say:}"}});
}

TEST(ToolCalls, ARunawayCallIsContentAndBounded) {
  const std::string big(ToolCallParser::kMaxCallBytes, 'x');
  const std::string tagged = "<tool_call>{\"name\":\"" + big + "\"}</tool_call>";
  EXPECT_EQ(Read(ToolCallStyle::kChatMl, tagged), "say:" + tagged);
  const std::string object = "{\"name\":\"" + big + "\",\"parameters\":{}}";
  EXPECT_EQ(Read(ToolCallStyle::kLlama3, object), "say:" + object);
  std::mt19937 random(3);
  EXPECT_EQ(Read(ToolCallStyle::kChatMl, tagged, false, &random), "say:" + tagged);
  EXPECT_EQ(Read(ToolCallStyle::kLlama3, object, false, &random), "say:" + object);
}

// Pieces of tags and JSON in any order: no crash, nothing lost but layout, cuts do not matter.
TEST(ToolCalls, AnyTextHasOneReading) {
  constexpr const char* kParts[] = {"<tool_call>",
                                    "</tool_call>",
                                    "<think>",
                                    "</think>",
                                    "{",
                                    "}",
                                    "\"name\"",
                                    ":",
                                    "\"f\"",
                                    ",",
                                    " ",
                                    "\n",
                                    "\"arguments\"",
                                    "\"parameters\"",
                                    "\\",
                                    "<|python_tag|>",
                                    ";",
                                    "<tool",
                                    "{\"name\":\"f\",\"arguments\":{}}",
                                    "\xf0\x9f"};
  std::mt19937 random(11);
  for (int round = 0; round < 20000; ++round) {
    std::string reply;
    for (size_t n = random() % 14; n > 0; --n) reply += kParts[random() % std::size(kParts)];
    for (const auto style :
         {ToolCallStyle::kNone, ToolCallStyle::kChatMl, ToolCallStyle::kLlama3}) {
      const bool thinks = random() % 4 == 0;
      const std::string whole = Read(style, reply, thinks);
      ASSERT_EQ(Read(style, reply, thinks, &random), whole) << reply;
      if (style == ToolCallStyle::kNone && !thinks && reply.find("<think>") == std::string::npos) {
        ASSERT_EQ(whole, reply.empty() ? "" : "say:" + reply);
      }
    }
  }
}

TEST(ToolCalls, TheStyleIsWhatTheTemplateTeaches) {
  EXPECT_EQ(ToolCallStyleOf("... within <tool_call></tool_call> XML tags"), ToolCallStyle::kChatMl);
  EXPECT_EQ(ToolCallStyleOf("<|start_header_id|> {\"name\": f, \"parameters\": d}"),
            ToolCallStyle::kLlama3);
  EXPECT_EQ(ToolCallStyleOf("<|start_header_id|>"), ToolCallStyle::kNone);
  EXPECT_EQ(ToolCallStyleOf(""), ToolCallStyle::kNone);
}

TEST(ToolCalls, AnAnswerThatGoesOnIsNoBeginning) {
  for (const ToolCallStyle style :
       {ToolCallStyle::kNone, ToolCallStyle::kChatMl, ToolCallStyle::kLlama3}) {
    ToolCallParser parser(style, ToolCallParser::Begins::kInAnswer);
    std::vector<ReplyEvent> events;
    parser.Feed(" <think>{\"name\": \"f\", \"parameters\": {}}", events);
    parser.Finish(events);
    EXPECT_EQ(Show(events), "say: <think>{\"name\": \"f\", \"parameters\": {}}");
  }
  ToolCallParser parser(ToolCallStyle::kChatMl, ToolCallParser::Begins::kInAnswer);
  std::vector<ReplyEvent> events;
  parser.Feed("so:\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", events);
  parser.Finish(events);
  EXPECT_EQ(Show(events), "say:so:|call:f|with:{}|end");
}

TEST(ToolCalls, GenericCallsAreLinesOfJson) {
  constexpr ToolCallStyle kStyle = ToolCallStyle::kGeneric;
  EXPECT_EQ(Read(kStyle, R"({"name": "f", "arguments": {"a": "}"}})"),
            R"(call:f|with:{"a": "}"}|end)");
  EXPECT_EQ(
      Read(kStyle, "{\"name\": \"f\", \"arguments\": {}}\n{\"name\": \"g\", \"arguments\": {}}"),
      "call:f|with:{}|end|call:g|with:{}|end");
  EXPECT_EQ(Read(kStyle, "It is {\"name\": \"f\", \"arguments\": {}}"),
            "say:It is {\"name\": \"f\", \"arguments\": {}}");
  EXPECT_EQ(Read(kStyle, R"({"name": "Ann"})"), R"(say:{"name": "Ann"})");
  EXPECT_EQ(Read(kStyle, "<|python_tag|>x"), "say:<|python_tag|>x");
}

}  // namespace
}  // namespace hearth
