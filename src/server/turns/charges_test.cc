// SPDX-License-Identifier: Apache-2.0
#include "server/turns/charges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "testing/service_rig.h"

namespace hearth {
namespace {

using testing::Heard;
constexpr int64_t kMiB = 1 << 20;

struct Payer {
  Accounts accounts{32 * kMiB};
  HttpRequest http;
  Payer() {
    http.peer = "10.0.0.1";
    http.hold = accounts.Open(http, std::nullopt, {}).hold;
  }
  std::shared_ptr<RequestAccount> account() const { return AccountOf(http); }
};

TEST(Charges, AreTheRequestsOwn) {
  const Payer payer;
  ASSERT_NE(payer.account(), nullptr);
  EXPECT_EQ(payer.account(), payer.http.hold);
  EXPECT_EQ(AccountOf(HttpRequest()), nullptr);
}

TEST(Charges, PromptsCountForEachReply) {
  Payer payer;
  EXPECT_TRUE(ChargePrompt(payer.account().get(), 1000, 3).ok());
  EXPECT_EQ(payer.accounts.counts().total(), 1000 * 4 * 4);
  const ApiStatus refused = ChargePrompt(payer.account().get(), 5'000'000, 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().status, 429);
  EXPECT_GT(refused.error().retry_after_s, 0);
  EXPECT_TRUE(ChargePrompt(nullptr, 1 << 30, 16).ok());
}

TEST(Charges, BackgroundWorkWaitsForRoom) {
  Payer payer, nobody;
  EXPECT_TRUE(CheckBackground(payer.account().get()).ok());
  EXPECT_TRUE(CheckBackground(nullptr).ok());
  HttpRequest other;
  other.peer = "10.0.0.2";
  const auto hold = payer.accounts.Open(other, std::nullopt, {}).hold;
  payer.account()->Set(Held::kReply, 15 * kMiB);
  hold->SetReply(13 * kMiB);
  const ApiStatus refused = CheckBackground(payer.account().get());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().status, 503);
  EXPECT_GE(refused.error().retry_after_s, 1);
}

TEST(Charges, WhoLeftIsNotWorkedFor) {
  testing::StringClient client;
  EXPECT_TRUE(CheckPresent(client).ok());
  client.Vanish();
  const ApiStatus gone = CheckPresent(client);
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().status, 499);
  EXPECT_EQ(gone.error().code, "cancelled");
}

// Burns processor time for so long.
class SlowMask : public TokenMask {
 public:
  explicit SlowMask(double seconds) : seconds_(seconds) {}
  Status Fill(std::span<uint32_t> bits) override {
    num_words = bits.size();
    const double until = ThreadSeconds() + seconds_;
    while (ThreadSeconds() < until) continue;
    return {};
  }
  bool Accept(Token) override { return true; }
  bool is_finished() const override { return false; }
  std::unique_ptr<TokenMask> Clone() const override { return std::make_unique<SlowMask>(*this); }
  size_t num_words = 0;

 private:
  const double seconds_;
};

TEST(Charges, DearMasksAreKnownBeforeTheyRun) {
  SlowMask slow(0.003), quick(0);
  EXPECT_TRUE(IsDear(slow, 100));
  EXPECT_EQ(slow.num_words, 4u);
  bool is_dear = true;
  for (int i = 0; i < 5 && is_dear; ++i) is_dear = IsDear(quick, 100);  // a fault may cost one
  EXPECT_FALSE(is_dear);
}

class GoneTest : public testing::ServiceRig {};

TEST_F(GoneTest, IsNeverReadNorRun) {
  Heard heard;
  ServiceOptions options;
  options.observer = &heard;
  Start(0, options);
  const auto gone = std::make_shared<testing::StringClient>();
  gone->Vanish();
  HttpRequest request;
  request.method = "POST";
  request.path = "/v1/chat/completions";
  request.body = "this is not even JSON";
  std::get<Router::Match>(router_.Find("POST", request.path))
      .route->handler(std::move(request), gone);
  ASSERT_TRUE(gone->WaitForEnd());
  EXPECT_EQ(gone->status(), 499) << "not 400: nobody looked";
  ASSERT_EQ(heard.outcomes.size(), 1u);
  EXPECT_EQ(heard.outcomes[0].status, 499);
  const auto there = Chat(R"("max_tokens": 1)");
  ASSERT_TRUE(there->WaitForEnd());
  EXPECT_EQ(there->status(), 200);
}

TEST_F(GoneTest, PaysUntilItsReplyIsSent) {
  Accounts accounts(32 * kMiB);
  Start();
  HttpRequest request;
  request.method = "POST";
  request.path = "/v1/chat/completions";
  request.peer = "10.0.0.1";
  request.body = R"({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3000,)"
                 R"( "ignore_eos": true, "logprobs": true, "top_logprobs": 5})";
  request.hold = accounts.Open(request, std::nullopt, {}).hold;
  const std::weak_ptr<RequestHold> hold = request.hold;
  const auto client = std::make_shared<testing::StringClient>();
  std::get<Router::Match>(router_.Find("POST", request.path))
      .route->handler(std::move(request), client);
  int64_t most_prompt = 0, most_kept = 0;
  for (int i = 0; i < 20'000 && !client->is_ended(); ++i) {
    const AccountCounts counts = accounts.counts();
    most_prompt = std::max(most_prompt, counts.held_bytes[static_cast<size_t>(Held::kPrompt)]);
    most_kept = std::max(most_kept, counts.held_bytes[static_cast<size_t>(Held::kKept)]);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  ASSERT_TRUE(client->WaitForEnd());
  EXPECT_EQ(client->status(), 200) << client->bytes();
  EXPECT_GT(most_prompt, 0);
  EXPECT_GT(most_kept, 0);
  EXPECT_TRUE(service_->WaitUntilDone(std::chrono::milliseconds(5000)));
  EXPECT_EQ(accounts.counts().total(), 0);
  const AccountCounts counts = accounts.counts();
  EXPECT_GT(counts.seconds[static_cast<size_t>(Stage::kRead)], 0);
  EXPECT_GT(counts.seconds[static_cast<size_t>(Stage::kWrite)], 0);
  service_.reset();
  engine_.reset();
  EXPECT_TRUE(hold.expired());
}

TEST_F(GoneTest, EndsWhenItsRequestIsCut) {
  Accounts accounts(32 * kMiB);
  Start(/*step_us=*/500);
  HttpRequest request;
  request.method = "POST";
  request.path = "/v1/chat/completions";
  request.peer = "10.0.0.1";
  request.body = R"({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3000,)"
                 R"( "ignore_eos": true})";
  request.hold = accounts.Open(request, std::nullopt, {}).hold;
  const auto account = AccountOf(request);
  const auto client = std::make_shared<testing::StringClient>();
  std::get<Router::Match>(router_.Find("POST", request.path))
      .route->handler(std::move(request), client);
  ASSERT_TRUE(WaitUntilAdmitted(1));
  account->SetReply(20 * kMiB);
  ASSERT_TRUE(client->WaitForEnd());
  // Not 499: it is the server that had no room, and the client is told to come again.
  EXPECT_EQ(client->status(), 503);
  EXPECT_THAT(client->bytes(), ::testing::HasSubstr("out_of_memory"));
  service_.reset();
  engine_.reset();
}

}  // namespace
}  // namespace hearth
