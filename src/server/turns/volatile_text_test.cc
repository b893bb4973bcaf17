// SPDX-License-Identifier: Apache-2.0
#include "server/turns/volatile_text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

#include "testing/data.h"

namespace hearth {
namespace {

constexpr char kBilling[] =
    "x-anthropic-billing-header: cc_version=2.1.120.cf9; cc_entrypoint=cli; cch=543cf;";

struct Outcome {
  std::string text, names;
};

Outcome Of(const std::string& text, Neutralise what = Neutralise::kHeaders,
           Role role = Role::kSystem) {
  Conversation conversation;
  Message message;
  message.role = role;
  message.content = text;
  conversation.messages.push_back(message);
  Outcome outcome;
  outcome.names = NeutraliseVolatile(what, conversation);
  if (conversation.messages.empty()) return {"<gone>", outcome.names};
  outcome.text = conversation.messages[0].content;
  return outcome;
}

TEST(VolatileText, TakesOutABillingHeaderAndNothingBehindIt) {
  for (const char* after : {"You are an agent.", "x=1; is a pair", "Answer; briefly.", "cch=1"}) {
    EXPECT_EQ(Of(std::string(kBilling) + after).text, after);
    EXPECT_EQ(Of(std::string(kBilling) + "\n" + after).text, after);
    EXPECT_EQ(Of(std::string(kBilling) + "\n" + after).names, "billing-header");
  }
  EXPECT_EQ(Of(kBilling, Neutralise::kHeaders, Role::kDeveloper).text, "<gone>");
  EXPECT_EQ(Of(std::string(kBilling) + "\n\n  ").text, "<gone>");
}

TEST(VolatileText, TakesOutSeveralInAnyOrder) {
  const Outcome outcome =
      Of("X-Request-ID: 9f8a7b6c-1111-2222-3333-444455556666\r\n" + std::string(kBilling) +
         "\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\nBe kind.");
  EXPECT_EQ(outcome.text, "Be kind.");
  EXPECT_EQ(outcome.names, "billing-header, request-id");
}

TEST(VolatileText, LeavesTimesAndSessionsUnlessAsked) {
  const std::string text =
      "Current time: 2026-11-15T11:28:23.120Z\nSession ID: 0cYAkvpcYYf5qonx\nBe kind.";
  EXPECT_EQ(Of(text).text, text);
  EXPECT_EQ(Of(text).names, "");
  const Outcome outcome = Of(text, Neutralise::kAll);
  EXPECT_EQ(outcome.text, "Current time: 2026-11-15\nBe kind.");
  EXPECT_EQ(outcome.names, "session-id, time-of-day");
  for (const char* same : {"The current date and time is 2026-11-15 11:28 UTC\nx",
                           "timestamp: 2026-11-15T11:28:23+01:00\nx"}) {
    EXPECT_EQ(Of(same, Neutralise::kAll).names, "time-of-day") << same;
  }
  EXPECT_EQ(Of("Current time: 2026-11-15", Neutralise::kAll).names, "") << "a day is no time";
}

TEST(VolatileText, TouchesOnlyWhatMatchesExactly) {
  const std::string plain[] = {
      "",
      "Be kind.",
      "Explain " + std::string(kBilling),  // quoted, not sent
      "Be kind.\n" + std::string(kBilling),
      "x-anthropic-billing-header: is a header; nothing more",
      "x-anthropic-billing-header:",
      "x-anthropic-billing-header: cch=;",
      "x-request-id: is what you must always quote",
      "x-request-id: short",
      "x-request-id: 123456789 and more",
      "traceparent",
      "The current time is money: spend it well",
      "time: 2026-11-15T11:28:23Z is when it happened",
      "time: 2026-11-15T1:28",
  };
  for (const std::string& text : plain) {
    for (const Neutralise what : {Neutralise::kHeaders, Neutralise::kAll}) {
      EXPECT_EQ(Of(text, what).text, text);
      EXPECT_EQ(Of(text, what).names, "");
    }
  }
  const std::string volatile_text = std::string(kBilling) + "\nBe kind.";
  for (const Role role : {Role::kUser, Role::kAssistant, Role::kTool}) {
    EXPECT_EQ(Of(volatile_text, Neutralise::kAll, role).text, volatile_text) << "not the client's";
  }
  EXPECT_EQ(Of(volatile_text, Neutralise::kNone).text, volatile_text);
}

// Whatever stands at the head: what comes out is a text's end, after dates that stayed; and once
// taken out there is no more to take.
TEST(VolatileText, IsDoneAfterOnce) {
  const std::string pieces[] = {kBilling, "\n",     "x-request-id: ", "12345678",   "Be kind.",
                                ";",      "cch=1;", "time: ",         "2026-11-15", "T11:28:23Z",
                                " ",      "is"};
  std::mt19937 random(5);
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (int n = 0; n < 8; ++n) text += pieces[random() % std::size(pieces)];
    const Outcome once = Of(text, Neutralise::kAll);
    if (once.text == "<gone>") continue;
    if (once.names.empty()) {
      ASSERT_EQ(once.text, text);
    }
    const Outcome twice = Of(once.text, Neutralise::kAll);
    ASSERT_EQ(twice.text, once.text) << text;
    ASSERT_EQ(twice.names, "") << text;
  }
}

TEST(VolatileText, IsOnThePage) {
  std::ifstream file(testing::RepoPath("docs/operate.md"));
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_NE(page.find(VolatileAsMarkdown()), std::string::npos) << "docs/operate.md should hold:\n"
                                                                << VolatileAsMarkdown();
}

}  // namespace
}  // namespace hearth
