// SPDX-License-Identifier: Apache-2.0
#include "batch/batch_lines.h"

#include <gtest/gtest.h>

#include "base/result.h"

namespace hearth {
namespace {

constexpr const char* kChat = "/v1/chat/completions";

std::string Line(const std::string& id, const std::string& body = R"({"messages": []})") {
  return R"({"custom_id": ")" + id + R"(", "method": "POST", "url": ")" + kChat + R"(", "body": )" +
         body + "}\n";
}

TEST(BatchLines, ReadsRequestsAndMakesThemPatient) {
  const BatchLines read = ReadLines(
      Line("a", R"({"model": "m", "priority": -1, "n": 1})") + "\r\n  \n" + Line("b"), kChat, 10);
  ASSERT_TRUE(read.mistakes.empty()) << read.mistakes[0].message;
  ASSERT_EQ(read.lines.size(), 2u);
  EXPECT_EQ(read.lines[0].custom_id, "a");
  EXPECT_EQ(read.lines[0].body, R"({"model":"m","n":1,"priority":2})");
  EXPECT_EQ(read.lines[1].body, R"({"messages":[],"priority":2})");
  std::string last = Line("c");
  last.pop_back();
  EXPECT_EQ(ReadLines(last, kChat, 1).lines.size(), 1u) << "without its last line's end";
}

TEST(BatchLines, SaysWhichLineIsWrongAndWhy) {
  const std::pair<std::string, const char*> wrong[] = {
      {"nonsense\n", "invalid_json_line"},
      {"[]\n", "invalid_json_line"},
      {R"({"method": "POST"})", "missing_required_parameter"},
      {Line(""), "missing_required_parameter"},
      {Line(std::string(257, 'x')), "missing_required_parameter"},
      {R"({"custom_id": "a", "method": "GET", "url": "/v1/chat/completions", "body": {}})",
       "invalid_method"},
      {R"({"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {}})",
       "mismatched_url"},
      {Line("a", "3"), "missing_required_parameter"},
      {Line("a", R"({"stream": true})"), "invalid_stream"},
      {R"({"custom_id": "a", "mthod": "POST"})", "unknown_parameter"},
      {Line("first"), "duplicate_custom_id"}};
  for (const auto& [text, code] : wrong) {
    const BatchLines read = ReadLines(Line("first") + "\n" + text, kChat, 10);
    ASSERT_EQ(read.mistakes.size(), 1u) << text;
    EXPECT_EQ(read.mistakes[0].code, code);
    EXPECT_EQ(read.mistakes[0].line, 3);
  }
  EXPECT_EQ(ReadLines("\n\n", kChat, 10).mistakes[0].code, "empty_file");
}

TEST(BatchLines, HasBounds) {
  EXPECT_EQ(ReadLines(Line("a") + Line("b"), kChat, 2).lines.size(), 2u);
  EXPECT_EQ(ReadLines(Line("a") + Line("b") + Line("c"), kChat, 2).mistakes[0].code,
            "too_many_lines");
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "x\n";
  EXPECT_EQ(ReadLines(many, kChat, 5000).mistakes.size(), 20u);
}

TEST(BatchLines, WritesResults) {
  EXPECT_EQ(ResultLine("a", "r", 200, R"({"x":1})"),
            R"({"id":"batch_req_r","custom_id":"a","response":{"status_code":200,)"
            R"("request_id":"r","body":{"x":1}},"error":null})");
  EXPECT_EQ(UnrunLine("a", "r", "batch_expired", "late"),
            R"({"id":"batch_req_r","custom_id":"a","response":null,)"
            R"("error":{"code":"batch_expired","message":"late"}})");
  EXPECT_EQ(WriteJson(MistakesAsJson({{0, "c", "", "m"}, {3, "d", "p", "n"}})),
            R"({"object":"list","data":[{"code":"c","line":null,"message":"m","param":null},)"
            R"({"code":"d","line":3,"message":"n","param":"p"}]})");
}

}  // namespace
}  // namespace hearth
