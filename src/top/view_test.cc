// SPDX-License-Identifier: Apache-2.0
#include "top/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "top/source.h"

namespace hearth {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Cells a line takes: bytes that begin a character, without colours.
int CellsOf(const std::string& line) {
  int cells = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      i = line.find('m', i);
    } else if ((static_cast<unsigned char>(line[i]) & 0xc0) != 0x80) {
      ++cells;
    }
  }
  return cells;
}

TopStatus Busy() {
  TopStatus s;
  s.version = "0.1.0";
  s.model = "smollm2";
  s.state = "ready";
  s.uptime_s = 8040;
  s.running = 8;
  s.max_running = 64;
  s.paused = 1;
  s.waiting = 70;
  s.max_waiting = 10'000;
  s.waiting_tokens = 12'345;
  s.decode_per_s = 93.44;
  s.prefill_per_s = 412.2;
  s.prompt_tokens = 1000;
  s.cached_tokens = 710;
  s.step_ms = 84.1;
  s.step_p99_ms = 121.4;
  s.kv = {{"full", 100, 25, 50, 1 << 20}, {"window", 0, 0, 0, 0}};
  s.ends = {{200, 1204, ""}, {400, 1, "invalid_json"}, {429, 7, "overloaded"}, {500, 2, "error"}};
  s.connections = 12;
  for (int i = 0; i < 78; ++i) {
    TopSequence row;
    row.request_id = "0123456789abcdef01234567";
    row.key = i % 2 == 0 ? "ada" : "";
    row.state = i < 4 ? "decode" : i < 8 ? "prefill" : "waiting";
    row.priority = "normal";
    row.age_s = 12;
    row.prompt = 1204;
    row.computed = 602;
    row.generated = i < 4 ? 312 : 0;
    row.tokens_per_s = 11.2;
    s.sequences.push_back(row);
  }
  return s;
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

TEST(TopView, ShowsTheFigures) {
  const std::vector<double> history{10, 20, 40, 80};
  TopView view;
  view.where = "http://127.0.0.1:8080";
  view.history = history;
  const std::vector<std::string> lines = DrawTop(Busy(), view);
  const std::string all = Joined(lines);
  EXPECT_THAT(lines[0], HasSubstr("smollm2  ready"));
  EXPECT_THAT(lines[0], HasSubstr("http://127.0.0.1:8080  up 2 h"));
  EXPECT_THAT(all, HasSubstr("  93.4 tokens/s"));
  EXPECT_THAT(all, HasSubstr("▁▂▄█")) << "the history, against its largest";
  EXPECT_THAT(all, HasSubstr(" 412 tokens/s"));
  EXPECT_THAT(all, HasSubstr("71 % found in the cache"));
  EXPECT_THAT(all, HasSubstr("  84.1 ms"));
  EXPECT_THAT(all, HasSubstr("     8 of 64"));
  EXPECT_THAT(all, HasSubstr("1 paused"));
  EXPECT_THAT(all, HasSubstr("    70 of 10,000"));
  EXPECT_THAT(all, HasSubstr("12k tokens"));
  EXPECT_THAT(all, HasSubstr("    25 MiB of 100 MiB"));
  EXPECT_THAT(all, HasSubstr("█████▒▒▒▒▒▒▒▒▒▒░░░░░  25 % held, 50 % cached"));
  EXPECT_THAT(all, Not(HasSubstr("KV window"))) << "a model without such layers";
  EXPECT_THAT(all, HasSubstr("1,204 succeeded"));
  EXPECT_THAT(all, HasSubstr("7 overloaded, 2 error, 1 invalid_json")) << "most first";
  EXPECT_THAT(all, HasSubstr("0123456789a~  ada           decode"));
  EXPECT_THAT(all, HasSubstr("prefill 50 %"));
}

TEST(TopView, FitsEveryTerminal) {
  const std::vector<double> history(300, 5.0);
  for (const int columns : {1, 7, 20, 40, 79, 80, 81, 120, 300}) {
    for (const int rows : {1, 2, 5, 12, 14, 15, 24, 50, 200}) {
      for (const bool has_colours : {false, true}) {
        TopView view;
        view.columns = columns;
        view.rows = rows;
        view.has_colours = has_colours;
        view.history = history;
        view.footer = "q quits";
        view.problem = "12 s without an answer: http://127.0.0.1:8080: nobody answers";
        const std::vector<std::string> lines = DrawTop(Busy(), view);
        EXPECT_LE(lines.size(), static_cast<size_t>(rows));
        for (const std::string& line : lines) {
          EXPECT_LE(CellsOf(line), columns) << line;
          EXPECT_EQ(line.find('\n'), std::string::npos);
        }
        EXPECT_THAT(lines.back(), HasSubstr(rows > 1 && columns > 8 ? "q quits" : ""));
      }
    }
  }
}

TEST(TopView, SaysHowManyDoNotFit) {
  TopView view;  // 80 x 24: the figures take 11 lines, the table a blank and a head
  view.footer = "q quits";
  const std::vector<std::string> lines = DrawTop(Busy(), view);
  ASSERT_EQ(lines.size(), 24u);
  EXPECT_THAT(lines[22], HasSubstr("and 69 more"));
  EXPECT_THAT(lines[21], HasSubstr("waiting")) << "the ninth of 78";
  TopStatus many = Busy();
  many.waiting = 5000;  // of which the server told the first
  view.rows = 0;
  EXPECT_THAT(DrawTop(many, view).back(), HasSubstr("and 4,930 more"));
}

TEST(TopView, HasColoursOnlyWhenAsked) {
  TopView view;
  EXPECT_THAT(DrawTop(Busy(), view), Each(Not(HasSubstr("\x1b"))));
  view.has_colours = true;
  EXPECT_THAT(DrawTop(Busy(), view), Contains(HasSubstr("\x1b[32mready\x1b[0m")));
}

TEST(TopView, WorksInAscii) {
  TopView view;
  view.has_blocks = false;
  const std::vector<double> history{1, 8};
  view.history = history;
  const std::string all = Joined(DrawTop(Busy(), view));
  EXPECT_TRUE(std::all_of(all.begin(), all.end(), [](char c) { return c > 0; })) << all;
  EXPECT_THAT(all, HasSubstr("#####++++++++++.....  25 % held, 50 % cached"));
}

// Whatever a server says, the terminal hears only what we say to it.
TEST(TopView, NeutralisesHostileNames) {
  const std::string evil =
      "\x1b]0;owned\x07\x1b[2J\r\n\t\x9b"
      "31m\xc2\x9b\xe2\x80\xae\xff\x7f";
  TopStatus s = Busy();
  s.model = s.state = s.version = evil;
  for (TopEnds& end : s.ends) end.code = evil;
  for (TopBlocks& kv : s.kv) kv.group = evil;
  for (TopSequence& row : s.sequences) {
    row.request_id = row.key = row.state = row.priority = evil;
  }
  TopView view;
  view.has_blocks = false;
  view.where = view.problem = view.footer = evil;
  for (const std::string& line : DrawTop(s, view)) {
    for (const char c : line) EXPECT_TRUE(c >= ' ' && c < 0x7f) << static_cast<int>(c) << line;
  }
  view.has_colours = true;  // then our own colours are the only escapes
  for (std::string line : DrawTop(s, view)) {
    for (size_t at = 0; (at = line.find('\x1b', at)) != std::string::npos; ++at) {
      const size_t end = line.find_first_not_of("0123456789;", at + 2);
      EXPECT_EQ(line[at + 1], '[');
      EXPECT_EQ(line[end], 'm') << line;
    }
  }
}

TEST(TopView, AnEmptyAnswerIsAnEmptyPicture) {
  const TopStatus nothing = ReadTopStatus(Json());
  const std::vector<std::string> lines = DrawTop(nothing, TopView());
  EXPECT_THAT(Joined(lines), HasSubstr("no errors"));
  EXPECT_THAT(Joined(lines), Not(HasSubstr("REQUEST")));
  EXPECT_THAT(Joined(lines), Not(HasSubstr("nan")));
}

TEST(TopView, ACacheOnDiskHasALine) {
  const Json json = *ParseJson(R"({"tier": {"parts": [{"name": "disk", "misses": 3,
    "used_bytes": 1073741824, "capacity_bytes": 4294967296, "hits": 12345, "corrupt": 0,
    "failed": 0}, {"name": "shared", "hits": 77, "misses": 1,
    "missed_prompts": {"absent": 9, "late": 4, "slower": 2}}]}})");
  const std::string drawn = Joined(DrawTop(ReadTopStatus(json), TopView()));
  EXPECT_THAT(drawn, HasSubstr("KV disk"));
  EXPECT_THAT(drawn, HasSubstr("1.0 GiB of 4.0 GiB"));
  EXPECT_THAT(drawn, HasSubstr("  12k hits, 3 misses"));
  EXPECT_THAT(drawn, HasSubstr("KV shared"));
  EXPECT_THAT(drawn, HasSubstr("  77 hits, 1 misses, 4 late, 2 slower"));
  const Json sick = *ParseJson(
      R"({"tier": {"parts": [{"name": "disk", "capacity_bytes": 9, "hits": 5, "corrupt": 1,
          "failed": 1}]}})");
  EXPECT_THAT(Joined(DrawTop(ReadTopStatus(sick), TopView())), HasSubstr("  2 errors, 5 hits"));
  EXPECT_THAT(Joined(DrawTop(ReadTopStatus(*ParseJson(R"({"tier": null})")), TopView())),
              Not(HasSubstr("KV disk")));
}

