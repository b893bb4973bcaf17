// SPDX-License-Identifier: Apache-2.0
// Ollama's routes through service, engine and masks: a backend of hashes, harmony over bytes.
#include "server/dialects/ollama/ollama_dialect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/service_rig.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::StringClient;

constexpr const char* kTools =
    R"([{"type": "function", "function": {"name": "get", "parameters": {"type": "object",
         "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["n"],
         "additionalProperties": false}}}])";

// Text, thoughts and calls of an answer that may be in lines.
struct Told {
  std::string text, thinking, done_reason;
  JsonArray calls;
  int64_t tokens = 0;
};

Told ToldBy(const std::string& bytes) {
  Told out;
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', at), bytes.size());
    const Json line = *ParseJson(bytes.substr(at, end - at));
    at = end + 1;
    const Json* message = line.Find("message");
    const Json& said = message == nullptr ? line : *message;
    const Json* text = said.Find(message == nullptr ? "response" : "content");
    if (text != nullptr) out.text += *text->string();
    if (const Json* more = said.Find("thinking")) out.thinking += *more->string();
    if (const Json* calls = said.Find("tool_calls")) {
      for (const Json& call : *calls->array()) out.calls.push_back(*call.Find("function"));
    }
    if (const Json* why = line.Find("done_reason")) out.done_reason = *why->string();
    if (const Json* count = line.Find("eval_count")) out.tokens = *count->integer();
  }
  return out;
}

class OllamaDialectTest : public testing::ServiceRig {
 protected:
  // The same request whole and as a stream; what both tell.
  Told BothWays(const std::string& path, const std::string& members) {
    const auto whole = Post(path, "{" + members + R"(, "stream": false})");
    const auto stream = Post(path, "{" + members + "}");
    EXPECT_TRUE(whole->WaitForEnd() && stream->WaitForEnd());
    EXPECT_EQ(whole->status(), 200) << whole->bytes();
    EXPECT_EQ(stream->status(), 200) << stream->bytes();
    EXPECT_EQ(stream->header("content-type"), "application/x-ndjson");
    EXPECT_EQ(whole->header("content-type"), "application/json");
    const Told one = ToldBy(whole->bytes()), other = ToldBy(stream->bytes());
    EXPECT_EQ(one.text, other.text);
    EXPECT_EQ(one.thinking, other.thinking);
    EXPECT_EQ(Json(one.calls), Json(other.calls));
    EXPECT_EQ(one.done_reason, other.done_reason);
    EXPECT_EQ(one.tokens, other.tokens);
    return one;
  }
  std::string Refused(const std::string& path, const std::string& body, int status) {
    const auto client = Post(path, body);
    EXPECT_TRUE(client->WaitForEnd());
    EXPECT_EQ(client->status(), status) << client->bytes();
    EXPECT_EQ(client->header("content-type"), "application/json");
    const Json error = *ParseJson(client->bytes());
    EXPECT_EQ(error.object()->size(), 1u);
    return *error.Find("error")->string();
  }
};

TEST_F(OllamaDialectTest, StreamsWhatItTellsWhole) {
  Start();
  int thoughts = 0, calls = 0;
  for (int seed = 0; seed < 16; ++seed) {
    const std::string options = Printf(
        R"("options": {"seed": %d, "num_predict": %d, "stop": ["ab", "e"]})", seed, 8 + 9 * seed);
    const std::string hello =
        Printf(R"("model": "bytes", "messages": [{"role": "user", "content": "hi %d"}], )", seed);
    const Told free = BothWays("/api/chat", hello + options);
    thoughts += free.thinking.empty() ? 0 : 1;
    EXPECT_GT(free.tokens, 0);
    const Told called =
        BothWays("/api/chat", hello + options + R"(, "think": false, "tools": )" + kTools);
    EXPECT_EQ(called.thinking, "");
    for (const Json& call : called.calls) {
      ++calls;
      EXPECT_TRUE(call.Find("arguments")->Find("n") != nullptr) << WriteJson(call);
    }
    BothWays("/api/generate", R"("model": "bytes:latest", "prompt": "hi", )" + options);
    BothWays("/api/generate", R"("model": "bytes", "prompt": "hi", "raw": true, )" + options);
  }
  EXPECT_GT(thoughts, 0);
  EXPECT_GT(calls, 0);
  EXPECT_TRUE(WaitUntilIdle());
}

TEST_F(OllamaDialectTest, HoldsAnswersToTheirFormat) {
  Start();
  int whole = 0;
  for (int seed = 0; seed < 8; ++seed) {
    const Told told = BothWays(
        "/api/chat", Printf(R"("model": "bytes", "messages": [{"role": "user", "content": "hi"}],
                  "think": false, "options": {"seed": %d, "num_predict": 60},
                  "format": {"type": "integer", "minimum": 10, "maximum": 99})",
                            seed));
    if (told.done_reason != "stop") continue;
    ++whole;
    const auto number = ParseJson(told.text)->integer();
    ASSERT_TRUE(number.has_value()) << told.text;
    EXPECT_TRUE(*number >= 10 && *number <= 99) << told.text;
  }
  EXPECT_GT(whole, 0);
}

