// SPDX-License-Identifier: Apache-2.0
// Jobs from their file to their results, with an API made of a function.
#include "batch/batch_office.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "testing/batch_rig.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using std::chrono::milliseconds;
using testing::Echo;
using testing::FakeApi;
using ::testing::HasSubstr;
using testing::Input;
using testing::kChat;
using testing::Text;

class BatchOfficeTest : public testing::BatchRig {};

TEST_F(BatchOfficeTest, AnswersEveryLineOnce) {
  Open();
  api_.Always([](const HttpRequest& request, HttpReply& reply) {
    EXPECT_EQ(request.key_id, "t");
    EXPECT_EQ(request.path, kChat);
    if (request.body.find(":7,") != std::string::npos) {
      return reply.Send(400, {}, R"({"error":{"code":"unknown_parameter"}})");
    }
    Echo(request, reply);
    reply.Send(500, {}, "{}");  // a second answer is nobody's
  });
  office_->Start(api_.Sender());
  const std::string id = Create(Input(100));
  ASSERT_TRUE(WaitFor(id, "completed"));
  EXPECT_EQ(Ids(id, "output_file_id").size(), 99u);
  EXPECT_EQ(Ids(id, "error_file_id"), std::set<std::string>{"c7"});
  EXPECT_EQ(Counts(id), R"({"total":100,"completed":99,"failed":1})");
  const std::string output = *office_->ReadFile("t", Text(Batch(id), "output_file_id"));
  EXPECT_THAT(output, HasSubstr(R"("custom_id":"c3","response":{"status_code":200,)"));
  EXPECT_THAT(output, HasSubstr(R"("body":{"echo":{"n":3,"priority":2}}},"error":null})"));
  EXPECT_EQ(api_.asked().size(), 100u);
}

TEST_F(BatchOfficeTest, OneLineAtATimeWhileOthersAsk) {
  Open("", 4);
  std::atomic<bool> is_busy = true;
  office_->Start(api_.Sender(), [&] { return is_busy.load(); });
  const std::string id = Create(Input(20));
  ASSERT_TRUE(Eventually([&] { return api_.waiting() == 1; }));
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(milliseconds(30));  // several looks
    const std::vector<FakeApi::Call> calls = api_.Take();
    ASSERT_EQ(calls.size(), 1u) << "answer " << i;
    Echo(calls[0].request, *calls[0].reply);
    ASSERT_TRUE(Eventually([&] { return api_.waiting() > 0; }));
  }
  is_busy = false;
  EXPECT_TRUE(Eventually([&] { return api_.waiting() == 4; }));
  api_.Always(Echo);
  for (const FakeApi::Call& call : api_.Take()) Echo(call.request, *call.reply);
  ASSERT_TRUE(WaitFor(id, "completed"));
  EXPECT_EQ(Ids(id, "output_file_id").size(), 20u);
}

TEST_F(BatchOfficeTest, AFileWithMistakesFails) {
  Open();
  office_->Start(api_.Sender());
  const std::string id = Create(Input(2) + "nonsense\n");
  ASSERT_TRUE(WaitFor(id, "failed"));
  EXPECT_THAT(WriteJson(Batch(id)), HasSubstr(R"("code":"invalid_json_line","line":3)"));
  EXPECT_TRUE(api_.asked().empty());
}

// As after kill -9: what was answered stays, what ran is run again.
TEST_F(BatchOfficeTest, GoesOnAfterTheProcessEnded) {
  const testing::TempDir folder;
  const std::string path = folder.path() + "/batches";
  Open(path);
  office_->Start(api_.Sender());
  const std::string id = Create(Input(50));
  std::map<std::string, int> answered;  // how often a line had been asked by then
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(Eventually([&] { return api_.waiting() == 4; }));
    auto calls = api_.Take();
    for (size_t i = 0; i < 3; ++i) {
      Echo(calls[i].request, *calls[i].reply);
      answered[calls[i].request.body] = api_.asked().at(calls[i].request.body);
    }
    const int64_t done = 3 * (round + 1);
    ASSERT_TRUE(Eventually([&] {
      return Counts(id) ==
             Printf(R"({"total":50,"completed":%lld,"failed":0})", static_cast<long long>(done));
    })) << Counts(id);
    office_ = nullptr;  // with the rest unanswered
    api_.Take();
    calls.clear();
    Open(path);
    office_->Start(api_.Sender());
  }
  api_.Take();
  office_ = nullptr;
  api_.Take();
  Open(path);
  api_.Always(Echo);
  office_->Start(api_.Sender());
  ASSERT_TRUE(WaitFor(id, "completed"));
  EXPECT_EQ(Ids(id, "output_file_id").size(), 50u);
  EXPECT_EQ(Counts(id), R"({"total":50,"completed":50,"failed":0})");
  const auto asked = api_.asked();
  for (const auto& [body, count] : answered) EXPECT_EQ(asked.at(body), count) << body;
}

