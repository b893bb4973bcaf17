// SPDX-License-Identifier: Apache-2.0
// Templates and their variables from bytes, with small limits: whatever the template, it ends, and
// no character of a message becomes one of the template's.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "templates/jinja_format.h"
#include "testing/template_tokenizer.h"
#include "text/tool_calls.h"

namespace {

// Up to the next zero byte.
std::string_view Cut(std::string_view& rest) {
  const size_t end = rest.find('\0');
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return part;
}

constexpr hearth::Token kSnowman = 256;

void Parse(std::string_view source, std::string_view reply) {
  std::vector<hearth::ReplyEvent> events;
  hearth::ToolCallParser parser(hearth::ToolCallStyleOf(source));
  parser.Feed(reply, events);
  parser.Finish(events);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view source = Cut(rest), first = Cut(rest), second = Cut(rest);
  // A template that holds neither a snowman nor an escape cannot write one: if a special token
  // comes out, a message made it.
  static const hearth::TestingTokenizer tokenizer({"\u2603s\u2603", "<|im_start|>"});
  const hearth::TemplateLimits limits = {.source_bytes = 4096,
                                         .fuel = 2000,
                                         .fuel_per_byte = 1,
                                         .work = 64 << 10,
                                         .work_per_byte = 4,
                                         .output_bytes = 64 << 10,
                                         .output_per_byte = 4,
                                         .recursion = 64};
  auto format = hearth::JinjaChatFormat::Make(source, tokenizer, limits);
  if (!format.ok()) return 0;
  hearth::Conversation conversation;
  conversation.messages.resize(2);
  conversation.messages[0].content = "\u2603s\u2603" + std::string(first);
  conversation.messages[1].role = hearth::Role::kAssistant;
  conversation.messages[1].content = std::string(second) + "\u2603S\u2603";
  conversation.messages[1].tool_calls.push_back({"1", "f", std::string(second)});
  if (auto schema = hearth::ParseJson(first); schema.ok()) {
    conversation.tools.push_back({"f", std::string(first), *schema});
  }
  conversation.template_variables = {{"style", "\u2603s\u2603" + std::string(second)}};
  const bool can_write = source.find("\u2603") != source.npos || source.find('\\') != source.npos;
  for (const bool continues : {false, true}) {
    conversation.continues_last = continues;
    auto tokens = (*format)->Render(conversation, {.date = "2024-01-01"});
    if (!tokens.ok() || can_write) continue;
    for (const hearth::Token token : *tokens) HEARTH_CHECK(token != kSnowman);
  }
  Parse(source, first);
  return 0;
}
