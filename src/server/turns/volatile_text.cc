// SPDX-License-Identifier: Apache-2.0
#include "server/turns/volatile_text.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "base/ascii.h"

namespace hearth {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordChar(char c) { return IsDigit(c) || (LowerAscii(c) >= 'a' && LowerAscii(c) <= 'z'); }
bool IsValueChar(char c) { return IsWordChar(c) || c == '.' || c == '-' || c == '_'; }

// A text that is read from its front; what does not fit leaves it as it was.
class Head {
 public:
  explicit Head(std::string_view text) : rest_(text) {}
  std::string_view rest() const { return rest_; }
  // `word` is in lower case; the text may be in any.
  bool Take(std::string_view word) {
    if (rest_.size() < word.size()) return false;
    const bool same = std::equal(word.begin(), word.end(), rest_.begin(),
                                 [](char want, char have) { return want == LowerAscii(have); });
    if (same) rest_.remove_prefix(word.size());
    return same;
  }
  size_t TakeWhile(bool (*fits)(char)) {
    size_t n = 0;
    while (n < rest_.size() && fits(rest_[n])) ++n;
    rest_.remove_prefix(n);
    return n;
  }
  bool TakeDigits(size_t n) {
    if (rest_.size() < n ||
        !std::all_of(rest_.begin(), rest_.begin() + static_cast<int>(n), IsDigit))
      return false;
    rest_.remove_prefix(n);
    return true;
  }
  void TakeBlanks() {
    TakeWhile([](char c) { return c == ' ' || c == '\t'; });
  }
  // Blanks, and the end of the line or of the text.
  bool TakeLineEnd() {
    TakeBlanks();
    return rest_.empty() || Take("\r\n") || Take("\n");
  }

 private:
  std::string_view rest_;
};

// What stays of a match: for most forms nothing.
struct Match {
  size_t bytes = 0;
  std::string stays;
};
using Matcher = std::optional<Match> (*)(std::string_view text);

// x-anthropic-billing-header: cc_version=2.1.120.cf9; cc_entrypoint=cli; cch=543cf;
// Ends with its last pair: clients also send it as a block of its own, which joins to the next.
std::optional<Match> BillingHeader(std::string_view text) {
  Head head(text);
  if (!head.Take("x-anthropic-billing-header:")) return std::nullopt;
  size_t pairs = 0;
  for (Head next = head;; head = next, ++pairs) {
    next.TakeBlanks();
    const bool is_pair = next.Take("cc") && next.TakeWhile(IsValueChar) > 0 && next.Take("=") &&
                         next.TakeWhile(IsValueChar) > 0 && next.Take(";");
    if (!is_pair) break;
  }
  if (pairs == 0) return std::nullopt;
  if (Head end = head; end.TakeLineEnd()) head = end;
  return Match{text.size() - head.rest().size(), ""};
}

std::optional<Match> IdLine(std::string_view text, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    Head head(text);
    if (!head.Take(name) || !head.Take(":")) continue;
    head.TakeBlanks();
    const size_t n = head.TakeWhile(IsValueChar);
    if (n < 8 || n > 128 || !head.TakeLineEnd()) return std::nullopt;
    return Match{text.size() - head.rest().size(), ""};
  }
  return std::nullopt;
}

std::optional<Match> RequestId(std::string_view text) {
  return IdLine(text, {"x-request-id", "x-client-request-id", "x-trace-id", "x-correlation-id",
                       "x-session-id", "x-conversation-id", "traceparent", "request_id",
                       "request-id", "trace_id", "trace-id"});
}

std::optional<Match> SessionId(std::string_view text) {
  return IdLine(text, {"session id", "session_id", "session-id", "conversation id",
                       "conversation_id", "conversation-id", "request id", "thread_id"});
}

