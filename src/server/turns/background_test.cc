// SPDX-License-Identifier: Apache-2.0
#include "server/turns/background.h"

#include <gtest/gtest.h>

#include <new>

namespace hearth {
namespace {

class Listener : public HttpReply {
 public:
  void Send(int given, Headers, std::string bytes) override {
    status = given;
    body = std::move(bytes);
    is_ended = true;
  }
  void StartStream(int given, Headers) override { status = given; }
  void Write(std::string bytes) override { body += bytes; }
  void End() override { is_ended = true; }
  void Abort() override { is_ended = was_cut = true; }
  size_t unsent_bytes() const override { return unsent; }
  bool is_gone() const override { return has_gone; }
  void OnGone(std::function<void()>) override {}

  int status = 0;
  std::string body;
  bool is_ended = false, was_cut = false;
  size_t unsent = 0;
  bool has_gone = false;
};

Json Event(int number, const std::string& status) {
  return JsonObject{{"type", "response.x"},
                    {"sequence_number", number},
                    {"response", JsonObject{{"status", status}, {"output", JsonArray{}}}}};
}

// What an exchange does with its reply, in order.
struct Script {
  explicit Script(const std::shared_ptr<BackgroundResponses>& house, const std::string& id,
                  bool streams = false, const std::string& tenant = "anna")
      : client(std::make_shared<Listener>()) {
    auto opened = house->Open(tenant, id, streams, client);
    if (!opened.ok()) {
      status = opened.error().status;
      return;
    }
    reply = *opened;
    job = house->Find(tenant, id);
  }
  void Begin() {
    Tell("queued");
    reply->StartStream(200, {{"x-request-id", "r"}});
    reply->OnGone([this] { was_cancelled = true; });
  }
  void Tell(const std::string& word) { job->Watch(Event(number, word), Bytes(number)), ++number; }
  static std::string Bytes(int number) { return "event: " + std::to_string(number) + "\n\n"; }

