// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/batches/multipart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace hearth {
namespace {

using ::testing::HasSubstr;

constexpr const char* kType = "multipart/form-data; boundary=xYz";

TEST(Multipart, ReadsFieldsAndFiles) {
  const std::string body =
      "--xYz\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n"
      "--xYz\r\ncontent-disposition: form-data; filename=\"a \\\"b\\\".jsonl\"; name=file\r\n"
      "Content-Type: application/octet-stream\r\n\r\n{\"a\": 1}\r\n--xY\r\n\r\n--xYz--\r\n";
  const std::vector<FormPart> parts = *ParseForm(kType, body);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].name, "purpose");
  EXPECT_EQ(parts[0].filename, "");
  EXPECT_EQ(parts[0].content, "batch");
  EXPECT_EQ(parts[1].name, "file");
  EXPECT_EQ(parts[1].filename, "a \"b\".jsonl");
  EXPECT_EQ(parts[1].content, "{\"a\": 1}\r\n--xY\r\n");
}

TEST(Multipart, TakesQuotedBoundariesAndNoParts) {
  EXPECT_EQ(ParseForm("Multipart/Form-Data; charset=x; boundary=\"a b\"", "--a b--")->size(), 0u);
  const std::string empty = "--q\r\ncontent-disposition: form-data; name=\"f\"\r\n\r\n\r\n--q--";
  EXPECT_EQ((*ParseForm("multipart/form-data; boundary=q", empty))[0].content, "");
}

TEST(Multipart, SaysWhatIsWrong) {
  const std::string head = "content-disposition: form-data; name=\"f\"";
  const std::pair<std::string, std::string> wrong[] = {
      {"", "its boundary"},
      {"--other\r\n", "its boundary"},
      {"--xYzz\r\n", "end its line"},
      {"--xYz\r\n" + head, "head without its end"},
      {"--xYz\r\n" + head + "\r\n\r\nabc", "last boundary"},
      {"--xYz\r\nx: y\r\n\r\nabc\r\n--xYz--", "without a name"},
      {"--xYz\r\nnothing\r\n\r\nabc\r\n--xYz--", "without a colon"},
      {"--xYz\r\n" + head + "\r\nContent-Transfer-Encoding: base64\r\n\r\nabc\r\n--xYz--",
       "encoding"},
      {"--xYz\r\ncontent-disposition: form-data; name=\"a\r\\\nb\"\r\n\r\n\r\n--xYz--", "control"},
      {"--xYz\r\n" + std::string(5000, 'a') + ": b\r\n\r\nabc\r\n--xYz--", "head without its end"}};
  for (const auto& [body, what] : wrong) {
    EXPECT_THAT(ParseForm(kType, body).status().message(), HasSubstr(what)) << body;
  }
  EXPECT_THAT(ParseForm("application/json", "").status().message(), HasSubstr("content-type"));
  EXPECT_THAT(ParseForm("multipart/form-data", "").status().message(), HasSubstr("no boundary"));
  std::string many;
  for (int i = 0; i < 17; ++i) many += "--xYz\r\n" + head + "\r\n\r\n\r\n";
  EXPECT_THAT(ParseForm(kType, many + "--xYz--").status().message(), HasSubstr("more than 16"));
}

// Whatever is cut off or changed: an answer, and nothing outside the body.
TEST(Multipart, SurvivesNoise) {
  const std::string whole =
      "--xYz\r\ncontent-disposition: form-data; name=\"p\"\r\n\r\nq\r\n"
      "--xYz\r\ncontent-disposition: form-data; name=\"f\"; filename=\"g\"\r\n\r\nh\r\n--xYz--";
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string body = whole;
    for (unsigned n = random() % 4; n > 0; --n) {
      body[random() % body.size()] = "\r\n-:;\"\\x="[random() % 9];
    }
    body.resize(body.size() - (random() % 3 == 0 ? random() % body.size() : 0));
    auto parts = ParseForm(kType, body);
    if (!parts.ok()) continue;
    for (const FormPart& part : *parts) {
      EXPECT_GE(part.content.data(), body.data());
      EXPECT_LE(part.content.data() + part.content.size(), body.data() + body.size());
    }
  }
}

}  // namespace
}  // namespace hearth
