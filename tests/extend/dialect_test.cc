// SPDX-License-Identifier: Apache-2.0
// An API that the server has never heard of, plugged in beside its own: read, run by the engine,
// written as a stream and as a whole, refused in its own words, named in what observers are told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "http/http_server.h"
#include "server/access/guard.h"
#include "server/access/keys.h"
#include "server/all_dialects.h"
#include "server/api_docs.h"
#include "server/api_router.h"
#include "testing/service_rig.h"
#include "testing/socket_client.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;
using enum FieldKind;
using enum FieldUse;

constexpr Field kFields[] = {
    {"length", kInteger, kHonoured, 1, 64, "tokens of the tale"},
    {"opening", kString, kHonoured, 0, 0, "how it begins"},
    {"read_aloud", kBoolean, kHonoured, 0, 0, "piece by piece"},
};

// {"tale": "..."}; read aloud, a line of JSON for each piece and one for the end.
class TaleWriter final : public ReplyWriter {
 public:
  explicit TaleWriter(std::string moral) : moral_(std::move(moral)) {}
  std::string Begin() override { return ""; }
  std::string Add(int, const Delta& delta) override {
    tale_ += delta.text;
    return AsEvent(JsonObject{{"piece", delta.text}});
  }
  std::string EndChoice(int, const ChoiceEnd&) override { return ""; }
  std::string End(const TurnUsage& usage) override {
    return AsEvent(JsonObject{{"moral", moral_}, {"tokens", usage.completion_tokens}});
  }
  std::string Fail(const ApiError& error) override {
    return AsEvent(JsonObject{{"alas", error.message}});
  }
  std::string Whole(const TurnUsage& usage) override {
    return WriteJson(
        JsonObject{{"tale", tale_}, {"moral", moral_}, {"tokens", usage.completion_tokens}});
  }

 private:
  const std::string moral_;
  std::string tale_;
};

class TaleDialect final : public Dialect {
 public:
  std::string name() const override { return "tale"; }
  std::vector<DialectRoute> routes() const override {
    const auto count = [](const TurnService&, const ServedModel& model, const Json& body,
                          const HttpRequest&) -> ApiResult<Json> {
      HEARTH_ASSIGN(const Fields fields, ReadFields(body, kFields));
      const std::string opening = fields.text("opening").value_or("");
      const auto tokens = PlainTokens(*model.tokenizer, opening, true);
      return Json(JsonObject{{"tokens", static_cast<int64_t>(tokens.size())}});
    };
    return {{{"POST", "/tales", Auth::kKey, "Tells a tale", kFields}},
            {{"POST", "/tales/length", Auth::kKey, "How long its opening is", kFields},
             {},
             {},
             false,
             count}};
  }
  ApiResult<DialectTurn> Read(const Json& body, const HttpRequest& http) const override {
    HEARTH_ASSIGN(const Fields fields, ReadFields(body, kFields));
    const auto opening = fields.text("opening");
    if (!opening) return BadField("opening", "is missing");
    DialectTurn out;
    out.turn.prompt_field = "opening";
    out.turn.plain_prompts = {*opening};
    out.turn.max_tokens = static_cast<int>(fields.integer("length").value_or(8));
    out.turn.streams = fields.flag("read_aloud", false);
    out.turn.has_seed = true;
    out.write = [moral = std::string(http.header("x-moral"))](const TurnRequest&,
                                                              const ReplyFacts&) {
      return std::make_unique<TaleWriter>(moral);
    };
    return out;
  }
  std::string DescribeError(const ApiError& error) const override {
    return WriteJson(JsonObject{{"alas", error.message}});
  }
};

struct Answer {
  std::string status, body;
};

class ExtendDialectTest : public testing::ServiceRig {
 protected:
  void SetUp() override {
    ServiceOptions options;
    options.observer = &heard_;
    Start(/*step_us=*/0, options);
    const auto made = *KeyRing::Make("anna", false);
    key_ = made.key;
    keys_ = *KeyRing::Parse("{\"keys\": [" + made.entry + "]}");
    Dialects dialects = AllDialects(*responses_);
    dialects.push_back(std::make_shared<TaleDialect>());
    HttpOptions http;
    http.authorize = [this](HttpRequest& request, Auth auth) {
      return Guard(request, auth, {.needs_key = true}, &keys_);
    };
    http.describe_refusal = [dialects](const HttpRefusal& refusal) {
      ApiError error;
      error.message = refusal.message;
      return DescribeErrorAt(dialects, refusal.path, error);
    };
    auto server =
        HttpServer::Listen(http, ApiRouter({*engine_, metrics_, *service_, std::move(dialects)}));
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = *std::move(server);
  }
  void TearDown() override { server_.reset(); }