// Current time: 2026-11-15T11:28:23.120Z   becomes   Current time: 2026-11-15
std::optional<Match> TimeOfDay(std::string_view text) {
  Head head(text);
  head.Take("the ");
  head.Take("current ");
  if (!head.Take("date and time") && !head.Take("datetime") && !head.Take("timestamp") &&
      !head.Take("time")) {
    return std::nullopt;
  }
  if (!head.Take(":") && !head.Take(" is:") && !head.Take(" is")) return std::nullopt;
  head.TakeBlanks();
  const bool is_date = head.TakeDigits(4) && head.Take("-") && head.TakeDigits(2) &&
                       head.Take("-") && head.TakeDigits(2);
  if (!is_date) return std::nullopt;
  const size_t kept = text.size() - head.rest().size();
  const bool is_time = (head.Take("t") || head.Take(" ")) && head.TakeDigits(2) && head.Take(":") &&
                       head.TakeDigits(2);
  if (!is_time) return std::nullopt;
  if (head.Take(":") && !head.TakeDigits(2)) return std::nullopt;
  if (head.Take(".")) head.TakeWhile(IsDigit);
  if (!head.Take("z") && !head.Take(" utc") && (head.Take("+") || head.Take("-"))) {
    const bool is_zone = head.TakeDigits(2);
    head.Take(":");
    if (!is_zone || !head.TakeDigits(2)) return std::nullopt;
  }
  if (!head.TakeLineEnd()) return std::nullopt;
  return Match{text.size() - head.rest().size(), std::string(text.substr(0, kept)) + "\n"};
}

struct Form {
  const char* name;
  Neutralise from;  // the first setting that takes it
  Matcher match;
  const char* looks;
};

constexpr Form kForms[] = {
    {"billing-header", Neutralise::kHeaders, BillingHeader,
     "`x-anthropic-billing-header: cc_version=2.1.120.cf9; cc_entrypoint=cli; cch=543cf;`"},
    {"request-id", Neutralise::kHeaders, RequestId,
     "a line `x-request-id: …`, `x-session-id: …`, `trace_id: …`, `traceparent: …` and their like"},
    {"session-id", Neutralise::kAll, SessionId,
     "a line `Session ID: …`, `conversation_id: …` and their like"},
    {"time-of-day", Neutralise::kAll, TimeOfDay,
     "a line `Current time: 2026-11-15T11:28:23Z`, of which the date stays"},
};
constexpr size_t kNumForms = std::size(kForms);

// `found` has a place per form.
std::string WithoutVolatile(Neutralise what, std::string_view text, bool (&found)[kNumForms]) {
  std::string kept;
  for (size_t i = 0; i < kNumForms;) {
    std::optional<Match> match;
    if (kForms[i].from <= what) match = kForms[i].match(text);
    if (!match) {
      ++i;
      continue;
    }
    found[i] = true;
    kept += match->stays;
    text.remove_prefix(match->bytes);
    i = 0;  // more may follow, in any order
  }
  return kept += text;
}

}  // namespace

std::string NeutraliseVolatile(Neutralise what, Conversation& conversation) {
  bool found[kNumForms] = {};
  std::erase_if(conversation.messages, [&](Message& message) {
    if (message.role != Role::kSystem && message.role != Role::kDeveloper) return false;
    std::string text = WithoutVolatile(what, message.content, found);
    if (text.size() == message.content.size()) return false;
    message.content = std::move(text);
    return message.content.find_first_not_of(" \t\r\n") == std::string::npos;
  });
  std::string names;
  for (size_t i = 0; i < kNumForms; ++i) {
    if (found[i]) names += (names.empty() ? "" : ", ") + std::string(kForms[i].name);
  }
  return names;
}

std::string VolatileAsMarkdown() {
  std::string out = "| name | what | taken out with |\n|---|---|---|\n";
  for (const Form& form : kForms) {
    out += std::string("| `") + form.name + "` | " + form.looks + " | `--neutralise " +
           (form.from == Neutralise::kHeaders ? "headers` (default)" : "all`") + " |\n";
  }
  return out;
}

}  // namespace hearth
