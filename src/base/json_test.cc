// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

namespace hearth {
namespace {

Json Parsed(std::string_view text, const JsonLimits& limits = {}) {
  Result<Json> value = ParseJson(text, limits);
  EXPECT_TRUE(value.ok()) << Quoted(text) << ": " << value.status().message();
  return value.ok() ? *std::move(value) : Json();
}

std::string Refusal(std::string_view text, const JsonLimits& limits = {}) {
  const Result<Json> value = ParseJson(text, limits);
  EXPECT_FALSE(value.ok()) << "accepted: " << Quoted(text);
  if (!value.ok()) {
    EXPECT_EQ(value.status().code(), Code::kInvalid);
  }
  return value.status().message();
}

TEST(JsonParse, EveryKind) {
  EXPECT_TRUE(Parsed("null").is_null());
  EXPECT_TRUE(*Parsed("true").boolean());
  EXPECT_FALSE(*Parsed(" false ").boolean());
  EXPECT_EQ(Parsed("12").integer(), 12);
  EXPECT_EQ(Parsed("1.5").number(), 1.5);
  EXPECT_EQ(*Parsed(R"("a\u00e9\n\ud83d\ude00")").string(), "a\u00e9\n\U0001f600");
  EXPECT_EQ(Parsed("[1,[],{}]"), Json(JsonArray{1, JsonArray(), JsonObject()}));
  const Json object = Parsed(R"({"b":1,"a":{"c":null}})");
  EXPECT_EQ(object, Json(JsonObject{{"b", 1}, {"a", JsonObject{{"c", Json()}}}}));
  EXPECT_EQ((*object.object())[0].first, "b") << "the order of the text";
}

TEST(JsonParse, KindsAreNotMixedUp) {
  const Json text = Parsed("\"1\"");
  EXPECT_EQ(text.boolean(), nullptr);
  EXPECT_EQ(text.integer(), std::nullopt);
  EXPECT_EQ(text.number(), std::nullopt);
  EXPECT_EQ(text.array(), nullptr);
  EXPECT_EQ(text.object(), nullptr);
  EXPECT_EQ(text.Find("x"), nullptr);
  EXPECT_EQ(Parsed("1").string(), nullptr);
  EXPECT_EQ(Parsed("1.0").integer(), std::nullopt) << "written with a fraction: no integer";
  EXPECT_EQ(Parsed("1e2").integer(), std::nullopt);
}

TEST(JsonParse, FindsMembers) {
  const Json object = Parsed(R"({"":1,"a":2,"A":3,"a\u0000":4})");
  EXPECT_EQ(object.Find("")->integer(), 1);
  EXPECT_EQ(object.Find("a")->integer(), 2);
  EXPECT_EQ(object.Find("A")->integer(), 3);
  EXPECT_EQ(object.Find(std::string_view("a\0", 2))->integer(), 4);
  EXPECT_EQ(object.Find("b"), nullptr);
}

TEST(JsonParse, IntegersAtTheEdges) {
  EXPECT_EQ(Parsed("9223372036854775807").integer(), INT64_MAX);
  EXPECT_EQ(Parsed("-9223372036854775808").integer(), INT64_MIN);
  const Json large = Parsed("9223372036854775808");
  EXPECT_EQ(large.integer(), std::nullopt);
  EXPECT_EQ(large.unsigned_integer(), uint64_t{1} << 63);
  EXPECT_EQ(Parsed("18446744073709551615").unsigned_integer(), UINT64_MAX);
  // Beyond 64 bits a number is a double, never a wrapped integer.
  const Json beyond = Parsed("18446744073709551616");
  EXPECT_EQ(beyond.unsigned_integer(), std::nullopt);
  EXPECT_EQ(beyond.number(), 18446744073709551616.0);
  EXPECT_EQ(Parsed("-9223372036854775809").integer(), std::nullopt);
  EXPECT_EQ(Parsed("-9223372036854775809").number(), -9223372036854775808.0);
  EXPECT_EQ(Parsed("-1").unsigned_integer(), std::nullopt);
  EXPECT_EQ(Parsed("7").unsigned_integer(), 7u);
  EXPECT_EQ(Json(uint64_t{7}), Json(7)) << "equal numbers compare equal";
  EXPECT_EQ(Parsed("-0").integer(), 0);
}

TEST(JsonParse, DoublesAtTheEdges) {
  EXPECT_EQ(Parsed("1.7976931348623157e308").number(), 1.7976931348623157e308);
  EXPECT_EQ(Parsed("5e-324").number(), 5e-324);
  EXPECT_EQ(Parsed("2e-324").number(), 0.0);
  EXPECT_EQ(Parsed("2.2250738585072011e-308").number(), 2.2250738585072011e-308);
  EXPECT_EQ(Parsed("1e-400").number(), 0.0);
  EXPECT_TRUE(std::signbit(*Parsed("-1e-400").number()));
  EXPECT_TRUE(std::signbit(*Parsed("-0.0").number()));
  EXPECT_EQ(Parsed("1" + std::string(300, '0')).number(), 1e300);
  EXPECT_EQ(Parsed("0." + std::string(300, '0') + "1").number(), 1e-301);
  EXPECT_EQ(Parsed("0e999").number(), 0.0);
  Refusal("0e999999999999");  // an exponent beyond 32 bits is a trick, not a number
  for (const char* text : {"1e309", "-1e309", "1.7976931348623159e308", "1e99999"}) {
    EXPECT_NE(Refusal(text).find("too large"), std::string::npos) << text;
  }
  EXPECT_NE(Refusal("1" + std::string(400, '0')).find("too large"), std::string::npos);
}

// A random number as JSON may spell it: any length of digits, fraction and exponent.
std::string RandomNumber(std::mt19937_64& random) {
  const auto digits = [&](size_t most) {
    std::string text;
    for (size_t i = 1 + random() % most; i > 0; --i) text += static_cast<char>('0' + random() % 10);
    return text;
  };
  std::string whole = digits(random() % 8 == 0 ? 40 : 19);
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size() - 1));
  std::string text =
      (random() % 2 == 0 ? "-" : "") + whole + "." + digits(random() % 8 == 0 ? 60 : 18);
  if (random() % 2 == 0) {
    const char* sign[] = {"", "+", "-"};
    text += (random() % 2 == 0 ? "e" : "E") + std::string(sign[random() % 3]);
    text += std::to_string(random() % (random() % 4 == 0 ? 290 : 25));
  }
  return text;
}