TEST(TopView, ShortensNumbers) {
  EXPECT_EQ(ShortCount(0), "0");
  EXPECT_EQ(ShortCount(9'999), "9,999");
  EXPECT_EQ(ShortCount(12'345), "12k");
  EXPECT_EQ(ShortCount(1'250'000), "1.2M");
  EXPECT_EQ(ShortCount(int64_t{3} << 30), "3.22G");
  EXPECT_EQ(ShortBytes(0), "0 KiB");
  EXPECT_EQ(ShortBytes(412 << 20), "412 MiB");
  EXPECT_EQ(ShortBytes(int64_t{12} << 30), "12.0 GiB");
  EXPECT_EQ(ShortTime(0.25), "0.2 s");
  EXPECT_EQ(ShortTime(75), "75 s");
  EXPECT_EQ(ShortTime(600), "10 m");
  EXPECT_EQ(ShortTime(8040), "2 h");
  EXPECT_EQ(ShortTime(10 * 86400), "10 d");
  EXPECT_EQ(PlainName("ada", 12), "ada");
  EXPECT_EQ(PlainName("0123456789abcdef", 4), "012~");
  EXPECT_EQ(PlainName("r\xc3\xa9sum\xc3\xa9", 12), "r?sum?");
}

TEST(TopStatus, ReadsWhatIsThereAndNothingElse) {
  const Json json = *ParseJson(R"({
    "hearth": "1.0", "model": 7, "uptime_s": "long", "resident_bytes": -5, "max_context": 1e300,
    "requests": {"running": 3, "waiting": null}, "kv": {"group": "full"}, "steps": [],
    "listeners": [{"connections": 2, "refusals": 1}, {"connections": 3}, 5],
    "sequences": [{"key": "ada", "age_ms": 1500, "tokens_per_s": 4.5}, null]})");
  const TopStatus s = ReadTopStatus(json);
  EXPECT_EQ(s.version, "1.0");
  EXPECT_EQ(s.model, "");
  EXPECT_EQ(s.uptime_s, 0);
  EXPECT_EQ(s.resident_bytes, 0);
  EXPECT_EQ(s.max_context, int64_t{1} << 53);
  EXPECT_EQ(s.running, 3);
  EXPECT_EQ(s.waiting, 0);
  EXPECT_THAT(s.kv, IsEmpty());
  EXPECT_EQ(s.connections, 5);
  EXPECT_EQ(s.refusals, 1);
  ASSERT_EQ(s.sequences.size(), 2u);
  EXPECT_EQ(s.sequences[0].key, "ada");
  EXPECT_EQ(s.sequences[0].age_s, 1.5);
  EXPECT_EQ(s.sequences[0].tokens_per_s, 4.5);
}

TEST(StatusSource, SaysInALineWhatIsWrong) {
  const auto told = [](long status, std::string_view body, bool had_key) {
    const Result<Json> answer = ReadStatusAnswer(status, body, had_key);
    return answer.ok() ? "ok" : answer.status().message();
  };
  EXPECT_EQ(told(200, R"({"hearth": "0.1"})", false), "ok");
  EXPECT_THAT(told(401, "", false), HasSubstr("an admin key is required: pass --key-file"));
  EXPECT_THAT(told(401, "", true), HasSubstr("the key was rejected"));
  EXPECT_THAT(told(403, R"({"error": {"message": "an \u001b[2J key is needed"}})", true),
              StartsWith("rejected: an \\x1b[2J key"));
  EXPECT_EQ(told(403, "<html>", true), "rejected: HTTP 403");
  for (const char* body : {"", "<html>", "[]", R"({"hearth": 5})", R"({"status": "ok"})"}) {
    EXPECT_THAT(told(200, body, false), HasSubstr("of a Hearth server")) << body;
  }
  EXPECT_THAT(told(404, R"({"hearth": "0.1"})", false), HasSubstr("HTTP 404"));
  EXPECT_FALSE(StatusSource::Open({.url = "ftp://x"}).ok());
  EXPECT_FALSE(StatusSource::Open({.url = "http://x", .key = "a\r\nHost: b"}).ok());
  auto nobody = StatusSource::Open({.url = "http://127.0.0.1:1/"});
  ASSERT_TRUE(nobody.ok());
  const Result<Json> answer = (*nobody)->Ask();
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.status().message(),
            "http://127.0.0.1:1: no answer; is `hearth serve` running there?");
}

}  // namespace
}  // namespace hearth
