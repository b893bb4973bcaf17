// SPDX-License-Identifier: Apache-2.0
// What the page of a plan shows, and that it loads nothing.
#include <gmock/gmock.h>

#include "plan/plan.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

int CountOf(const std::string& text, const std::string& what) {
  int count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

PlanRecord Planned() {
  PlanRecord r;
  r.hearth = "0.1.0";
  r.model = "Small <b>";
  r.family = "llama";
  r.machine = "A Processor";
  r.isa = "avx2";
  r.date = "2026-11-17";
  r.rates = {20e9, 1e12, 4};
  r.fit.usable_bytes = 8ull << 30;
  r.fit.weight_bytes = 2ll << 30;
  r.fit.kv_bytes = 1ll << 30;
  r.fit.other_bytes = 1ll << 28;
  r.fit.kv_tokens = 100'000;
  r.fit.max_context = 8192;
  r.cases.push_back(
      {.name = "decode, 1 user", .tokens_per_second = 10, .seconds = 0.1, .bound = "memory"});
  r.by_users = {{1, 10, 0.1}, {8, 60, 0.133}};
  r.by_depth = {{256, 9.8, 0.102}, {8192, 8, 0.125}};
  r.by_prompt = {{256, 200, 1.28}, {8192, 150, 54.6}};
  r.settings.push_back({"--threads", "4", "one per core"});
  PlannedHelp help;
  help.what = "twice the cores (of the same)";
  help.decode = 1.5;
  r.helps.push_back(help);
  r.assumptions.push_back("random tokens");
  return r;
}

TEST(PlanPage, EveryPictureSaysTitleMachineAndDirection) {
  const std::string page = PlanPage(Planned());
  const int pictures = CountOf(page, "<svg");
  EXPECT_EQ(pictures, 5);  // users, context, prompts, memory, help
  EXPECT_EQ(CountOf(page, "<title>"), pictures + 1);
  EXPECT_EQ(CountOf(page, "A Processor, 4 threads, avx2, 2026-11-17"), pictures);
  // All but memory, of which neither is better.
  EXPECT_EQ(CountOf(page, "higher is better") + CountOf(page, "lower is better"), pictures - 1);
}

TEST(PlanPage, LoadsNothingAndEscapesNames) {
  const std::string page = PlanPage(Planned());
  EXPECT_THAT(page, HasSubstr("Small &lt;b&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("Small <b>")));
  for (const char* loaded : {"<script", "<link", "<img", "@import", "url(", "src="}) {
    EXPECT_THAT(page, Not(HasSubstr(loaded)));
  }
  EXPECT_EQ(CountOf(page, "http"), CountOf(page, "http://www.w3.org/2000/svg"));
}

TEST(PlanPage, ALoadHasItsPictureAndItsTarget) {
  PlanRecord r = Planned();
  r.load = UserLoad{.users = 20};
  r.target = LoadTarget95{};
  LoadOutcome slow, good;
  slow.first_token_s = {5, 9, 12};
  good.first_token_s = {0.5, 1.5, 2.5};
  r.one_server = slow;
  r.replicas = ReplicaPlan{.replicas = 3, .users_each = 7, .outcome = good};
  const std::string page = PlanPage(r);
  EXPECT_THAT(page, HasSubstr("Time to the first token with 20 users"));
  EXPECT_THAT(page, HasSubstr("one server, p95"));
  EXPECT_THAT(page, HasSubstr("3 servers, median"));
  EXPECT_THAT(page, HasSubstr("target for 95 of 100"));
}

TEST(PlanPage, WhatDoesNotFitHasNoPictures) {
  PlanRecord r = Planned();
  r.fit.problem = "it needs 9 GiB";
  const std::string page = PlanPage(r);
  EXPECT_EQ(CountOf(page, "<svg"), 0);
  EXPECT_THAT(page, HasSubstr("It does not fit: it needs 9 GiB"));
}

}  // namespace
}  // namespace hearth
