// SPDX-License-Identifier: Apache-2.0
// Server-sent events: what the writers of every dialect make of any text must be whole events of
// valid JSON that carry the text, with U+FFFD for bytes that are no UTF-8; and our own client must
// hear the same, however the stream is cut.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "load/url.h"
#include "server/dialects/chat/chat_writer.h"
#include "server/dialects/completions/completion_dialect.h"
#include "server/dialects/messages/anthropic_writer.h"
#include "server/dialects/responses/responses_writer.h"

namespace hearth {
namespace {

using Kind = ReplyEvent::Kind;

[[noreturn]] void Report(const char* wrong, const std::string& detail) {
  std::fprintf(stderr, "sse_fuzz: %s: %s\n", wrong, detail.c_str());
  std::abort();
}

// The code point at the front as its bytes, or nothing; by value, not by a table of ranges.
std::string CodePoint(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const size_t left = text.size() - at;
  const size_t length = byte(0) < 0x80 ? 1 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  if (length > left || (byte(0) & 0xc0) == 0x80 || byte(0) >= 0xf8) return "";
  if (length == 1) return text.substr(at, 1);
  uint32_t value = byte(0) & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return "";
    value = value << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = value >= 0xd800 && value < 0xe000;
  if (value < kSmallest[length] || value > 0x10ffff || is_surrogate) return "";
  return text.substr(at, length);
}

std::string Replaced(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const std::string point = CodePoint(text, at);
    out += point.empty() ? "\xef\xbf\xbd" : point;
    at += point.empty() ? 1 : point.size();
  }
  return out;
}

// A reply as a Turn could tell it: calls are opened before their arguments and closed after.
std::vector<Delta> Deltas(const std::string& bytes) {
  std::vector<Delta> deltas;
  int num_calls = 0;
  bool is_call = false;
  for (size_t at = 0; at + 1 < bytes.size();) {
    auto kind = static_cast<Kind>(static_cast<unsigned char>(bytes[at]) % 4);
    const size_t length = static_cast<unsigned char>(bytes[at + 1]) % 32;
    std::string text = bytes.substr(at + 2, length);
    at += 2 + length;
    if (kind == Kind::kToolArguments && !is_call) kind = Kind::kToolCall;
    if (is_call && kind != Kind::kToolArguments) {
      deltas.push_back({Kind::kToolCallEnd, "", num_calls - 1, {}});
      is_call = false;
    }
    if (kind == Kind::kToolCall) {
      is_call = true;
      ++num_calls;
    }
    deltas.push_back({kind, std::move(text), std::max(0, num_calls - 1), {}});
  }
  if (is_call) deltas.push_back({Kind::kToolCallEnd, "", num_calls - 1, {}});
  return deltas;
}

// The data of each event. Strict: nothing but whole events of known lines, no byte that some
// client could take for the end of a line.
std::vector<std::string> EventsOf(std::string stream) {
  std::vector<std::string> found;
  while (!stream.empty()) {
    const size_t end = stream.find("\n\n");
    if (end == std::string::npos) Report("half an event", stream);
    std::string event = stream.substr(0, end + 1);
    stream.erase(0, end + 2);
    int num_data = 0;
    while (!event.empty()) {
      const std::string line = event.substr(0, event.find('\n'));
      event.erase(0, line.size() + 1);
      for (const char c : line) {
        if (static_cast<unsigned char>(c) < 32) Report("a control byte in a line", line);
      }
      if (line.rfind("data: ", 0) == 0) {
        found.push_back(line.substr(6));
        ++num_data;
      } else if (line.rfind("event: ", 0) != 0 && line.rfind(":", 0) != 0) {
        Report("an unknown line", line);
      }
    }
    if (num_data > 1) Report("two lines of data", "");
  }
  return found;
}

// What our client hears of the same bytes, cut in pieces.
std::vector<std::string> HeardIn(const std::string& stream, unsigned cut) {
  EventLines lines;
  std::vector<std::string> heard;
  for (size_t at = 0, piece = 1 + cut; at < stream.size(); at += piece) {
    for (std::string& line : lines.Feed(std::string_view(stream).substr(at, piece))) {
      heard.push_back(std::move(line));
    }
  }
  return heard;
}

const Json* Path(const Json* json, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (json != nullptr && json->array() != nullptr) {
      json = json->array()->empty() ? nullptr : &json->array()->front();
    }
    if (json != nullptr) json = json->Find(name);
  }
  return json;
}