  std::shared_ptr<Listener> client;
  std::shared_ptr<HttpReply> reply;
  std::shared_ptr<BackgroundResponse> job;
  int number = 0, status = 200;
  bool was_cancelled = false;
};

TEST(BackgroundResponses, AnswerAtOnceAndGoOn) {
  const auto house = std::make_shared<BackgroundResponses>();
  Script run(house, "resp_1");
  run.Begin();
  EXPECT_TRUE(run.client->is_ended);
  EXPECT_EQ(run.client->body, R"({"status":"queued","output":[]})");
  run.Tell("in_progress");
  run.job->Watch(JsonObject{{"type", "response.output_item.done"},
                            {"sequence_number", run.number},
                            {"item", JsonObject{{"id", "m"}}}},
                 Script::Bytes(run.number));
  EXPECT_EQ(WriteJson(house->Find("anna", "resp_1")->snapshot()),
            R"({"status":"in_progress","output":[{"id":"m"}]})");
  EXPECT_EQ(house->Find("bert", "resp_1"), nullptr) << "another tenant's";
  run.reply->End();
  EXPECT_TRUE(run.job->is_over());
}

TEST(BackgroundResponses, AnswerWhoJoinsBeforeTheFirstEvent) {
  const auto house = std::make_shared<BackgroundResponses>();
  Script script(house, "r1");
  const auto early = std::make_shared<Listener>();
  script.job->Answer(early);
  EXPECT_EQ(early->status, 0) << "there is nothing to show yet";
  script.Begin();
  EXPECT_EQ(early->status, 200);
  EXPECT_EQ(early->body, WriteJson(script.job->snapshot()));
  EXPECT_NE(early->body, "null");
  const auto later = std::make_shared<Listener>();
  script.job->Answer(later);
  EXPECT_EQ(later->body, early->body);
}

TEST(BackgroundResponses, TellWhoJoinedOneThatTheEngineDidNotLetIn) {
  const auto house = std::make_shared<BackgroundResponses>();
  Script script(house, "r1");
  const auto early = std::make_shared<Listener>(), follower = std::make_shared<Listener>();
  script.job->Answer(early);
  script.job->Follow(follower, -1);
  script.reply.reset();
  EXPECT_GE(early->status, 429);
  EXPECT_NE(early->body.find("not admitted"), std::string::npos) << early->body;
  EXPECT_TRUE(follower->was_cut);
  EXPECT_EQ(house->Find("anna", "r1"), nullptr);
  const auto late = std::make_shared<Listener>();
  script.job->Answer(late);
  EXPECT_EQ(late->status, early->status) << "found just before it was forgotten";
}

TEST(BackgroundResponses, StreamsResumeAfterAnEvent) {
  const auto house = std::make_shared<BackgroundResponses>();
  Script run(house, "resp_1", true);
  run.Begin();
  run.Tell("in_progress");
  const auto late = std::make_shared<Listener>(), later = std::make_shared<Listener>();
  run.job->Follow(late, 0);
  run.Tell("completed");
  run.reply->Write(": ping\n\n");
  run.reply->Write("event: told through Watch already\n\n");
  run.reply->End();
  run.job->Follow(later, 1);
  EXPECT_EQ(run.client->body,
            Script::Bytes(0) + Script::Bytes(1) + Script::Bytes(2) + ": ping\n\n");
  EXPECT_EQ(late->body, Script::Bytes(1) + Script::Bytes(2) + ": ping\n\n");
  EXPECT_EQ(later->body, Script::Bytes(2));
  EXPECT_TRUE(run.client->is_ended && late->is_ended && later->is_ended);
}

TEST(BackgroundResponses, CancelsAndTellsWhatBecameOfIt) {
  const auto house = std::make_shared<BackgroundResponses>();
  Script run(house, "resp_1");
  run.Begin();
  const auto who = std::make_shared<Listener>(), again = std::make_shared<Listener>();
  run.job->Cancel(who);
  EXPECT_TRUE(run.was_cancelled);
  EXPECT_FALSE(who->is_ended) << "nobody knows yet what it came to";
  run.Tell("cancelled");
  run.reply->End();
  run.job->Cancel(again);
  EXPECT_EQ(who->body, R"({"status":"cancelled","output":[]})");
  EXPECT_EQ(again->body, who->body);
}

// Finds no memory for what it is told at the end.
class Starved final : public Listener {
 public:
  void Send(int, Headers, std::string) override { throw std::bad_alloc(); }
  void End() override { throw std::bad_alloc(); }
};

TEST(BackgroundResponses, TellOthersWhenThereIsNoMemoryForOne) {
  const auto house = std::make_shared<BackgroundResponses>();
  Script run(house, "resp_1", true);
  run.Begin();
  const auto stream = std::make_shared<Starved>(), canceller = std::make_shared<Starved>();
  const auto late = std::make_shared<Listener>(), later = std::make_shared<Listener>();
  run.job->Follow(stream, 0);
  run.job->Follow(late, 0);
  run.job->Cancel(canceller);
  run.job->Cancel(later);
  run.reply->End();
  EXPECT_TRUE(stream->was_cut && canceller->was_cut);
  EXPECT_TRUE(run.client->is_ended && late->is_ended && later->is_ended);
  EXPECT_FALSE(run.client->was_cut || late->was_cut || later->was_cut);
  EXPECT_TRUE(run.job->is_over());
}

// A stream that ends lacks nothing: who cannot have the rest sees a broken connection.
TEST(BackgroundResponses, CutWhoListensWhenTheyAreCut) {
  const auto house = std::make_shared<BackgroundResponses>();
  Script run(house, "resp_1", true);
  run.Begin();
  const auto late = std::make_shared<Listener>(), canceller = std::make_shared<Listener>();
  run.job->Follow(late, 0);
  run.job->Cancel(canceller);
  run.reply->Abort();
  EXPECT_TRUE(run.client->was_cut && late->was_cut && canceller->was_cut);
  EXPECT_TRUE(run.job->is_over());
}

TEST(BackgroundResponses, AreBounded) {
  const auto house = std::make_shared<BackgroundResponses>(
      BackgroundLimits{.max_running = 4, .max_finished = 1, .max_event_bytes = 30});
  Script one(house, "resp_1"), two(house, "resp_2");
  EXPECT_EQ(Script(house, "resp_3").status, 429);
  one.Begin();
  two.Begin();
  one.reply->End();
  two.reply->End();
  EXPECT_EQ(house->Find("anna", "resp_1"), nullptr) << "the oldest that is over";
  EXPECT_NE(house->Find("anna", "resp_2"), nullptr);
  Script refused(house, "resp_4");
  refused.reply.reset();
  EXPECT_EQ(house->Find("anna", "resp_4"), nullptr) << "the engine did not let it in";
  Script four(house, "resp_5");
  four.Begin();
  EXPECT_TRUE(four.job->has_events());
  for (int i = 0; i < 9; ++i) four.Tell("in_progress");
  EXPECT_FALSE(four.job->has_events());
}

// Deletes what it is told the end of, as a client on another connection may before the end is
// noted.
class Deleter final : public Listener {
 public:
  Deleter(std::shared_ptr<BackgroundResponses> house, std::string id)
      : house_(std::move(house)), id_(std::move(id)) {}
  void Send(int given, Headers headers, std::string bytes) override {
    Listener::Send(given, std::move(headers), std::move(bytes));
    house_->Forget(id_);
  }