TEST(JsonParse, DoublesAreCorrectlyRounded) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 100000; ++i) {
    const std::string text = RandomNumber(random);
    const double expected = std::strtod(text.c_str(), nullptr);
    // Alone, and inside: the end of the text is a case of its own for the parser.
    const Result<Json> alone = ParseJson(text);
    const Result<Json> inside = ParseJson("[7, " + text + " ,\"x\"]");
    if (!std::isfinite(expected)) {
      ASSERT_FALSE(alone.ok()) << text;
      continue;
    }
    ASSERT_TRUE(alone.ok() && inside.ok()) << text;
    ASSERT_EQ(Parsed(text).number(), expected) << text;
    ASSERT_EQ((*Parsed("[7, " + text + " ,\"x\"]").array())[1].number(), expected) << text;
  }
}

TEST(JsonParse, RefusesWhatRfc8259Refuses) {
  const char* refused[] = {"",          " ",          "tru",       "nul",
                           "True",      "+1",         "01",        "-",
                           "-a",        "1.",         ".5",        "1e",
                           "1e+",       "0x10",       "NaN",       "Infinity",
                           "-Infinity", "'a'",        "\"",        "\"a",
                           "[",         "]",          "[1",        "[1,",
                           "[1,]",      "[,1]",       "[1 2]",     "{",
                           "}",         "{\"a\"",     "{\"a\":",   "{\"a\":1",
                           "{\"a\":1,", "{\"a\":1,}", "{a:1}",     "{1:1}",
                           "{\"a\" 1}", "[1}",        "{\"a\":1]", "1 2",
                           "null x",    "[]]",        "{}{}",      "// c\n1",
                           "/* c */ 1", "[1,,2]",     "\"\\x\"",   "\"\\u12g4\"",
                           "\"\\u12\"", "\"\t\"",     "\"\n\"",    "\xef\xbb\xbf null",
                           "--1",       "1..2"};
  for (const char* text : refused) Refusal(text);
  Refusal(std::string_view("1\0", 2));
  Refusal(std::string_view("\"\0\"", 3));
}

