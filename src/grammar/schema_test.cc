// SPDX-License-Identifier: Apache-2.0
#include "grammar/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

namespace hearth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Prepared(std::string_view text) {
  auto prepared = PrepareSchemaText(text);
  return prepared.ok() ? *prepared : "refused: " + prepared.status().message();
}

TEST(Schema, OrdersToTheEngineAreLeftOut) {
  const std::string out = Prepared(R"({"type":"object","x-guidance":{"lenient":true},
                   "properties":{"a":{"x-guidance":{"coerce_one_of":true}}}})");
  EXPECT_THAT(out, Not(HasSubstr("lenient")));
  EXPECT_THAT(out, Not(HasSubstr("coerce_one_of")));
  EXPECT_THAT(out, HasSubstr("whitespace_pattern"));
}

TEST(Schema, APropertyMayBeCalledLikeAKeyword) {
  const std::string out = Prepared(
      R"({"properties":{"x-guidance":{"type":"null"},"format":{"type":"null"},"$id":{}}})");
  EXPECT_THAT(out, HasSubstr(R"("x-guidance":{"type":"null"},"format":{"type":"null"})"));
}

TEST(Schema, NamedPropertiesAreAllThereAre) {
  EXPECT_THAT(Prepared(R"({"properties":{"a":{}}})"), HasSubstr(R"("additionalProperties":false)"));
  for (const char* open : {R"({"properties":{}})", R"({"type":"object"})",
                           R"({"properties":{"a":{}},"minProperties":2})",
                           R"({"properties":{"a":{}},"additionalProperties":true})",
                           R"({"properties":{"a":{}},"patternProperties":{"^x":{}}})",
                           R"({"properties":{"a":{}},"required":["b"]})",
                           R"({"allOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]})",
                           R"({"properties":{"a":{}},"anyOf":[{"required":["a"]}]})"}) {
    EXPECT_THAT(Prepared(open), Not(HasSubstr(R"("additionalProperties":false)"))) << open;
  }
}

TEST(Schema, OpenNamesAreNeverWrittenWithEscapes) {
  EXPECT_THAT(Prepared(R"({"properties":{"a":{}},"additionalProperties":true})"),
              HasSubstr(R"("json_allowed_escapes":"nrbtf\\\"")"));
  EXPECT_THAT(Prepared(R"({"properties":{"a":{}}})"),
              HasSubstr(R"("json_allowed_escapes":"nrbtf\\\"u")"));
}

TEST(Schema, UnknownFormatsAreAnnotations) {
  EXPECT_THAT(Prepared(R"({"format":"int32"})"), Not(HasSubstr("int32")));
  EXPECT_THAT(Prepared(R"({"format":"uuid"})"), HasSubstr(R"("format":"uuid")"));
  EXPECT_THAT(Prepared(R"({"format":"date"})"), HasSubstr("2[0-8]"));
}

std::string Repeat(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// Of so many properties, and so many names that are required: the first ones are the same.
std::string RequiredNames(int properties, int required) {
  std::string out = "{\"properties\":{", names;
  for (int i = 0; i < properties; ++i)
    out += (i > 0 ? ",\"p" : "\"p") + std::to_string(i) + "\":{}";
  for (int i = 0; i < required; ++i) names += (i > 0 ? ",\"p" : "\"p") + std::to_string(i) + "\"";
  return out + "},\"required\":[" + names + "]}";
}

TEST(Schema, NamesThatAreRequiredCountOnce) {
  EXPECT_THAT(Prepared(RequiredNames(300, 300)), Not(HasSubstr("refused")));
  EXPECT_THAT(Prepared(RequiredNames(0, 300)), Not(HasSubstr("refused")));
}

TEST(Schema, BoundsAreNamed) {
  const auto list = [](std::string_view item, int count) {
    return Repeat(std::string(item) + ",", count - 1) + std::string(item);
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {Repeat("{\"not\":", 100) + "{}" + Repeat("}", 100), "too deep"},
      {"{\"enum\":[" + list("1", 5000) + "]}", "5000 values; the limit is 4096"},
      {"{\"pattern\":\"" + Repeat("(", 60) + "\"}", "nested deeper than 32"},
      {"{\"pattern\":\"" + Repeat("a", 2000) + "\"}",
       "the pattern has 2000 bytes; the limit is 1024"},
      {"{\"anyOf\":[" + list("{}", 5000) + "]}", "more than 4096 subschemas"},
      {"{\"maxLength\":1e9}", "1000000000 is above the limit of 10000"},
      {"{\"multipleOf\":999983}", "more digits"},
      {"{\"multipleOf\":0.12345}", "more digits"},
      {"{\"multipleOf\":1e-300}", "more digits"},
      {"{\"multipleOf\":0}", "above 0"},
      {"{\"minItems\":-1}", "expected a whole number"},
      {"{\"allOf\":[" + list("{\"anyOf\":[" + list("{}", 10) + "]}", 10) + "]}", "too many"},
      {RequiredNames(0, 400), "required\": too many properties"},
      {RequiredNames(300, 400), "required\": too many properties"},
      {"{\"$ref\":\"http://x/y\"}", "a reference within the schema"},
      {"{\"$ref\":\"#/a~1b\"}", "escapes in references"},
      {"{\"properties\":[]}", "properties\": expected an object"},
      {"{\"properties\":{\"a\":3}}", "expected an object or a boolean"},
      {"{\"anyOf\":[]}", "at least one schema"},
      {"[]", "expected an object or a boolean"},
      {"{\"a\":", "byte"},
  };
  for (const auto& [text, why] : cases) {
    const std::string out = Prepared(text);
    EXPECT_THAT(out, HasSubstr("refused: ")) << text.substr(0, 80);
    EXPECT_THAT(out, HasSubstr(why)) << text.substr(0, 80);
  }
}

TEST(Schema, OrdinaryMultiplesPass) {
  for (const char* step : {"0.01", "0.5", "0.25", "5", "10", "1000", "1e6", "250", "7"}) {
    EXPECT_TRUE(PrepareSchemaText(std::string("{\"multipleOf\":") + step + "}").ok()) << step;
  }
}

TEST(Schema, PatternsAndGrammarsAloneAreBoundedToo) {
  EXPECT_TRUE(CheckPattern("(a|b)*").ok());
  EXPECT_FALSE(CheckPattern(std::string(60'000, '(')).ok());
  EXPECT_FALSE(CheckPattern(Repeat("(", 40) + "a" + Repeat(")", 40)).ok());
  EXPECT_TRUE(CheckLark("start: (\"a\" | (\"b\"))").ok());
  EXPECT_FALSE(CheckLark("start: " + std::string(60'000, '(')).ok());
}

TEST(Schema, CanBeCheckedWithoutBeingPrepared) {
  const Json good = JsonObject{{"type", "object"}};
  const Json bad = JsonObject{{"enum", 1}};
  EXPECT_TRUE(CheckSchema(good).ok());
  EXPECT_EQ(CheckSchema(bad).message(), PrepareSchema(bad).status().message());
}

// A name of many bytes above many subschemas: each was given the name in its own path.
TEST(Schema, LongNamesAreNotRepeated) {
  JsonObject inner;
  for (int i = 0; i < 3000; ++i) inner.push_back({"z" + std::to_string(i), true});
  const Json schema = JsonObject{
      {"properties", JsonObject{{std::string(200'000, 'k'), JsonObject(std::move(inner))}}}};
  const std::clock_t began = std::clock();
  EXPECT_TRUE(CheckSchema(schema).ok());
  EXPECT_LT(static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC, 0.05);
}

}  // namespace
}  // namespace hearth