// Clients parse every line: a comment or an empty one would end them. Signs of life are pieces
// without text.
TEST_F(OllamaDialectTest, StreamsNothingButLinesOfJson) {
  ServiceOptions options;
  options.ping_every = std::chrono::milliseconds(1);
  Start(/*step_us=*/20'000, options);
  int signs = 0;
  for (int seed = 0; seed < 10 && signs == 0; ++seed) {
    const auto client =
        Post("/api/chat", Printf(R"({"model": "bytes", "options": {"num_predict": 60, "seed": %d},
                                "messages": [{"role": "user", "content": "hi"}]})",
                                 seed));
    ASSERT_TRUE(client->WaitForEnd());
    const std::string& bytes = client->bytes();
    for (size_t at = 0; at < bytes.size();) {
      const size_t end = bytes.find('\n', at);
      ASSERT_NE(end, std::string::npos);
      Result<Json> line = ParseJson(bytes.substr(at, end - at));
      ASSERT_TRUE(line.ok()) << bytes.substr(at, end - at);
      const std::string said = WriteJson(*line->Find("message"));
      const bool is_last = *line->Find("done") == Json(true);
      signs += !is_last && said == R"({"role":"assistant","content":""})" ? 1 : 0;
      at = end + 1;
    }
  }
  EXPECT_GT(signs, 0);
}

TEST_F(OllamaDialectTest, AnswersAnEmptyRequestAtOnce) {
  Start();
  for (const auto& [path, member] :
       {std::pair("/api/chat", "message"), {"/api/generate", "response"}}) {
    const auto client = Post(path, R"({"model": "bytes:latest", "keep_alive": 0})");
    ASSERT_TRUE(client->WaitForEnd());
    EXPECT_EQ(client->status(), 200);
    const Json json = *ParseJson(client->bytes());
    EXPECT_NE(json.Find(member), nullptr);
    EXPECT_EQ(*json.Find("done_reason")->string(), "load");
  }
  EXPECT_EQ(engine_->snapshot()->num_admitted, 0u);
  EXPECT_THAT(Refused("/api/generate", R"({"model": "other"})", 404), HasSubstr("not found"));
}

TEST_F(OllamaDialectTest, TellsOfTheModel) {
  Start();
  const auto tags = Get("/api/tags");
  ASSERT_TRUE(tags->WaitForEnd());
  const Json listed = (*ParseJson(tags->bytes())->Find("models")->array())[0];
  EXPECT_EQ(*listed.Find("name")->string(), "bytes:latest");
  EXPECT_EQ(*listed.Find("model")->string(), "bytes:latest");
  EXPECT_EQ(*listed.Find("details")->Find("parameter_size")->string(), "134.52M");
  EXPECT_EQ(*listed.Find("modified_at")->string(), "1970-01-01T00:00:00.000000Z");
  const auto ps = Get("/api/ps");
  ASSERT_TRUE(ps->WaitForEnd());
  const Json loaded = (*ParseJson(ps->bytes())->Find("models")->array())[0];
  EXPECT_EQ(*loaded.Find("context_length"), Json(4096));
  EXPECT_EQ(*loaded.Find("size_vram"), Json(0));
  EXPECT_THAT(*loaded.Find("expires_at")->string(), StartsWith("9999-"));
  const auto version = Get("/api/version");
  ASSERT_TRUE(version->WaitForEnd());
  EXPECT_EQ(version->bytes(), R"({"version":"0.13.0","hearth":"1.2.3"})");
}

TEST_F(OllamaDialectTest, ShowsTheModel) {
  Start();
  for (const char* body :
       {R"({"model": "bytes"})", R"({"name": "bytes:latest", "verbose": true})"}) {
    const auto client = Post("/api/show", body);
    ASSERT_TRUE(client->WaitForEnd());
    ASSERT_EQ(client->status(), 200) << client->bytes();
    const Json shown = *ParseJson(client->bytes());
    EXPECT_EQ(WriteJson(*shown.Find("capabilities")), R"(["completion","tools","thinking"])");
    EXPECT_EQ(*shown.Find("model_info")->Find("hash.context_length"), Json(4096));
    EXPECT_EQ(*shown.Find("model_info")->Find("general.architecture")->string(), "hash");
    EXPECT_EQ(*shown.Find("parameters")->string(), "num_ctx 4096");
  }
  EXPECT_THAT(Refused("/api/show", R"({"model": "llama3.2"})", 404),
              HasSubstr(R"(model "llama3.2" not found; available: bytes)"));
  EXPECT_THAT(Refused("/api/show", "{}", 400), HasSubstr("model: is missing"));
  EXPECT_THAT(Refused("/api/show", R"({"model": "bytes", "system": "x"})", 400),
              HasSubstr("system: not supported"));
}