TEST(JsonParse, RefusesInvalidUtf8) {
  const char* refused[] = {"\x80",
                           "\xff",
                           "\xc0\x80",
                           "\xc1\xbf",
                           "\xc3",
                           "\xc3(",
                           "\xe0\x80\x80",
                           "\xe0\x9f\xbf",
                           "\xe2\x82",
                           "\xed\xa0\x80",
                           "\xed\xbf\xbf",
                           "\xf0\x80\x80\x80",
                           "\xf0\x8f\xbf\xbf",
                           "\xf0\x9f\x98",
                           "\xf4\x90\x80\x80",
                           "\xf5\x80\x80\x80",
                           "\xfe",
                           "\xf8\x88\x80\x80\x80"};
  for (const char* bytes : refused) {
    Refusal("\"" + std::string(bytes) + "\"");
    Refusal("{\"" + std::string(bytes) + "\":1}");
  }
  for (const char* escape : {"\\ud800", "\\udc00", "\\ud800\\ud800", "\\ud800x", "\\ud800\\n"}) {
    Refusal("\"" + std::string(escape) + "\"");
  }
  for (const char* fine : {"\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(*Parsed("\"" + std::string(fine) + "\"").string(), fine);
  }
}

TEST(JsonParse, RefusesANameTwice) {
  EXPECT_NE(Refusal(R"({"a":1,"b":2,"a":3})").find("the name \"a\" appears twice"),
            std::string::npos);
  EXPECT_NE(Refusal(R"([{"x":{"":1,"":2}}])").find("the name \"\""), std::string::npos);
  Refusal(R"({"a":1,"\u0061":2})");
  Parsed(R"({"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]})");
}

TEST(JsonParse, ErrorsNameTheOffset) {
  EXPECT_EQ(Refusal("[1,2,x]").substr(0, 17), "JSON near byte 5:") << Refusal("[1,2,x]");
  EXPECT_EQ(Refusal("1 x").substr(0, 17), "JSON near byte 2:") << Refusal("1 x");
  const std::string late = "[" + std::string(100000, ' ') + "tru]";
  EXPECT_EQ(Refusal(late).substr(0, 22), "JSON near byte 100001:") << Refusal(late);
}

TEST(JsonParse, LimitsBytes) {
  const JsonLimits limits = {.max_bytes = 4};
  EXPECT_EQ(Parsed("1234", limits).integer(), 1234);
  EXPECT_EQ(Refusal("12345", limits), "JSON of 5 bytes, the limit is 4");
}

TEST(JsonParse, LimitsDepth) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  Parsed(nested(64));
  EXPECT_NE(Refusal(nested(65)).find("byte 64"), std::string::npos) << Refusal(nested(65));
  const JsonLimits flat = {.max_depth = 1};
  Parsed("[1,2]", flat);
  Refusal("[[1]]", flat);
  Refusal("[{}]", flat);
}

TEST(JsonParse, HostileNestingIsCheap) {
  // Refused at the limit, not after walking (or recursing through) a million levels.
  EXPECT_NE(Refusal(std::string(1 << 20, '[')).find("byte 64"), std::string::npos);
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  Refusal(objects);
}