  Answer Ask(const std::string& path, const std::string& body, bool with_key = true) {
    testing::SocketClient client(server_->port());
    client.Send("POST " + path + " HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n" +
                (with_key ? "x-api-key: " + key_ + "\r\n" : "") +
                "x-moral: patience\r\ncontent-type: application/json\r\ncontent-length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
    const std::string got = client.ReadAll();
    const size_t end = got.find("\r\n\r\n");
    if (end == std::string::npos) return {"cut", got};
    return {got.substr(9, 3), got.substr(end + 4)};
  }

  testing::Heard heard_;
  ServerMetrics metrics_{{"1", "scalar", "exact", "bytes", 4096}};
  KeyRing keys_;
  std::string key_;
  std::unique_ptr<HttpServer> server_;
};

// The pieces of a stream, joined.
std::string Pieces(const std::string& bytes) {
  std::string out;
  for (size_t at = 0; (at = bytes.find("data: {", at)) != std::string::npos; ++at) {
    const size_t end = bytes.find("\n\n", at);
    const Json event = *ParseJson(bytes.substr(at + 6, end - at - 6));
    if (const Json* piece = event.Find("piece")) out += *piece->string();
  }
  return out;
}

TEST_F(ExtendDialectTest, TellsAWholeAndAStreamAlike) {
  const std::string request = R"({"opening": "Once upon", "length": 20)";
  const Answer whole = Ask("/tales", request + "}");
  ASSERT_EQ(whole.status, "200") << whole.body;
  const Json json = *ParseJson(whole.body);
  EXPECT_EQ(*json.Find("moral")->string(), "patience");
  EXPECT_EQ(*json.Find("tokens"), Json(20));
  EXPECT_FALSE(json.Find("tale")->string()->empty());
  const Answer stream = Ask("/tales", request + R"(, "read_aloud": true})");
  ASSERT_EQ(stream.status, "200") << stream.body;
  EXPECT_EQ(Pieces(stream.body), *json.Find("tale")->string());
  EXPECT_THAT(stream.body, HasSubstr(R"({"moral":"patience","tokens":20})"));
}

TEST_F(ExtendDialectTest, AnswersWithoutATurn) {
  const Answer answer = Ask("/tales/length", R"({"opening": "four"})");
  EXPECT_EQ(answer.status, "200");
  EXPECT_EQ(answer.body, R"({"tokens":4})");
}

TEST_F(ExtendDialectTest, RefusesInItsOwnWords) {
  const struct {
    const char *status, *body, *message;
  } cases[] = {
      {"400", R"({"opening": "a", "colour": 1})", R"({"alas":"Unknown field \"colour\""})"},
      {"400", R"({"length": 3})", R"({"alas":"opening: is missing"})"},
      {"400", R"({"opening": "a", "length": 65})", R"({"alas":"length: its value must be)"},
      {"400", "[", R"({"alas":"invalid request body: )"},
  };
  for (const auto& each : cases) {
    const Answer answer = Ask("/tales", each.body);
    EXPECT_EQ(answer.status, each.status) << answer.body;
    EXPECT_THAT(answer.body, ::testing::StartsWith(each.message));
  }
  const std::string much = R"({"opening": ")" + std::string(5000, 'a') + "\"}";
  EXPECT_THAT(Ask("/tales", much).body, HasSubstr("maximum context length is 4096 tokens"));
  // Before anybody has read it.
  const Answer stranger = Ask("/tales", "{}", false);
  EXPECT_EQ(stranger.status, "401");
  EXPECT_THAT(stranger.body, ::testing::StartsWith(R"({"alas":)"));
  const Answer lost = Ask("/tales/of/old", "{}");
  EXPECT_EQ(lost.status, "404");
  EXPECT_THAT(lost.body, ::testing::StartsWith(R"({"alas":)"));
}

TEST_F(ExtendDialectTest, StandsBesideTheOthers) {
  ASSERT_EQ(Ask("/tales", R"({"opening": "a"})").status, "200");
  const Answer chat =
      Ask("/v1/chat/completions",
          R"({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3, "seed": 1})");
  EXPECT_EQ(chat.status, "200") << chat.body;
  EXPECT_THAT(Ask("/v1/chat/completions", "{").body, ::testing::StartsWith(R"({"error":)"));
  // Nothing to wait for: who has the answer finds it counted.
  std::string dialects;
  const std::lock_guard lock(heard_.mu);
  for (const TurnOutcome& outcome : heard_.outcomes) {
    EXPECT_EQ(outcome.key_id, "anna");
    dialects += outcome.dialect + " ";
  }
  EXPECT_EQ(dialects, "tale chat chat ");
}

}  // namespace
}  // namespace hearth
