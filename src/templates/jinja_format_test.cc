// SPDX-License-Identifier: Apache-2.0
#include "templates/jinja_format.h"

#include <gtest/gtest.h>

#include "testing/template_tokenizer.h"

namespace hearth {
namespace {

const std::vector<std::string> kNames = {"<|im_start|>", "<|im_end|>", "<think>",
                                         "</think>",     "<s>",        "</s>"};

// Special tokens in braces, so that "{<s>}" is one and "<s>" is text.
std::string Show(std::string_view source, const Conversation& conversation,
                 const RenderOptions& options = {}) {
  const TestingTokenizer tokenizer(kNames, "<s>", "</s>");
  auto format = JinjaChatFormat::Make(source, tokenizer);
  if (!format.ok()) return "refused: " + format.status().message();
  auto tokens = (*format)->Render(conversation, options);
  if (!tokens.ok()) return "failed: " + tokens.status().message();
  std::string out;
  for (const Token token : *tokens) {
    const std::string bytes(tokenizer.Bytes(token));
    out += tokenizer.IsSpecial(token) ? "{" + bytes + "}" : bytes;
  }
  return out;
}

Conversation Says(std::vector<std::pair<Role, std::string>> messages) {
  Conversation conversation;
  for (auto& [role, content] : messages) {
    conversation.messages.emplace_back().role = role;
    conversation.messages.back().content = content;
  }
  return conversation;
}

constexpr std::string_view kChatMl =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

TEST(JinjaFormat, WritesSpecialTokensByName) {
  EXPECT_EQ(Show(kChatMl, Says({{Role::kDeveloper, "Be."}, {Role::kUser, "Hi <s>"}})),
            "{<|im_start|>}system\nBe.{<|im_end|>}\n{<|im_start|>}user\nHi <s>{<|im_end|>}\n"
            "{<|im_start|>}assistant\n");
}

TEST(JinjaFormat, BosAndEosAreTheTemplatesOwn) {
  EXPECT_EQ(Show("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}",
                 Says({{Role::kUser, "<s></s>"}})),
            "{<s>}<s></s>{</s>}");
}

// What a template may do with a message: none of it makes a special token, all of it sees the text.
TEST(JinjaFormat, WhateverTheTemplateDoesMessagesStayText) {
  struct Case {
    const char *source, *content, *shown;
  };
  for (const Case& c : {
           Case{"{{ m | trim }}", "  <s> ", "<s>"},
           Case{"{{ m.replace('-', '') }}", "<-s->", "<s>"},
           Case{"{{ m | lower }}", "<S>", "<s>"},
           Case{"{{ m | upper | lower }}", "<s>", "<s>"},
           Case{"{{ m[::-1] }}", ">s<", "<s>"},
           Case{"{{ m | reverse }}", ">s<", "<s>"},
           Case{"{{ m[1:4] }}", "x<s>x", "<s>"},
           Case{"{{ m.split(',') | join }}", "<,s,>", "<s>"},
           Case{"{{ '<' + m + '>' }}", "s", "<s>"},
           Case{"{{ '<' ~ m ~ '>' }}", "/s", "</s>"},
           Case{"<{{ m }}>", "s", "<s>"},
           Case{"{{ m + 's>' }}", "<", "<s>"},
           Case{"{% for c in m %}{{ c }}{% endfor %}", "<s>", "<s>"},
           Case{"{{ [m] | first }}{{ [m] | last }}", "<s>", "<s><s>"},
           Case{"{{ m * 2 }}", "<s>", "<s><s>"},
           Case{"{{ m | tojson }}", "<s>\"\n", "\"<s>\\\"\\n\""},
           Case{"{{ [m] }}", "<s>'", "[\"<s>'\"]"},
           Case{"{{ {m: m} | tojson }}", "<s>", "{\"<s>\": \"<s>\"}"},
           Case{"{% set x %}{{ m }}{% endset %}{{ x }}", "<s>", "<s>"},
           Case{"{% macro f(a) %}{{ a }}{% endmacro %}{{ f(m) }}", "<s>", "<s>"},
           Case{"{{ '%s' | replace('%s', m) }}", "<s>", "<s>"},
           Case{"{{ '{}'.format(m) }}", "<s>", "<s>"},
           Case{"{{ m | indent(2, true) }}", "<s>\n<s>", "  <s>\n  <s>"},
           Case{"{{ m.title() }}{{ m.capitalize() }}", "<s>", "<S><s>"},
           Case{"{{ '&' | safe + m }}", "<s>", "&&lt;s&gt;"},
           Case{"{{ m.partition('s')[1] }}{{ m.rsplit('s', 1)[0] }}", "<s>", "s<"},
       }) {
    const std::string source = "{% set m = messages[0].content %}" + std::string(c.source);
    EXPECT_EQ(Show(source, Says({{Role::kUser, c.content}})), c.shown) << c.source;
  }
}

TEST(JinjaFormat, TemplatesSeeTheTextOfMessages) {
  struct Case {
    const char *test, *content;
  };
  for (const Case& c : {
           Case{"'</think>' in m", "a</think>b"},
           Case{"m == '<s>'", "<s>"},
           Case{"m != 'x' and m < 'z' and 'a' <= m <= 'z'", "m"},
           Case{"m in ['a', '<s>']", "<s>"},
           Case{"m not in ['a'] and m is in ['<s>']", "<s>"},
           Case{"m | length == 3", "<s>"},
           Case{"m.startswith('<s>') and m.endswith(('x', 's>'))", "<s>"},
           Case{"m.split('</think>')[-1].lstrip('\\n') == 'b'", "a</think>\n\nb"},
           Case{"{'string': 1}[m] == 1", "string"},
           Case{"{'string': 1}.get(m) == 1 and m in {'string': 1}", "string"},
           Case{"m.find('b') == 1 and m.count('b') == 2", "abab"},
           Case{"m | int == 42", " 42 "},
           Case{"m is string and m is sequence and m is not mapping", "x"},
           Case{"m.isdigit() and m[0] == '4' and m[-1] == '2'", "42"},
           Case{"[{'a': m}] | selectattr('a', 'equalto', 'x') | list | length == 1", "x"},
           Case{"[m, 'B', 'a'] | sort | join == 'aBc'", "c"},
           Case{"m.strip() == '' and not m.strip()", " \n\t\xe3\x80\x80"},
       }) {
    const std::string source = "{% set m = messages[0].content %}{{ " + std::string(c.test) + " }}";
    EXPECT_EQ(Show(source, Says({{Role::kUser, c.content}})), "True") << c.test;
  }
}

TEST(JinjaFormat, SpecialTokensSpelledInPiecesByTheTemplateAreSpecial) {
  EXPECT_EQ(Show("{{ '<|' + 'im_' ~ 'start' + '|>' }}{{ '<' + messages[0].role[4:] + 's>' }}",
                 Says({{Role::kUser, ""}})),
            "{<|im_start|>}{<s>}");
}

TEST(JinjaFormat, TwinsInAMessageAreNotMarks) {
  // The twins of "<s>", and the twins of those: what an attacker who knows the table would send.
  const std::string twins = Mark("<s>"), twice = Mark(twins);
  EXPECT_EQ(Show("{{ messages[0].content }}", Says({{Role::kUser, twins}})), twins);
  EXPECT_EQ(Show("{{ messages[0].content }}", Says({{Role::kUser, twice}})), twice);
  EXPECT_EQ(Show(Mark("<s>"), Says({{Role::kUser, ""}})),
            "refused: chat templates may not use characters that Unicode has not "
            "assigned");
}

TEST(JinjaFormat, ToolsAndCallsArriveAsTransformersPassesThem) {
  const std::string kKnowsTools = "{# <tool_call> #}";  // else they would come as text
  Conversation conversation =
      Says({{Role::kUser, "q"}, {Role::kAssistant, ""}, {Role::kTool, "r"}});
  conversation.messages[1].tool_calls.push_back({"id1", "f", R"({"b": 1.50, "a": [null]})"});
  conversation.messages[1].tool_calls.push_back({"id2", "g", "not json"});
  conversation.messages[1].reasoning = "hm";
  conversation.messages[2].tool_call_id = "id1";
  conversation.messages[2].name = "f";
  auto schema = ParseJson(R"({"type": "object", "properties": {}})");
  conversation.tools.push_back({"f", "does", *schema});
  EXPECT_EQ(Show(kKnowsTools + "{{ tools | tojson }}", conversation),
            R"([{"type": "function", "function": {"name": "f", "description": "does", )"
            R"("parameters": {"type": "object", "properties": {}}}}])");
  EXPECT_EQ(Show(kKnowsTools + "{{ messages[1] | tojson }}", conversation),
            R"({"role": "assistant", "content": "", "reasoning_content": "hm", "thinking": "hm", )"
            R"("tool_calls": [{"type": "function", "id": "id1", "function": {"name": "f", )"
            R"("arguments": {"b": 1.5, "a": [null]}}}, {"type": "function", "id": "id2", )"
            R"("function": {"name": "g", "arguments": "not json"}}]})");
  EXPECT_EQ(Show(kKnowsTools + "{{ messages[2] | tojson }}", conversation),
            R"({"role": "tool", "content": "r", "name": "f", "tool_call_id": "id1"})");
  EXPECT_EQ(
      Show("{{ tools is none }}{{ messages[0].tool_calls is defined }}", Says({{Role::kUser, ""}})),
      "TrueFalse");
}

TEST(JinjaFormat, TheDateIsTheCallers) {
  const char* source = "{{ strftime_now('%d %b %Y, %A') if strftime_now is defined else 'none' }}";
  EXPECT_EQ(Show(source, Says({{Role::kUser, ""}}), {.date = "2024-02-29"}),
            "29 Feb 2024, Thursday");
  EXPECT_EQ(Show(source, Says({{Role::kUser, ""}})), "none");
  EXPECT_EQ(Show(source, Says({{Role::kUser, ""}}), {.date = "soon"}),
            "failed: date \"soon\": expected YYYY-MM-DD");
}

TEST(JinjaFormat, KnowsWhetherItsTemplateHasAnEffort) {
  const TestingTokenizer tokenizer(kNames, "<s>", "</s>");
  EXPECT_FALSE((*JinjaChatFormat::Make(kChatMl, tokenizer))->has_reasoning_effort());
  EXPECT_TRUE(
      (*JinjaChatFormat::Make("{{ reasoning_effort }}", tokenizer))->has_reasoning_effort());
}

TEST(JinjaFormat, WhatTheTemplateRaisesIsTheError) {
  EXPECT_EQ(Show("{{ raise_exception('no ' + messages[0].content) }}", Says({{Role::kUser, "x"}})),
            "failed: chat template: line 1: no x");
}

TEST(JinjaFormat, StopsAtEveryEndOfTurnItsVocabularyHas) {
  const TestingTokenizer tokenizer({"<s>", "</s>", "<|im_end|>"}, "<s>", "</s>");
  auto format = JinjaChatFormat::Make("", tokenizer);
  ASSERT_TRUE(format.ok());
  EXPECT_EQ((*format)->stop_tokens(), (std::vector<Token>{257, 258}));
}

TEST(JinjaFormat, ReadsRepliesInTheStyleOfItsTemplate) {
  const TestingTokenizer tokenizer({"</think>", "<|im_end|>"});
  auto format = JinjaChatFormat::Make("<tool_call>{{ '<think>\n' }}", tokenizer);
  ASSERT_TRUE(format.ok());
  auto reader = (*format)->NewReader();
  std::vector<ReplyEvent> events;
  const auto feed = [&](std::string_view text) {
    for (const char c : text) reader->Feed(static_cast<unsigned char>(c), events);
  };
  feed("so");
  reader->Feed(*tokenizer.Special("</think>"), events);
  feed("\n\nHi<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>");
  reader->Feed(*tokenizer.Special("<|im_end|>"), events);
  reader->Feed(-1, events);
  reader->Finish(events);
  std::string shown;
  for (const ReplyEvent& event : events) {
    shown += std::to_string(static_cast<int>(event.kind)) + event.text + "|";
  }
  EXPECT_EQ(shown, "0s|0o|1H|1i|2f|3{}|4|");
}

Conversation With(JsonObject variables) {
  Conversation conversation = Says({{Role::kUser, "Hi"}});
  conversation.template_variables = std::move(variables);
  return conversation;
}

TEST(JinjaFormat, RequestsMaySetVariables) {
  constexpr const char* kSource =
      "{% if enable_thinking is defined and enable_thinking is false %}off{% endif %}"
      "{{ style }}{{ budget }}";
  EXPECT_EQ(Show(kSource, With({})), "");
  EXPECT_EQ(Show(kSource, With({{"enable_thinking", false}, {"style", "brief"}, {"budget", 7}})),
            "offbrief7");
  EXPECT_EQ(Show("{{ style == 'brief' }}", With({{"style", "brief"}})), "True");
}

TEST(JinjaFormat, VariablesAreTextAndReplaceNothing) {
  EXPECT_EQ(Show("{{ style }}{{ '<' + style2 + '>' }}", With({{"style", "<s>"}, {"style2", "s"}})),
            "<s><s>");
  EXPECT_EQ(Show("{{ messages[0].content }}{{ bos_token }}{{ tools }}{{ add_generation_prompt }}",
                 With({{"messages", "x"},
                       {"bos_token", "</s>"},
                       {"tools", "x"},
                       {"add_generation_prompt", false}})),
            "Hi{<s>}NoneTrue");
}

TEST(JinjaFormat, KnowsWhichVariablesItsTemplateNames) {
  const TestingTokenizer tokenizer(kNames, "<s>", "</s>");
  auto format = JinjaChatFormat::Make("{% if enable_thinking %}{{ x1 }}{% endif %}", tokenizer);
  EXPECT_TRUE((*format)->has_variable("enable_thinking"));
  EXPECT_TRUE((*format)->has_variable("x1"));
  EXPECT_FALSE((*format)->has_variable("thinking"));
  EXPECT_FALSE((*format)->has_variable("x"));
  EXPECT_FALSE((*format)->has_variable(""));
}

// Whether the reply begins inside a thought can depend on a variable.
TEST(JinjaFormat, EveryPromptSaysWhetherItEndsInAThought) {
  const TestingTokenizer tokenizer(kNames, "<s>", "</s>");
  auto format = JinjaChatFormat::Make(
      "{{ messages[0].content }}{% if enable_thinking is false %}<think>\n\n</think>\n\n"
      "{% else %}<think>\n{% endif %}",
      tokenizer);
  const auto begins = [&](const Conversation& conversation) {
    auto prompt = (*format)->Render(conversation, {});
    const ReplyStart start = (*format)->StartOf(conversation, *prompt);
    std::vector<ReplyEvent> events;
    const auto reader = (*format)->NewReaderAt(start);
    std::vector<Token> tokens;
    tokenizer.Encode("word", tokens);
    for (const Token token : tokens) reader->Feed(token, events);
    reader->Finish(events);
    EXPECT_EQ(events.front().kind == ReplyEvent::Kind::kReasoning, start.begins_in_reasoning);
    return start.begins_in_reasoning;
  };
  EXPECT_TRUE((*format)->begins_in_reasoning());
  EXPECT_TRUE(begins(With({})));
  EXPECT_TRUE(begins(With({{"enable_thinking", true}})));
  EXPECT_FALSE(begins(With({{"enable_thinking", false}})));
  auto plain = JinjaChatFormat::Make("{{ messages[0].content }}", tokenizer);
  const Conversation spelled = Says({{Role::kUser, "<think>"}});
  auto prompt = (*plain)->Render(spelled, {});
  EXPECT_FALSE((*plain)->StartOf(spelled, *prompt).begins_in_reasoning) << "text is no tag";
}

Conversation Open(std::vector<std::pair<Role, std::string>> messages) {
  Conversation conversation = Says(std::move(messages));
  conversation.continues_last = true;
  return conversation;
}

TEST(JinjaFormat, TheLastMessageCanBeLeftOpen) {
  EXPECT_EQ(Show(kChatMl, Open({{Role::kUser, "Hi"}, {Role::kAssistant, "Hel <s>\n "}})),
            "{<|im_start|>}user\nHi{<|im_end|>}\n{<|im_start|>}assistant\nHel <s>\n ");
  // Whatever else says the same.
  EXPECT_EQ(Show(kChatMl, Open({{Role::kUser,
                                 "a\xee\x82\xb7"
                                 "0\xee\x82\xb7"},
                                {Role::kAssistant, "a"}})),
            "{<|im_start|>}user\na\xee\x82\xb7"
            "0\xee\x82\xb7{<|im_end|>}\n{<|im_start|>}assistant\na");
  // A template that trims its messages trims no end that is kept open.
  EXPECT_EQ(Show("{% for m in messages %}[{{ m.content | trim }}]{% endfor %}",
                 Open({{Role::kUser, " Hi "}, {Role::kAssistant, "Hel "}})),
            "[Hi][Hel ");
}

TEST(JinjaFormat, WhatATemplateDoesNotShowCannotBeLeftOpen) {
  for (const char* source :
       {"{{ messages[0].content }}", "{% for m in messages %}{{ m.content | trim }}{% endfor %}",
        "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}",
        "{{ messages[0].content }}{{ messages[1].content | upper }}"}) {
    const std::string shown =
        Show(source, Open({{Role::kUser, "hel"}, {Role::kAssistant, " hel"}}));
    EXPECT_NE(shown.find("failed: messages: the last message is the assistant's"),
              std::string::npos)
        << source << ": " << shown;
  }
}

TEST(JinjaFormat, AnAssistantsLastMessageIsNotLeftOutInSilence) {
  const Conversation over = Says({{Role::kUser, "Hi"}, {Role::kAssistant, " Hello "}});
  EXPECT_NE(Show("{{ messages[0].content }}", over).find("leaves it out"), std::string::npos);
  EXPECT_EQ(Show("{{ messages[1].content | trim }}", over), "Hello");
}

TEST(JinjaFormat, AnOpenAnswerIsGoneOnWith) {
  const TestingTokenizer tokenizer(kNames, "<s>", "</s>");
  auto format = JinjaChatFormat::Make(
      "{% for m in messages %}{{ m.content }}{% endfor %}"
      "{% if add_generation_prompt %}<think>\n{% endif %}",
      tokenizer);
  const Conversation conversation = Open({{Role::kUser, "Hi"}, {Role::kAssistant, "Hello "}});
  auto prompt = (*format)->Render(conversation, {});
  const ReplyStart start = (*format)->StartOf(conversation, *prompt);
  EXPECT_FALSE(start.begins_in_reasoning);
  std::string said;
  for (const Token token : start.said) said += tokenizer.Bytes(token);
  EXPECT_EQ(said, "Hello ");
  const auto reader = (*format)->NewReaderAt(start);
  std::vector<ReplyEvent> events;
  std::vector<Token> tokens;
  tokenizer.Encode("you", tokens);
  for (const Token token : tokens) reader->Feed(token, events);
  reader->Finish(events);
  std::string text;
  for (const ReplyEvent& event : events) text += event.text;
  EXPECT_EQ(text, "you");
  EXPECT_EQ(events.front().kind, ReplyEvent::Kind::kContent);
}

TEST(JinjaFormat, ToolsAreTextWhereATemplateHasNone) {
  Conversation conversation = Says({{Role::kUser, "Hi"}});
  conversation.tools = {{"get", "<s>", Json()}};
  const std::string shown = Show(kChatMl, conversation);
  EXPECT_TRUE(shown.starts_with("{<|im_start|>}system\n# Tools\n")) << shown;
  EXPECT_NE(shown.find(R"({"name":"get","description":"<s>","parameters":{}})"), std::string::npos);
  EXPECT_TRUE(shown.ends_with("{<|im_start|>}user\nHi{<|im_end|>}\n{<|im_start|>}assistant\n"));
  // A template that refuses or leaves out system messages.
  for (const char* source :
       {"{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"
        "[{{ m.content }}]{% endfor %}",
        "{% for m in messages if m.role == 'user' %}[{{ m.content }}]{% endfor %}"}) {
    const std::string plain = Show(source, conversation);
    EXPECT_TRUE(plain.starts_with("[# Tools\n")) << plain;
    EXPECT_TRUE(plain.ends_with("\n\nHi]")) << plain;
  }
  // One that knows tools is left alone.
  EXPECT_EQ(Show("{{ tools[0].function.name }}<tool_call>", conversation), "get<tool_call>");
}

TEST(JinjaFormat, GenericCallsAreReadWhereToolsWereGiven) {
  const TestingTokenizer tokenizer(kNames, "<s>", "</s>");
  auto format = JinjaChatFormat::Make(kChatMl, tokenizer);
  EXPECT_FALSE((*format)->has_tool_calls());
  Conversation conversation = Says({{Role::kUser, "Hi"}});
  const auto first = [&] {
    auto prompt = (*format)->Render(conversation, {});
    const auto reader = (*format)->NewReaderAt((*format)->StartOf(conversation, *prompt));
    std::vector<Token> tokens;
    tokenizer.Encode(R"({"name": "get", "arguments": {}})", tokens);
    std::vector<ReplyEvent> events;
    for (const Token token : tokens) reader->Feed(token, events);
    reader->Finish(events);
    return events.front().kind;
  };
  EXPECT_EQ(first(), ReplyEvent::Kind::kContent) << "nobody offered a tool: it is an answer";
  conversation.tools = {{"get", "", Json()}};
  EXPECT_EQ(first(), ReplyEvent::Kind::kToolCall);
}

}  // namespace
}  // namespace hearth