TEST(JsonParse, LimitsValues) {
  const JsonLimits limits = {.max_values = 3};
  Parsed("[1,2]", limits);
  EXPECT_NE(Refusal("[1,2,3]", limits).find("more than 3 values"), std::string::npos);
  Parsed(R"({"a":1,"b":{}})", limits);
  EXPECT_NE(Refusal(R"({"a":1,"b":{},"c":[]})", limits).find("more than 3 values"),
            std::string::npos);
  Refusal("[[[[]]]]", limits);
}

double ParseSeconds(const std::string& text) {
  const auto start = std::chrono::steady_clock::now();
  Parsed(text);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(JsonParse, ManyNamesAreNotQuadratic) {
  const auto object = [](int members) {
    std::string text = "{";
    for (int i = 0; i < members; ++i) {
      text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":0";
    }
    return text + "}";
  };
  // 20 times the members may take 20 log 20 times as long; comparing all pairs would take 400.
  const double small = std::min(ParseSeconds(object(10000)), ParseSeconds(object(10000)));
  const double large = std::min(ParseSeconds(object(200000)), ParseSeconds(object(200000)));
  EXPECT_LT(large, 120 * small);
}

TEST(JsonWrite, WritesTheShortestText) {
  EXPECT_EQ(WriteJson(Json()), "null");
  EXPECT_EQ(
      WriteJson(JsonObject{{"a", JsonArray{1, -2.5, true, "x\"\\\n\x01"}}, {"b", JsonObject()}}),
      "{\"a\":[1,-2.5,true,\"x\\\"\\\\\\n\\u0001\"],\"b\":{}}");
  EXPECT_EQ(WriteJson(1.0), "1.0");
  EXPECT_EQ(WriteJson(-0.0), "-0.0");
  EXPECT_EQ(WriteJson(0.1), "0.1");
  EXPECT_EQ(WriteJson(1e22), "1e+22");
  EXPECT_EQ(WriteJson(UINT64_MAX), "18446744073709551615");
  EXPECT_EQ(WriteJson(INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(WriteJson(std::nan("")), "null");
  EXPECT_EQ(WriteJson(JsonArray{HUGE_VAL, -HUGE_VAL}), "[null,null]");
}

TEST(JsonWrite, Indents) {
  EXPECT_EQ(WriteJson(JsonObject{{"a", JsonArray{1, 2}}, {"b", JsonArray()}}, 2),
            "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": []\n}");
}

TEST(JsonWrite, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(WriteJson("a\xff\xc3\xa9\xed\xa0\x80z"), "\"a\\ufffd\xc3\xa9\\ufffd\\ufffd\\ufffdz\"");
  EXPECT_EQ(WriteJson("\xf0\x9f\x98"), "\"\\ufffd\\ufffd\\ufffd\"");
  // Whatever the bytes, the text can be read again.
  std::mt19937_64 random(4);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes;
    for (size_t n = random() % 12; n > 0; --n) bytes += static_cast<char>(random());
    Parsed(WriteJson(bytes));
  }
}

std::string RandomText(std::mt19937_64& random) {
  static const std::string kPieces[] = {"a",      "Z9",         "\"",     "\\",
                                        "\n",     "\x01",       "\x7f",   "\u00e9",
                                        "\u4e2d", "\U0001f600", "\u2028", std::string(1, '\0'),
                                        " ",      "/"};
  std::string text;
  for (size_t n = random() % 6; n > 0; --n) text += kPieces[random() % std::size(kPieces)];
  return text;
}

Json RandomTree(std::mt19937_64& random, int depth) {
  switch (random() % (depth > 0 ? 8 : 6)) {
    case 0:
      return Json();
    case 1:
      return random() % 2 == 0;
    case 2:
      return static_cast<int64_t>(random() >> (random() % 64));
    case 3:
      return random();
    case 4: {
      const double value = std::bit_cast<double>(random());
      return std::isfinite(value) ? value : 0.5;
    }
    case 5:
      return RandomText(random);
    case 6: {
      JsonArray array;
      for (size_t n = random() % 5; n > 0; --n) array.push_back(RandomTree(random, depth - 1));
      return array;
    }
    default: {
      JsonObject object;
      for (size_t n = random() % 5; n > 0; --n) {
        object.emplace_back(RandomText(random) + std::to_string(n), RandomTree(random, depth - 1));
      }
      return object;
    }
  }
}

TEST(JsonWrite, WhatIsWrittenParsesBackEqual) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20000; ++i) {
    const Json tree = RandomTree(random, 5);
    const std::string text = WriteJson(tree);
    ASSERT_EQ(Parsed(text), tree) << text;
    ASSERT_EQ(Parsed(WriteJson(tree, 3)), tree) << text;
    ASSERT_EQ(WriteJson(Parsed(text)), text);
  }
}