enum class Which : unsigned char { kChat, kCompletion, kMessages, kResponses };

std::unique_ptr<ReplyWriter> Writer(Which which) {
  TurnRequest request;
  request.streams = true;
  request.plain_prompts = {PlainPrompt("x")};  // completions have choices of each
  const ReplyFacts facts{"abc", "m", "f", 1, 1};
  switch (which) {
    case Which::kChat:
      return std::make_unique<ChatWriter>(request, facts);
    case Which::kCompletion:
      return std::make_unique<CompletionWriter>(request, -1, facts);
    case Which::kMessages:
      return std::make_unique<MessagesWriter>(facts, true);
    case Which::kResponses:
      return std::make_unique<ResponsesWriter>(facts, ResponsesWriter::Form{});
  }
  std::abort();
}

// The answer's text in one event of a stream.
std::string AnswerIn(Which which, const Json& event) {
  const Json* text = nullptr;
  const Json* type = event.Find("type");
  switch (which) {
    case Which::kChat:
      text = Path(&event, {"choices", "delta", "content"});
      break;
    case Which::kCompletion:
      text = Path(&event, {"choices", "text"});
      break;
    case Which::kMessages:
      text = Path(&event, {"delta", "text"});
      break;
    case Which::kResponses:
      if (*type->string() == "response.output_text.delta") text = event.Find("delta");
      break;
  }
  return text != nullptr && text->string() != nullptr ? *text->string() : "";
}

void CheckWriter(Which which, const std::vector<Delta>& deltas, const std::string& words,
                 unsigned cut) {
  const std::unique_ptr<ReplyWriter> writer = Writer(which);
  std::string stream = ": accepted\n\n" + writer->Begin(), answer;
  for (const Delta& delta : deltas) {
    if (which == Which::kCompletion && delta.kind != Kind::kContent) continue;
    stream += writer->Add(0, delta);
    if (delta.kind == Kind::kContent) answer += Replaced(delta.text);
    if (delta.text.empty()) stream += writer->Ping();
  }
  const bool fails = cut % 2 == 1;
  if (fails) {
    ApiError error;
    error.message = words;
    stream += writer->Fail(error);
  } else {
    stream += writer->EndChoice(0, {ChoiceEnd::Why::kStopString, words}) + writer->End({});
    if (!ParseJson(writer->Whole({})).ok()) Report("a whole reply that is no JSON", words);
  }
  const std::vector<std::string> events = EventsOf(stream);
  if (HeardIn(stream, cut) != events) Report("our client hears other events", stream);
  std::string told, heard;
  for (const std::string& data : events) {
    const UrlEvent event = ReadUrlEvent(data);
    heard += event.text;
    if (data == "[DONE]") continue;
    Result<Json> json = ParseJson(data);
    if (!json.ok()) Report("an event that is no JSON", data);
    told += AnswerIn(which, *json);
  }
  if (told != answer) Report("the answer is another one", stream);
  if (which == Which::kCompletion && heard != answer)
    Report("our client hears another answer", heard);
}

// A server of somebody else may send anything.
void CheckClient(const std::string& bytes, unsigned cut) {
  std::vector<std::string> want;
  for (size_t at = 0, end; (end = bytes.find('\n', at)) != std::string::npos; at = end + 1) {
    std::string line = bytes.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.rfind("data:", 0) != 0) continue;
    const size_t from = line.find_first_not_of(' ', 5);
    want.push_back(from == std::string::npos ? "" : line.substr(from));
  }
  if (HeardIn(bytes, cut) != want) Report("cut or not, lines differ", bytes);
  for (const std::string& line : want) {
    const UrlEvent event = ReadUrlEvent(line);
    if (line != "[DONE]" && !ParseJson(line).ok() && event.problem.empty()) {
      Report("nonsense without a problem", line);
    }
  }
}

}  // namespace
}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hearth;
  if (size < 2) return 0;
  const unsigned which = data[0], cut = data[1] % 64;
  const std::string bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (which % 5 == 4) {
    CheckClient(bytes, cut);
  } else {
    CheckWriter(static_cast<Which>(which % 5), Deltas(bytes), bytes.substr(0, 40), cut);
  }
  return 0;
}