TEST_F(BatchOfficeTest, TriesAgainWhatWasNotTheLinesFault) {
  Open();
  std::atomic<int> refusals{0};
  api_.Always([&](const HttpRequest& request, HttpReply& reply) {
    if (refusals++ < 3) {
      return reply.Send(429, {{"retry-after", "0"}}, R"({"error":{"code":"overloaded"}})");
    }
    Echo(request, reply);
  });
  office_->Start(api_.Sender());
  const std::string id = Create(Input(10));
  ASSERT_TRUE(WaitFor(id, "completed"));
  EXPECT_EQ(Counts(id), R"({"total":10,"completed":10,"failed":0})");
}

TEST(BatchFate, TellsPassingTroubleFromTheLinesOwn) {
  EXPECT_FALSE(FateOf(200, "{}", {}).is_again);
  EXPECT_FALSE(FateOf(200, "{}", {}).is_error);
  EXPECT_TRUE(FateOf(0, "", {}).is_again);
  EXPECT_TRUE(FateOf(400, R"({"error":{"code":"overloaded"}})", {}).is_error);
  EXPECT_TRUE(FateOf(503, R"({"error":{"code":"model_not_loaded"}})", {}).is_error);
  EXPECT_TRUE(FateOf(503, "nonsense", {}).is_error);
  for (const int status : {429, 503, 529}) {
    const LineFate fate =
        FateOf(status, R"({"error":{"code":"overloaded"}})", {{"retry-after", "7"}});
    EXPECT_TRUE(fate.is_again);
    EXPECT_EQ(fate.after_s, 7);
  }
  EXPECT_EQ(FateOf(429, R"({"error":{"code":"overloaded"}})", {{"retry-after", "1e9"}}).after_s,
            60);
}

TEST_F(BatchOfficeTest, ACancelledOneKeepsWhatItHas) {
  Open();
  office_->Start(api_.Sender());
  const std::string id = Create(Input(20));
  ASSERT_TRUE(Eventually([&] { return api_.waiting() == 4; }));
  auto calls = api_.Take();
  Echo(calls[0].request, *calls[0].reply);
  ASSERT_TRUE(Eventually([&] { return Counts(id) == R"({"total":20,"completed":1,"failed":0})"; }));
  ASSERT_TRUE(Eventually([&] { return api_.waiting() == 1; }));
  std::atomic<int> left{0};
  for (size_t i = 1; i < calls.size(); ++i) {
    // As the engine does: who leaves takes the work along.
    calls[i].reply->OnGone([&, i] {
      ++left;
      calls[i].reply->Abort();
    });
  }
  auto last = api_.Take();
  last[0].reply->OnGone([&] {
    ++left;
    last[0].reply->Abort();
  });
  // A runner that is fast has ended it by then.
  EXPECT_THAT(Text(*office_->CancelBatch("t", id), "status"),
              ::testing::AnyOf("cancelling", "cancelled"));
  ASSERT_TRUE(WaitFor(id, "cancelled"));
  EXPECT_EQ(left, 4);
  EXPECT_EQ(Ids(id, "output_file_id"), std::set<std::string>{"c0"});
  EXPECT_EQ(Text(Batch(id), "error_file_id"), "");
  EXPECT_EQ(office_->CancelBatch("t", id).ok(), true) << "twice is once";
  api_.Always(Echo);
  const std::string next = Create(Input(1));
  ASSERT_TRUE(WaitFor(next, "completed"));
  EXPECT_EQ(office_->CancelBatch("t", next).error().code, "not_cancellable");
}