TEST(JsonParse, EveryCutOfAValidTextIsRefusedOrShorter) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 300; ++i) {
    const std::string text = "[" + WriteJson(RandomTree(random, 3)) + "]";
    for (size_t length = 0; length < text.size(); ++length) {
      ASSERT_FALSE(ParseJson(std::string_view(text).substr(0, length)).ok()) << text << length;
    }
  }
}

TEST(Json, TextThatIsPassedOnMayRepeatNamesAndOverflow) {
  constexpr const char* kText = R"({"a":1e999,"a":[-1e999],"b":{}})";
  EXPECT_FALSE(ParseJson(kText).ok());
  auto json = ParseJson(kText, {.is_passed_on = true});
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->Find("a")->number(), std::numeric_limits<double>::max());
  EXPECT_EQ(json->object()->size(), 3u);
  EXPECT_FALSE(ParseJson(R"({"a":1,})", {.is_passed_on = true}).ok());
}

TEST(JsonWrite, PutsWrittenTextInAsItIs) {
  const Json list = JsonArray{JsonText{R"({"a":[1,2]})"}, 3, JsonText{"null"}};
  EXPECT_EQ(WriteJson(list), R"([{"a":[1,2]},3,null])");
  EXPECT_EQ(WriteJson(JsonObject{{"x", JsonText{"[]"}}}), R"({"x":[]})");
  const Json text = JsonText{"1"};
  EXPECT_EQ(text.written()->text, "1");
  EXPECT_FALSE(text.is_null());
  EXPECT_EQ(text.integer(), std::nullopt) << "of no kind until it is parsed";
  EXPECT_EQ(text.Find("a"), nullptr);
  EXPECT_EQ(Json(1).written(), nullptr);
}

TEST(JsonMeasure, CountsWhatParsingWould) {
  for (const char* text :
       {"1", "[]", "{}", "[1,2,3]", R"({"a":1,"b":[{"c":[]},"],{,"]})", R"(["\\",",","\",["])"}) {
    const JsonMeasure measure = MeasureJson(text);
    size_t exact = 0;
    while (!ParseJson(text, {.max_values = exact}).ok()) ASSERT_LT(++exact, 100u) << text;
    EXPECT_GE(measure.num_values, exact) << text;
    EXPECT_LE(measure.num_values, exact + 3) << text;
    EXPECT_TRUE(FitsJsonLimits(text, {.max_values = measure.num_values}));
    EXPECT_FALSE(FitsJsonLimits(text, {.max_values = measure.num_values - 1}));
  }
  EXPECT_EQ(MeasureJson("[[[1]],[2]]").depth, 3);
  EXPECT_FALSE(FitsJsonLimits("[[[1]]]", {.max_depth = 2}));
  EXPECT_FALSE(FitsJsonLimits("[1,2]", {.max_bytes = 4}));
}

}  // namespace
}  // namespace hearth
