// SPDX-License-Identifier: Apache-2.0
#include "server/turns/one_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/service_rig.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;

class OneModelTest : public testing::ServiceRig {};

TEST_F(OneModelTest, IsAlwaysThereAndStays) {
  Start();
  const auto load = Post("/models/load", R"({"model": "bytes", "pin": false, "keep_alive": 0})");
  ASSERT_TRUE(load->WaitForEnd());
  EXPECT_EQ(load->bytes(), R"({"model":"bytes","state":"loaded","pinned":false})");
  const auto unload = Post("/models/unload", R"({"model": "bytes"})");
  ASSERT_TRUE(unload->WaitForEnd());
  EXPECT_EQ(unload->status(), 409);
  EXPECT_THAT(unload->bytes(), HasSubstr("stays loaded"));
  EXPECT_EQ(Post("/models/unload", R"({"model": "other"})")->WaitForEnd(), true);
  EXPECT_THAT(Get("/v1/models")->bytes(), ::testing::Not(HasSubstr("state")));
}

TEST_F(OneModelTest, LoadingAsksForWhatItKnows) {
  Start();
  for (const auto& [body, said] :
       {std::pair(R"({"pin": true})", "model: is missing"),
        {R"({"model": "other"})", "available: bytes"},
        {R"({"model": "bytes", "keep_alive": "soon"})", "keep_alive: must be a number"},
        {R"({"model": "bytes", "pni": true})", "pni"}}) {
    const auto client = Post("/models/load", body);
    ASSERT_TRUE(client->WaitForEnd());
    EXPECT_THAT(client->bytes(), HasSubstr(said));
    EXPECT_GE(client->status(), 400);
  }
}

TEST(Listings, AreFoundByEveryName) {
  std::vector<ModelListing> all(2);
  all[0].name = "a";
  all[1].name = "b";
  all[1].aliases = {"best"};
  EXPECT_EQ(FindListing(all, "best:latest"), &all[1]);
  EXPECT_EQ(FindListing(all, "a"), &all[0]);
  EXPECT_EQ(FindListing(all, "c"), nullptr);
  all[1].state = "loaded";
  all[1].expires_in_s = 2.5;
  all[1].error = "once";
  EXPECT_EQ(WriteJson(ListingAsJson(all[1])),
            R"({"model":"b","state":"loaded","pinned":false,"expires_in_s":2.5,"error":"once"})");
}

}  // namespace
}  // namespace hearth