TEST_F(OllamaDialectTest, PullsOnlyWhatIsThere) {
  Start();
  const auto client = Post("/api/pull", R"({"name": "bytes", "stream": true})");
  ASSERT_TRUE(client->WaitForEnd());
  EXPECT_EQ(client->status(), 200);
  EXPECT_EQ(client->bytes(), R"({"status":"success"})");
  EXPECT_THAT(Refused("/api/pull", R"({"model": "llama3.2"})", 501), HasSubstr("hearth pull"));
  for (const char* path : {"/api/create", "/api/copy", "/api/push", "/api/blobs/sha256:0"}) {
    EXPECT_THAT(Refused(path, R"({"model": "x"})", 501), HasSubstr("not implemented")) << path;
  }
}

TEST_F(OllamaDialectTest, SaysWhatItIgnored) {
  Start();
  const auto client = Post("/api/chat", R"({"model": "bytes", "think": "low",
      "options": {"num_predict": 3, "num_gpu": 1, "num_ctx": 100},
      "messages": [{"role": "user", "content": "hi"}]})");
  ASSERT_TRUE(client->WaitForEnd());
  EXPECT_EQ(client->header("x-hearth-ignored-fields"), "options.num_ctx, options.num_gpu");
}

TEST_F(OllamaDialectTest, IgnoresUnknownOptionsWhereItIsTold) {
  ServiceOptions options;
  options.unknown_fields = UnknownFields::kWarn;
  Start(0, options);
  const auto client = Post("/api/chat", R"({"model": "bytes", "colour": 1,
      "options": {"num_predict": 3, "temprature": 1, "num_gpu": 1},
      "messages": [{"role": "user", "content": "hi"}]})");
  ASSERT_TRUE(client->WaitForEnd());
  EXPECT_EQ(client->status(), 200) << client->bytes();
  EXPECT_EQ(client->header("x-hearth-ignored-fields"),
            "options.temprature, colour, options.num_gpu");
}

TEST_F(OllamaDialectTest, ContinuesALastMessageOfTheAssistants) {
  Start();
  const char* members = R"("model": "bytes", "messages": [{"role": "user", "content": "hi"},
      {"role": "assistant", "content": "I am"}])";
  const Told said =
      BothWays("/api/chat", Printf(R"(%s, "options": {"num_predict": 6, "seed": 1})", members));
  const auto other =
      Post("/v1/chat/completions", Printf(R"({%s, "max_tokens": 6, "seed": 1})", members));
  ASSERT_TRUE(other->WaitForEnd());
  ASSERT_EQ(other->status(), 200) << other->bytes();
  const Json reply = *ParseJson(other->bytes());
  const Json& choice = (*reply.Find("choices")->array())[0];
  EXPECT_EQ(said.text, *choice.Find("message")->Find("content")->string());
  EXPECT_FALSE(said.text.empty());
  EXPECT_EQ(said.thinking, "") << "an answer that has begun has no thoughts any more";
  EXPECT_THAT(Refused("/api/chat", R"({"model": "bytes", "messages": [
                  {"role": "user", "content": "hi"},
                  {"role": "assistant", "content": "", "thinking": "hm"}]})",
                      400),
              HasSubstr("has no text to continue"));
}

TEST_F(OllamaDialectTest, RefusesInItsOwnForm) {
  Start();
  const char* hello = R"("messages": [{"role": "user", "content": "hi"}])";
  EXPECT_THAT(Refused("/api/chat", "[", 400), HasSubstr("invalid request body"));
  EXPECT_THAT(Refused("/api/chat", Printf(R"({"model": "nobody", %s})", hello), 404),
              HasSubstr("not found"));
  EXPECT_THAT(Refused("/api/chat", Printf(R"({"model": "bytes", %s, "colour": 1})", hello), 400),
              HasSubstr("Unknown field"));
  EXPECT_THAT(Refused("/api/generate",
                      R"({"model": "bytes", "prompt": ")" + std::string(5000, 'a') + "\"}", 400),
              HasSubstr("maximum context length is 4096 tokens"));
  EXPECT_THAT(Refused("/api/embed", R"({"model": "bytes", "input": ""})", 400),
              HasSubstr("must not be empty"));
}

// The backend of hashes pools nothing; tests/clients have real embeddings.
TEST_F(OllamaDialectTest, EmbedsNothingAtOnce) {
  Start();
  const auto none = Post("/api/embed", R"({"model": "bytes", "input": []})");
  const auto old = Post("/api/embeddings", R"({"model": "bytes", "prompt": ""})");
  ASSERT_TRUE(none->WaitForEnd() && old->WaitForEnd());
  EXPECT_EQ(none->bytes(), R"({"model":"bytes","embeddings":[]})");
  EXPECT_EQ(old->bytes(), R"({"embedding":[]})");
  EXPECT_THAT(Refused("/api/embed", R"({"model": "bytes", "input": "x"})", 400),
              HasSubstr("pool hidden states"));
}

TEST(IsSameModel, ForgivesTheTagThatClientsAdd) {
  EXPECT_TRUE(IsSameModel("m", "m"));
  EXPECT_TRUE(IsSameModel("m:latest", "m"));
  EXPECT_TRUE(IsSameModel("m", "m:latest"));
  EXPECT_FALSE(IsSameModel("m:8b", "m"));
  EXPECT_FALSE(IsSameModel("m2", "m"));
  EXPECT_FALSE(IsSameModel("", "m"));
}

}  // namespace
}  // namespace hearth