 private:
  const std::shared_ptr<BackgroundResponses> house_;
  const std::string id_;
};

TEST(BackgroundResponses, AreDeletedByWhoHearsOfTheEndFirst) {
  const auto house =
      std::make_shared<BackgroundResponses>(BackgroundLimits{.max_running = 2, .max_finished = 3});
  for (int i = 0; i < 8; ++i) {
    const std::string id = "resp_" + std::to_string(i);
    Script run(house, id);
    ASSERT_EQ(run.status, 200) << id;
    run.Begin();
    run.job->Cancel(std::make_shared<Deleter>(house, id));
    run.reply->End();
    EXPECT_EQ(house->Find("anna", id), nullptr);
  }
  // Nothing of them is counted among those that are kept.
  Script last(house, "resp_last");
  last.Begin();
  last.reply->End();
  last.reply->Abort();
  EXPECT_NE(house->Find("anna", "resp_last"), nullptr);
}

TEST(BackgroundResponses, AreSharedByKeys) {
  const auto house = std::make_shared<BackgroundResponses>(BackgroundLimits{.max_running = 4});
  const Script one(house, "resp_1"), two(house, "resp_2");
  EXPECT_EQ(Script(house, "resp_3").status, 429) << "half of them for one key";
  const Script three(house, "resp_4", false, "bert"), four(house, "resp_5", false, "bert");
  ASSERT_EQ(four.status, 200);
  const Script five(house, "resp_6", false, "carl");
  EXPECT_EQ(five.status, 200) << "one for whoever has none";
  EXPECT_EQ(Script(house, "resp_7", false, "carl").status, 429);
}

TEST(BackgroundResponses, AreAllThereForWhoIsAlone) {
  const auto house = std::make_shared<BackgroundResponses>(BackgroundLimits{.max_running = 3});
  const Script one(house, "1", false, ""), two(house, "2", false, ""), three(house, "3", false, "");
  EXPECT_EQ(three.status, 200);
  EXPECT_EQ(Script(house, "4", false, "").status, 429);
}

TEST(BackgroundResponses, KeepTheirEventsWhenAnotherKeyEndsMore) {
  const auto house = std::make_shared<BackgroundResponses>(BackgroundLimits{.max_finished = 3});
  Script quiet(house, "resp_q", true, "bert");
  quiet.Begin();
  quiet.reply->End();
  std::vector<std::unique_ptr<Script>> busy;
  for (int i = 0; i < 5; ++i) {
    busy.push_back(std::make_unique<Script>(house, "resp_" + std::to_string(i), true));
    busy.back()->Begin();
    busy.back()->reply->End();
  }
  EXPECT_NE(house->Find("bert", "resp_q"), nullptr);
  EXPECT_EQ(house->Find("anna", "resp_2"), nullptr);
  EXPECT_NE(house->Find("anna", "resp_4"), nullptr);
}

// The one who listens may be slow: it is waited for at the end, and at no time before.
TEST(BackgroundTest, IsHeardWhenItsListenersHaveTakenTheEnd) {
  const auto house = std::make_shared<BackgroundResponses>();
  Script one(house, "a", /*streams=*/true);
  one.Begin();
  one.client->unsent = 40;
  EXPECT_EQ(one.reply->unsent_bytes(), 0u);
  one.Tell("completed");
  one.reply->End();
  EXPECT_EQ(one.reply->unheard_bytes(), 40u);
  EXPECT_EQ(one.reply->unsent_bytes(), 0u);
  one.client->unsent = 0;
  EXPECT_EQ(one.reply->unheard_bytes(), 0u);
  one.client->unsent = 40;
  one.client->has_gone = true;
  EXPECT_EQ(one.reply->unheard_bytes(), 0u);
}

}  // namespace
}  // namespace hearth
