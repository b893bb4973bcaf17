// SPDX-License-Identifier: Apache-2.0
// What must hold for the reading of any token sequence whatever. Shared by the unit test and the
// fuzzer; answers with what is wrong, or nothing.
#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "text/harmony_parse.h"
namespace hearth::testing {

inline const char* CheckEvents(const std::vector<HarmonyEvent>& events) {
  bool is_open = false;
  for (const HarmonyEvent& event : events) {
    if (event.kind == HarmonyEvent::Kind::kStart) {
      if (is_open) return "a message starts inside another";
      if (event.header.role == Role::kAssistant && event.header.channel == HarmonyChannel::kNone) {
        return "an assistant's message has no channel";
      }
      // The token that overflows the header may itself be long; here none exceeds 32 bytes.
      if (event.header.recipient.size() + event.header.name.size() +
              event.header.content_type.size() >
          HeaderText::kMaxBytes + 32) {
        return "a header is larger than its bound";
      }
      is_open = true;
    } else if (!is_open) {
      return "content or an end outside a message";
    } else if (event.kind == HarmonyEvent::Kind::kEnd) {
      is_open = false;
    } else if (event.bytes.empty()) {
      return "an empty piece of content";
    }
  }
  return is_open ? "the last message has no end" : nullptr;
}

// Moves events to the end of `out`. Pieces of content that follow each other become one: how a
// stream was cut must not show.
inline void Join(std::vector<HarmonyEvent>& events, std::vector<HarmonyEvent>& out) {
  for (HarmonyEvent& event : events) {
    if (!out.empty() && event.kind == HarmonyEvent::Kind::kContent &&
        out.back().kind == HarmonyEvent::Kind::kContent) {
      out.back().bytes += event.bytes;
    } else {
      out.push_back(std::move(event));
    }
  }
  events.clear();
}

struct HarmonyRun {
  std::vector<HarmonyEvent> events;
  HarmonyCounts counts;
  HarmonyRepairs repairs;
  bool was_bounded = true;
};

// Feeds pieces of `piece` tokens (0: all at once), each into an empty vector.
inline HarmonyRun RunHarmony(const Tokenizer& tokenizer, const HarmonyTokens& control,
                             std::span<const Token> tokens, size_t piece) {
  HarmonyRun run;
  HarmonyParser parser(tokenizer, control);
  const size_t step = piece == 0 ? tokens.size() + 1 : piece;
  std::vector<HarmonyEvent> events;
  for (size_t at = 0; at < tokens.size(); at += step) {
    parser.Feed(tokens.subspan(at, std::min(step, tokens.size() - at)), events);
    run.was_bounded &= parser.num_pending() <= HeaderText::kMaxTokens + 1;
    Join(events, run.events);
  }
  parser.Finish(events);
  Join(events, run.events);
  run.was_bounded &= parser.num_pending() == 0;
  run.counts = parser.counts();
  run.repairs = parser.repairs();
  return run;
}

inline const char* CheckHarmonyStream(const Tokenizer& tokenizer, const HarmonyTokens& control,
                                      std::span<const Token> tokens, size_t piece) {
  const HarmonyRun whole = RunHarmony(tokenizer, control, tokens, 0);
  if (const char* wrong = CheckEvents(whole.events)) return wrong;
  const uint64_t accounted =
      whole.counts.header_tokens + whole.counts.content_tokens + whole.counts.repaired_tokens;
  if (accounted != tokens.size()) return "the counts do not add up to the tokens";
  if (whole.counts.repaired_tokens > 0 && whole.repairs.total() == 0) {
    return "tokens were left out without a word";
  }
  size_t content_bytes = 0, fed_bytes = 0;
  for (const HarmonyEvent& event : whole.events) content_bytes += event.bytes.size();
  for (const Token token : tokens) {
    if (token >= 0 && token < tokenizer.vocab_size() && !tokenizer.IsSpecial(token)) {
      fed_bytes += tokenizer.Bytes(token).size();
    }
  }
  if (content_bytes > fed_bytes) return "content appeared from nowhere";
  for (const size_t cut : {size_t{1}, piece}) {
    const HarmonyRun other = RunHarmony(tokenizer, control, tokens, cut);
    if (!other.was_bounded) return "memory is not bounded";
    if (other.events != whole.events || other.counts != whole.counts ||
        other.repairs != whole.repairs) {
      return "the reading depends on how the stream was cut";
    }
  }
  return nullptr;
}

}  // namespace hearth::testing