TEST_F(BatchOfficeTest, WhatIsNotRunInTimeExpires) {
  Open();
  office_->Start(api_.Sender());
  const std::string id = Create(Input(10), "t", "90m");
  ASSERT_TRUE(Eventually([&] { return api_.waiting() == 4; }));
  auto calls = api_.Take();
  for (auto& call : calls) {
    call.reply->OnGone([reply = call.reply.get()] { reply->Abort(); });
  }
  Pass(90 * 60 - 1);
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(Text(Batch(id), "status"), "in_progress");
  Pass(1);
  ASSERT_TRUE(WaitFor(id, "expired"));
  EXPECT_EQ(Counts(id), R"({"total":10,"completed":0,"failed":10})");
  EXPECT_EQ(Ids(id, "error_file_id").size(), 10u);
  EXPECT_THAT(*office_->ReadFile("t", Text(Batch(id), "error_file_id")),
              HasSubstr(R"("response":null,"error":{"code":"batch_expired",)"));
}

TEST_F(BatchOfficeTest, TenantsDoNotSeeEachOther) {
  Open();
  const std::string id = Create(Input(1)), file = Text(Batch(id), "input_file_id");
  EXPECT_EQ(office_->FindBatch("other", id).error().status, 404);
  EXPECT_EQ(office_->CancelBatch("other", id).error().status, 404);
  EXPECT_EQ(office_->FindFile("other", file).error().status, 404);
  EXPECT_EQ(office_->ReadFile("other", file).error().status, 404);
  EXPECT_EQ(office_->DeleteFile("other", file).error().status, 404);
  EXPECT_EQ(office_->AddBatch("other", {file, kChat, "24h"}).error().param, "input_file_id");
  EXPECT_THAT(WriteJson(*office_->ListFiles("other", "", {})), HasSubstr(R"("data":[])"));
  EXPECT_THAT(WriteJson(*office_->ListBatches("other", {})), HasSubstr(R"("data":[])"));
}

TEST_F(BatchOfficeTest, KeepsToTheQuota) {
  Open("", 4, {.max_bytes = 1000, .max_lines = 5, .max_files = 3});
  office_->Start(api_.Sender());
  EXPECT_EQ(office_->AddFile("t", {"a", "batch", std::string(1001, 'x')}).error().code,
            "quota_exceeded");
  const std::string small = Create(Input(3));
  ASSERT_TRUE(WaitFor(small, "in_progress"));
  const std::string more = Create(Input(3));
  ASSERT_TRUE(WaitFor(more, "failed"));
  EXPECT_THAT(WriteJson(Batch(more)), HasSubstr("quota_exceeded"));
  EXPECT_EQ(office_->AddFile("t", {"a", "batch", "x"}).ok(), true);
  EXPECT_EQ(office_->AddFile("t", {"a", "batch", "x"}).error().code, "quota_exceeded");
  EXPECT_EQ(office_->AddFile("other", {"a", "batch", "x"}).ok(), true);
}

TEST_F(BatchOfficeTest, ListsTheNewestFirstInPages) {
  Open();
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(Upload("x"));
  const Json first = *ParseJson(WriteJson(*office_->ListFiles("t", "batch", {"", 2})));
  EXPECT_EQ(Text(first, "first_id"), ids[4]);
  EXPECT_EQ(Text(first, "last_id"), ids[3]);
  EXPECT_TRUE(*first.Find("has_more")->boolean());
  const Json rest = *ParseJson(WriteJson(*office_->ListFiles("t", "", {ids[3], 10})));
  EXPECT_EQ(rest.Find("data")->array()->size(), 3u);
  EXPECT_FALSE(*rest.Find("has_more")->boolean());
  EXPECT_THAT(WriteJson(*office_->ListFiles("t", "other", {})), HasSubstr(R"("data":[])"));
  EXPECT_TRUE(office_->DeleteFile("t", ids[0]).ok());
  EXPECT_EQ(office_->FindFile("t", ids[0]).error().status, 404);
}

TEST_F(BatchOfficeTest, RefusesWhatItCannotRun) {
  Open();
  const std::string file = Upload(Input(1));
  EXPECT_EQ(office_->AddBatch("t", {file, "/v1/responses", "24h"}).error().param, "endpoint");
  for (const char* window : {"", "0s", "400h", "soon", "-1h"}) {
    EXPECT_EQ(office_->AddBatch("t", {file, kChat, window}).error().param, "completion_window");
  }
  EXPECT_EQ(office_->AddBatch("t", {"file-x", kChat, "24h"}).error().param, "input_file_id");
}

}  // namespace
}  // namespace hearth
