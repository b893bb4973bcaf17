// SPDX-License-Identifier: Apache-2.0
#include "server/turns/model_wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

#include "testing/service_rig.h"

namespace hearth {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// Says nothing but how it fails.
class PlainWriter final : public ReplyWriter {
 public:
  explicit PlainWriter(const char* type) : type_(type) {}
  std::string Begin() override { return ""; }
  std::string Add(int, const Delta&) override { return ""; }
  std::string EndChoice(int, const ChoiceEnd&) override { return ""; }
  std::string End(const TurnUsage&) override { return ""; }
  std::string Fail(const ApiError& error) override { return "failed: " + error.message; }
  std::string Whole(const TurnUsage&) override { return ""; }
  const char* stream_type() const override { return type_; }

 private:
  const char* type_;
};

class ModelWaitTest : public ::testing::Test {
 protected:
  ModelWait Make(const char* type) {
    ModelWait::Form form{"m", {{"x-request-id", "1"}}};
    if (type != nullptr) form.writer = [type] { return std::make_unique<PlainWriter>(type); };
    return ModelWait(client_, std::move(form), now_);
  }
  const ModelWait::Time now_ = std::chrono::steady_clock::now();
  const std::shared_ptr<testing::StringClient> client_ = std::make_shared<testing::StringClient>();
};

TEST_F(ModelWaitTest, TheHeadComesAfterASecondAndCommentsAfterThat) {
  ModelWait wait = Make(kServerSentEvents);
  wait.Ping(now_ + milliseconds(900));
  EXPECT_EQ(client_->status(), 0) << "what is refused soon has a status of its own";
  EXPECT_FALSE(wait.Fail({}));
  wait.Ping(now_ + milliseconds(1500));
  EXPECT_EQ(client_->status(), 200);
  EXPECT_EQ(client_->header("content-type"), kServerSentEvents);
  EXPECT_EQ(client_->header("x-request-id"), "1");
  wait.Ping(now_ + milliseconds(2000));
  EXPECT_EQ(client_->bytes(), ": loading m, 1 s\n\n");
  wait.Ping(now_ + milliseconds(7000));
  EXPECT_EQ(client_->bytes(), ": loading m, 1 s\n\n: loading m, 7 s\n\n");
  // The exchange that follows sends no second head.
  wait.reply()->StartStream(500, {});
  EXPECT_EQ(client_->status(), 200);
  ApiError error;
  error.message = "no";
  EXPECT_TRUE(wait.Fail(error));
  EXPECT_THAT(client_->bytes(), HasSubstr("failed: no"));
  EXPECT_TRUE(client_->WaitForEnd());
}

TEST_F(ModelWaitTest, WholeAnswersAndLinesOfJsonStaySilent) {
  for (const char* type : {"application/x-ndjson", static_cast<const char*>(nullptr)}) {
    ModelWait wait = Make(type);
    wait.Ping(now_ + milliseconds(5000));
    wait.Ping(now_ + milliseconds(50000));
    EXPECT_EQ(client_->status(), 0);
    EXPECT_EQ(client_->bytes(), "");
    EXPECT_FALSE(wait.Fail({}));
    EXPECT_EQ(wait.reply(), client_);
  }
}

TEST_F(ModelWaitTest, OneThatGoesOnWithoutItsClientBeginsAtOnce) {
  ModelWait wait = Make(kServerSentEvents);
  wait.Queue();
  EXPECT_EQ(client_->status(), 200);
  EXPECT_EQ(client_->header("x-request-id"), "1");
  wait.reply()->StartStream(500, {});
  EXPECT_EQ(client_->status(), 200) << "no second head";
  EXPECT_TRUE(wait.Fail({})) << "whatever becomes of it is told in its stream";
}

TEST_F(ModelWaitTest, ATimeLimitRuns) {
  EXPECT_EQ(Make(nullptr).LeftUs(now_ + milliseconds(1'000'000)), 0) << "there is none";
  const ModelWait wait(client_, {"m", {}, milliseconds(1), {}, 2000}, now_);
  EXPECT_EQ(wait.LeftUs(now_), 2000);
  EXPECT_EQ(wait.LeftUs(now_ + std::chrono::microseconds(1999)), 1);
  EXPECT_EQ(wait.LeftUs(now_ + milliseconds(2)), std::nullopt);
}

TEST_F(ModelWaitTest, OnlyOneTakesIt) {
  ModelWait wait = Make(kServerSentEvents);
  EXPECT_FALSE(wait.is_taken());
  EXPECT_TRUE(wait.Take());
  EXPECT_FALSE(wait.Take());
  EXPECT_TRUE(wait.is_taken());
  wait.Ping(now_ + milliseconds(5000));
  EXPECT_EQ(client_->status(), 0) << "whoever has it says what follows";
}

// Has no memory for the head of a stream at first, and says when it is written to without one.
class Starved final : public HttpReply {
 public:
  void Send(int, Headers, std::string) override { ADD_FAILURE(); }
  void StartStream(int, Headers) override {
    if (num_failures-- > 0) throw std::bad_alloc();
    has_head = true;
  }
  void Write(std::string bytes) override {
    EXPECT_TRUE(has_head);
    body += bytes;
  }
  void End() override { EXPECT_TRUE(has_head); }
  void Abort() override {}
  size_t unsent_bytes() const override { return 0; }
  void OnGone(std::function<void()>) override {}
  int num_failures = 1;
  bool has_head = false;
  std::string body;
};

TEST_F(ModelWaitTest, AHeadWithoutMemoryIsSentTheNextTime) {
  const auto client = std::make_shared<Starved>();
  ModelWait::Form form{"m", {}};
  form.writer = [] { return std::make_unique<PlainWriter>(kServerSentEvents); };
  ModelWait wait(client, std::move(form), now_);
  EXPECT_THROW(wait.Ping(now_ + milliseconds(1500)), std::bad_alloc);
  EXPECT_FALSE(wait.Fail({})) << "it has no stream yet that could say so";
  wait.Ping(now_ + milliseconds(9000));
  EXPECT_EQ(client->body, ": loading m, 9 s\n\n");
}

}  // namespace
}  // namespace hearth
