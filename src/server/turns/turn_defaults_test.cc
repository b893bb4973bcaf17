// SPDX-License-Identifier: Apache-2.0
// What a request leaves open is the model's to say, in every dialect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/service_rig.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;

class TurnDefaultsTest : public testing::ServiceRig {
 protected:
  // A model whose publisher wants the most likely token: then seeds have no effect.
  void StartGreedy() {
    adjust_ = [](ServedModel& model) {
      model.sampling.temperature = 0;
      model.sampling.top_p = 0.75;
      model.sampling.source = "generation_config.json";
    };
    Start();
  }
  // The reply of a request without its ids and times; `members` follow a prompt.
  std::string Said(const std::string& path, const std::string& members) {
    const bool is_responses = path == "/v1/responses";
    const std::string prompt = path == "/v1/completions" ? R"("prompt": "hi")"
                               : is_responses
                                   ? R"("input": "hi", "store": false)"
                                   : R"("messages": [{"role": "user", "content": "hi"}])";
    const char* bound = is_responses ? "max_output_tokens" : "max_tokens";
    const auto client = Post(path, "{" + prompt + Printf(R"(, "%s": 40, )", bound) + members + "}");
    EXPECT_TRUE(client->WaitForEnd());
    EXPECT_EQ(client->status(), 200) << client->bytes();
    const Json json = *ParseJson(client->bytes());
    const Json* said = json.Find("choices");
    if (said == nullptr) said = json.Find("content");
    if (said != nullptr) return WriteJson(*said);
    std::string texts;  // items have ids of their own
    for (const Json& item : *json.Find("output")->array())
      texts += WriteJson(*item.Find("content"));
    return texts;
  }
};

constexpr const char* kPaths[] = {"/v1/chat/completions", "/v1/completions", "/v1/responses",
                                  "/v1/messages"};

TEST_F(TurnDefaultsTest, TheModelsOwnValueIsUsedWhereNoneIsGiven) {
  StartGreedy();
  for (const char* path : kPaths) {
    EXPECT_EQ(Said(path, R"("seed": 1)"), Said(path, R"("seed": 2)")) << path;
    EXPECT_NE(Said(path, R"("seed": 1, "temperature": 1)"),
              Said(path, R"("seed": 2, "temperature": 1)"))
        << path << ": a field of the request wins";
  }
}

TEST_F(TurnDefaultsTest, WithoutRecommendationTheTemperatureIsOne) {
  Start();
  for (const char* path : kPaths) {
    EXPECT_EQ(Said(path, R"("seed": 1)"),
              Said(path, R"("seed": 1, "temperature": 1, "top_p": 1, "top_k": 0)"))
        << path;
    EXPECT_NE(Said(path, R"("seed": 1)"), Said(path, R"("seed": 2)")) << path;
  }
}

TEST_F(TurnDefaultsTest, AResponseTellsWhatItWasSampledWith) {
  StartGreedy();
  const auto open = Post("/v1/responses", R"({"input": "hi", "max_output_tokens": 2})");
  ASSERT_TRUE(open->WaitForEnd());
  EXPECT_THAT(open->bytes(), HasSubstr(R"("temperature":0)"));
  EXPECT_THAT(open->bytes(), HasSubstr(R"("top_p":0.75)"));
  const auto given =
      Post("/v1/responses", R"({"input": "hi", "max_output_tokens": 2, "temperature": 0.5})");
  ASSERT_TRUE(given->WaitForEnd());
  EXPECT_THAT(given->bytes(), HasSubstr(R"("temperature":0.5)"));
}

TEST_F(TurnDefaultsTest, TheModelsCardShowsThem) {
  StartGreedy();
  auto client = std::make_shared<testing::StringClient>();
  HttpRequest request;
  request.path_captures = {"bytes"};
  std::get<Router::Match>(router_.Find("GET", "/v1/models/bytes")).route->handler(request, client);
  EXPECT_THAT(client->bytes(),
              HasSubstr(R"("default_sampling":{"temperature":0.0,"top_p":0.75,"top_k":0,)"));
  EXPECT_THAT(client->bytes(), HasSubstr(R"("source":"generation_config.json")"));
}

}  // namespace
}  // namespace hearth
