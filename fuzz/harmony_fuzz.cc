// SPDX-License-Identifier: Apache-2.0
// Any bytes become a stream of tokens, heavy with control tokens and header words; whatever the
// stream, the reading must keep the promises of harmony_stream.h, and so must the reply reader.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "testing/byte_tokenizer.h"
#include "testing/harmony_stream.h"

namespace hearth {
namespace {

[[noreturn]] void Report(const char* wrong) {
  std::fprintf(stderr, "harmony_fuzz: %s\n", wrong);
  std::abort();
}

// Bytes up to 127 are themselves. The rest of the range is control tokens and whole words, so
// that a mutation of one byte usually lands on one of them; 255 is followed by a raw id.
std::vector<Token> Decode(const uint8_t* data, size_t size, const Tokenizer& tokenizer) {
  std::vector<Token> tokens;
  for (size_t i = 0; i < size; ++i) {
    const uint8_t byte = data[i];
    if (byte < 128) {
      tokens.push_back(byte);
    } else if (byte < 255) {
      tokens.push_back(256 + (byte - 128) % (tokenizer.vocab_size() - 256));
    } else {
      uint32_t id = 0;
      for (size_t k = 0; k < 4 && i + 1 < size; ++k) id = id << 8 | data[++i];
      tokens.push_back(static_cast<Token>(id));
    }
  }
  return tokens;
}

void CheckReply(const ChatFormat& format, const std::vector<Token>& tokens) {
  const std::unique_ptr<ReplyReader> reader = format.NewReader();
  std::vector<ReplyEvent> events;
  for (const Token token : tokens) reader->Feed(token, events);
  reader->Finish(events);
  bool is_call = false;
  for (const ReplyEvent& event : events) {
    switch (event.kind) {
      case ReplyEvent::Kind::kToolCall:
        if (is_call || event.text.empty()) Report("a call inside a call, or without a name");
        is_call = true;
        break;
      case ReplyEvent::Kind::kToolCallEnd:
        if (!is_call) Report("the end of no call");
        is_call = false;
        break;
      case ReplyEvent::Kind::kToolArguments:
        if (!is_call) Report("arguments of no call");
        break;
      default:
        if (is_call) Report("an answer inside a call");
    }
  }
  if (is_call) Report("a call without an end");
}

}  // namespace
}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hearth;
  static const testing::ByteTokenizer tokenizer;
  static const HarmonyTokens control = *HarmonyTokens::Find(tokenizer);
  static const std::unique_ptr<ChatFormat> format = *MakeHarmonyFormat(tokenizer);
  if (size == 0) return 0;
  const std::vector<Token> tokens = Decode(data + 1, size - 1, tokenizer);
  const size_t piece = size_t{2} + data[0] % 16;
  if (const char* wrong = testing::CheckHarmonyStream(tokenizer, control, tokens, piece)) {
    Report(wrong);
  }
  CheckReply(*format, tokens);
  return 0;
}
