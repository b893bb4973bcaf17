// SPDX-License-Identifier: Apache-2.0
// Reads token ids, a JSON array per line, with HarmonyParser and prints the messages it saw, a
// JSON array per line: the seam by which parse_test.py compares it with the official parser.
// Content is in hex, because it need not be UTF-8.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include "text/harmony_parse.h"

namespace hearth {
namespace {

std::string Hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += Printf("%02x", static_cast<unsigned char>(c));
  return out;
}

// In the words of the official package; what is empty here is absent there.
Json MessageOf(const HarmonyHeader& header) {
  constexpr const char* kRoles[] = {"system", "developer", "user", "assistant", "tool"};
  constexpr const char* kChannels[] = {"", "analysis", "commentary", "final"};
  JsonObject out;
  out.emplace_back("role", kRoles[static_cast<size_t>(header.role)]);
  const std::string type = (header.is_constrained ? "<|constrain|>" : "") + header.content_type;
  const std::pair<const char*, std::string> fields[] = {
      {"name", header.name},
      {"channel", kChannels[static_cast<size_t>(header.channel)]},
      {"recipient", header.recipient},
      {"content_type", type}};
  for (const auto& [key, value] : fields) {
    if (!value.empty()) out.emplace_back(key, value);
  }
  return out;
}

Json MessagesOf(const std::vector<HarmonyEvent>& events) {
  constexpr const char* kEnds[] = {"end", "call", "return", "cut"};
  JsonArray out;
  std::string content;
  for (const HarmonyEvent& event : events) {
    if (event.kind == HarmonyEvent::Kind::kStart) {
      out.push_back(MessageOf(event.header));
      content.clear();
    } else if (event.kind == HarmonyEvent::Kind::kContent) {
      content += event.bytes;
    } else {
      out.back().object()->emplace_back("content_hex", Hex(content));
      out.back().object()->emplace_back("end", kEnds[static_cast<size_t>(event.end)]);
    }
  }
  return out;
}

Status ReadReplies(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string ranks((std::istreambuf_iterator<char>(file)), {});
  HEARTH_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer, LoadTiktoken(ranks));
  HEARTH_ASSIGN(const HarmonyTokens control, HarmonyTokens::Find(*tokenizer));
  std::string line;
  while (std::getline(std::cin, line)) {
    HEARTH_ASSIGN(const Json ids, ParseJson(line));
    if (ids.array() == nullptr) return Error(Code::kInvalid, "expected an array");
    HarmonyParser parser(*tokenizer, control);
    std::vector<HarmonyEvent> events;
    for (const Json& id : *ids.array()) {
      parser.Feed(static_cast<Token>(id.integer().value_or(-1)), events);
    }
    parser.Finish(events);
    const HarmonyCounts& counts = parser.counts();
    const Json answer(JsonObject{
        {"messages", MessagesOf(events)},
        {"accounted", counts.header_tokens + counts.content_tokens + counts.repaired_tokens},
        {"repairs", parser.repairs().total()}});
    std::printf("%s\n", WriteJson(answer).c_str());
    std::fflush(stdout);
  }
  return {};
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const hearth::Status status = hearth::ReadReplies(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
