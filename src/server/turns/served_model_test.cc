// SPDX-License-Identifier: Apache-2.0
#include "server/turns/served_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/service_rig.h"

namespace hearth {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

ServedModel Named(std::vector<std::string> aliases) {
  ServedModel model;
  model.name = "smollm2";
  model.aliases = std::move(aliases);
  return model;
}

TEST(ServedModel, IsKnownByEachOfItsNames) {
  const ServedModel model = Named({"gpt-4o", "small"});
  for (const char* name : {"", "smollm2", "gpt-4o", "small"}) {
    EXPECT_TRUE(CheckModelName(model, name).ok()) << name;
  }
  for (const char* name : {"gpt-4", "*", "SmolLM2"}) {
    const ApiStatus status = CheckModelName(model, name);
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().status, 404);
    EXPECT_EQ(status.error().code, "model_not_found");
    EXPECT_EQ(status.error().param, "model");
  }
}

TEST(ServedModel, MayTakeAnyName) {
  ServedModel model = Named({});
  EXPECT_FALSE(CheckModelName(model, "gpt-4").ok());
  model.takes_any_name = true;
  EXPECT_TRUE(CheckModelName(model, "gpt-4").ok());
}

TEST(ServedModel, ListsTheNearestNamesFirst) {
  const ServedModel model = Named({"gpt-4o", "gpt-4o-mini", "claude", "llama", "qwen", "phi"});
  EXPECT_THAT(CheckModelName(model, "GPT-4o-min").error().message,
              HasSubstr("available: gpt-4o-mini, gpt-4o, "));
  EXPECT_THAT(CheckModelName(model, "SmolLM2").error().message, HasSubstr("available: smollm2, "));
  EXPECT_THAT(CheckModelName(model, "x").error().message, EndsWith(" and 2 more"));
  EXPECT_LT(CheckModelName(model, std::string(256, 'x')).error().message.size(), 250u);
}

TEST(ServedModel, HasEachNameOnce) {
  EXPECT_EQ(NamesOf(Named({"a", "smollm2", "a"})), (std::vector<std::string>{"smollm2", "a"}));
}

TEST(ServedModel, NamesArePrintableAndShort) {
  EXPECT_TRUE(CheckServedName("gpt-4o").ok());
  EXPECT_TRUE(CheckServedName("org/model:tag").ok());
  EXPECT_FALSE(CheckServedName("").ok());
  EXPECT_FALSE(CheckServedName("a\nb").ok());
  EXPECT_FALSE(CheckServedName(std::string(257, 'x')).ok());
}

class NamesTest : public testing::ServiceRig {
 protected:
  void SetUp() override {
    adjust_ = [](ServedModel& model) { model.aliases = {"gpt-4o"}; };
    Start();
  }
  std::shared_ptr<testing::StringClient> Get(const std::string& path, const std::string& id) {
    auto client = std::make_shared<testing::StringClient>();
    HttpRequest request;
    request.path_captures = {id};
    std::get<Router::Match>(router_.Find("GET", path)).route->handler(request, client);
    return client;
  }
};

TEST_F(NamesTest, AReplyNamesTheModelByItsOwnName) {
  const auto client = Chat(R"("model": "gpt-4o", "max_tokens": 1)");
  ASSERT_TRUE(client->WaitForEnd());
  EXPECT_EQ(client->status(), 200);
  EXPECT_THAT(client->bytes(), HasSubstr(R"("model":"bytes")"));
  const auto other = Chat(R"("model": "gpt-4", "max_tokens": 1)");
  ASSERT_TRUE(other->WaitForEnd());
  EXPECT_EQ(other->status(), 404);
  EXPECT_THAT(other->bytes(), HasSubstr("available: gpt-4o, bytes"));
}

TEST_F(NamesTest, AllAreListed) {
  const Json list = *ParseJson(Get("/v1/models", "")->bytes());
  const JsonArray& cards = *list.Find("data")->array();
  ASSERT_EQ(cards.size(), 2u);
  EXPECT_EQ(*cards[0].Find("id"), Json("bytes"));
  EXPECT_EQ(*cards[1].Find("id"), Json("gpt-4o"));
  EXPECT_EQ(*cards[1].Find("root"), Json("bytes"));
  EXPECT_THAT(Get("/v1/models/gpt-4o", "gpt-4o")->bytes(), HasSubstr(R"("id":"gpt-4o")"));
  EXPECT_EQ(Get("/v1/models/gpt-4", "gpt-4")->status(), 404);
}

}  // namespace
}  // namespace hearth
