// SPDX-License-Identifier: Apache-2.0
#include "server/turns/fields.h"

#include <gtest/gtest.h>

#include "server/dialects/chat/chat_request.h"

namespace hearth {
namespace {

ApiResult<TurnRequest> Read(const std::string& members) {
  const std::string text = std::string(R"({"messages": [{"role": "user", "content": "hi"}])") +
                           (members.empty() ? "" : ", ") + members + "}";
  Result<Json> json = ParseJson(text);
  EXPECT_TRUE(json.ok()) << text;
  return ReadChatRequest(*std::move(json));
}

std::string ParamOf(const std::string& members) {
  const auto read = Read(members);
  if (read.ok()) return "";
  const ApiError& error = read.error();
  EXPECT_EQ(error.status, 400);
  EXPECT_NE(error.message.find(error.param), std::string::npos) << error.message;
  return error.param;
}

TEST(ChatFields, AreInOrderAndUnique) {
  const auto table = ChatFields();
  for (size_t i = 1; i < table.size(); ++i) EXPECT_LT(table[i - 1].name, table[i].name);
}

TEST(ChatFields, AreReadOrRefusedByName) {
  EXPECT_EQ(ParamOf(""), "");
  EXPECT_EQ(ParamOf(R"("temperature": 0.5, "top_p": null, "user": "x")"), "");
  EXPECT_EQ(ParamOf(R"("temperatur": 0.5)"), "temperatur");
  EXPECT_EQ(ParamOf(R"("temperature": 3)"), "temperature");
  EXPECT_EQ(ParamOf(R"("temperature": "hot")"), "temperature");
  EXPECT_EQ(ParamOf(R"("max_tokens": 0)"), "max_tokens");
  EXPECT_EQ(ParamOf(R"("max_tokens": 1.5)"), "max_tokens");
  EXPECT_EQ(ParamOf(R"("n": 17)"), "n");
  EXPECT_EQ(ParamOf(R"("n": 1)"), "");
  EXPECT_EQ(ParamOf(R"("store": true)"), "store");
  EXPECT_EQ(ParamOf(R"("store": false)"), "");
  EXPECT_EQ(ParamOf(R"("top_logprobs": 2)"), "top_logprobs");
  EXPECT_EQ(ParamOf(R"("top_logprobs": 2, "logprobs": true)"), "");
  EXPECT_EQ(ParamOf(R"("response_format": {"type": "text"})"), "");
  EXPECT_EQ(ParamOf(R"("response_format": {"type": "json_object"})"), "");
  EXPECT_EQ(ParamOf(R"("response_format": {"type": "yaml"})"), "response_format.type");
  EXPECT_EQ(ParamOf(R"("response_format": {"type": "json_object"}, "guided_regex": "a")"),
            "response_format");
  EXPECT_EQ(ParamOf(R"("guided_regex": "a", "guided_json": {})"), "guided_regex");
  EXPECT_EQ(ParamOf(R"("structured_outputs": {"disable_fallback": 1})"),
            "structured_outputs.disable_fallback");
  EXPECT_EQ(ParamOf(R"("reasoning_effort": "huge")"), "reasoning_effort");
  EXPECT_EQ(ParamOf(R"("reasoning": {"summary": "auto"})"), "reasoning.summary");
  EXPECT_EQ(ParamOf(R"("stop": [1])"), "stop");
  EXPECT_EQ(ParamOf(R"("stop": "")"), "stop");
  EXPECT_EQ(ParamOf(R"("logit_bias": {"x": 1})"), "logit_bias");
  EXPECT_EQ(ParamOf(R"("logit_bias": {"1": 101})"), "logit_bias");
  EXPECT_EQ(ParamOf(R"("tool_choice": "required")"), "tool_choice");
}

TEST(ChatFields, ReachTheRequest) {
  auto read = Read(
      R"("temperature": 0.5, "top_k": 7, "stop": ["a", "b"], "max_tokens": 3, "seed": 9,
         "max_completion_tokens": 5, "stream": true, "stream_options": {"include_usage": true},
         "logit_bias": {"12": -100}, "model": "m")");
  ASSERT_TRUE(read.ok());
  const TurnRequest& chat = *read;
  EXPECT_EQ(chat.sampling.temperature, 0.5f);
  EXPECT_EQ(chat.sampling.top_k, 7);
  EXPECT_EQ(chat.sampling.seed, 9u);
  EXPECT_EQ(chat.stops, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(chat.max_tokens, 5);
  EXPECT_TRUE(chat.streams && chat.wants_usage);
  ASSERT_EQ(chat.sampling.logit_bias.size(), 1u);
  EXPECT_EQ(chat.sampling.logit_bias[0].token, 12);
}

TEST(ChatFields, HaveDocumentation) {
  const std::string page = FieldsAsMarkdown(ChatFields());
  for (const Field& field : ChatFields()) {
    EXPECT_FALSE(field.doc.empty()) << field.name;
    EXPECT_NE(page.find("`" + std::string(field.name) + "`"), std::string::npos);
  }
}

constexpr Field kSmall[] = {
    {"a", FieldKind::kInteger, FieldUse::kHonoured, 0, 0, "x"},
    {"b", FieldKind::kInteger, FieldUse::kForeign, 0, 0, "x", "1"},
    {"c", FieldKind::kInteger, FieldUse::kRefused, 0, 0, "x", "false"},
};

TEST(Fields, ForeignOnesAreRefusedUnlessNeutral) {
  for (const char* body : {R"({"b": 1})", R"({"b": 1.0})", R"({"b": null})", R"({"c": false})"}) {
    EXPECT_TRUE(ReadFields(*ParseJson(body), kSmall).ok()) << body;
  }
  for (const char* body : {R"({"b": 2})", R"({"b": "1"})", R"({"c": 0})"}) {
    const auto read = ReadFields(*ParseJson(body), kSmall);
    ASSERT_FALSE(read.ok()) << body;
    EXPECT_EQ(read.error().code, "unsupported_parameter");
  }
}

TEST(Fields, UnknownAndForeignOnesCanBeTakenOut) {
  Json body = *ParseJson(R"({"z": {}, "a": 1, "b": 2, "c": 3, "y": null})");
  EXPECT_EQ(DropUnknown(body, kSmall), (std::vector<std::string>{"z", "b", "y"}));
  EXPECT_EQ(WriteJson(body), R"({"a":1,"c":3})") << "what is refused stays to be refused";
  body = *ParseJson(R"({"b": 1})");
  EXPECT_TRUE(DropUnknown(body, kSmall).empty()) << "it asks for nothing";
  EXPECT_TRUE(DropUnknown(body, {}).empty()) << "nobody said what is known";
  Json list = JsonArray{1};
  EXPECT_TRUE(DropUnknown(list, kSmall).empty());
}

std::span<const Field> Small() { return kSmall; }
constexpr Field kNested[] = {
    {"inner", FieldKind::kObject, FieldUse::kHonoured, 0, 0, "x", {}, Small},
    {"other", FieldKind::kObject, FieldUse::kHonoured, 0, 0, "x"},
};

TEST(Fields, UnknownOnesOfObjectsWithATableCanBeTakenOut) {
  Json body = *ParseJson(R"({"inner": {"a": 1, "z": 2, "b": 3}, "other": {"z": 1}, "z": 4})");
  EXPECT_EQ(DropUnknown(body, kNested), (std::vector<std::string>{"inner.z", "inner.b", "z"}));
  EXPECT_EQ(WriteJson(body), R"({"inner":{"a":1},"other":{"z":1}})");
  body = *ParseJson(R"({"inner": [1]})");
  EXPECT_TRUE(DropUnknown(body, kNested).empty()) << "what is no object is for whoever reads it";
}

TEST(Fields, UnknownOnesAreToldWhatWasMeant) {
  const auto message = [](const char* members) {
    const auto read = Read(members);
    return read.ok() ? "" : read.error().message;
  };
  EXPECT_EQ(message(R"("max_token": 4)"),
            R"(Unknown field "max_token"; did you mean "max_tokens"?)");
  EXPECT_EQ(message(R"("temprature": 0)"),
            R"(Unknown field "temprature"; did you mean "temperature"?)");
  EXPECT_EQ(message(R"("colour_scheme": 0)"), R"(Unknown field "colour_scheme")");
  EXPECT_EQ(NearField("aa", kSmall), R"(; did you mean "a"?)");
  EXPECT_EQ(NearField("bb", std::span(kSmall).subspan(1)), "")
      << "nobody is sent to a field that is refused";
}

TEST(Fields, NamesInHeadersAreBoundedAndPlain) {
  EXPECT_EQ(NamesForHeader({}), "");
  EXPECT_EQ(NamesForHeader(std::vector<std::string>{"top_a", "x-y.z"}), "top_a, x-y.z");
  EXPECT_EQ(NamesForHeader(std::vector<std::string>{"a\r\nset-cookie: b"}), "a??set-cookie??b");
  EXPECT_EQ(NamesForHeader(std::vector<std::string>{std::string(1000, 'x')}), std::string(64, 'x'));
  EXPECT_TRUE(NamesForHeader(std::vector<std::string>(20, "f")).ends_with(", f, and 4 more"));
}

TEST(Fields, SetsOnlyWhatIsGiven) {
  constexpr Field kTable[] = {{"a", FieldKind::kNumber, FieldUse::kHonoured, 0, 0, ""},
                              {"b", FieldKind::kInteger, FieldUse::kHonoured, 0, 0, ""},
                              {"c", FieldKind::kNumber, FieldUse::kHonoured, 0, 0, ""}};
  const Json body = *ParseJson(R"({"a": 0.5, "b": 7, "c": null})");
  auto fields = ReadFields(body, kTable);
  ASSERT_TRUE(fields.ok());
  float a = 1, c = 1;
  int b = 1;
  fields->Set("a", a);
  fields->Set("b", b);
  fields->Set("c", c);
  EXPECT_EQ(a, 0.5f);
  EXPECT_EQ(b, 7);
  EXPECT_EQ(c, 1.0f) << "null is not given";
}

}  // namespace
}  // namespace hearth
