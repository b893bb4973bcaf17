// SPDX-License-Identifier: Apache-2.0
// Requests over models that come and go, with a real engine each, on backends of hashes.
#include "server/models/model_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <new>
#include <thread>

#include "testing/service_rig.h"

namespace hearth {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class FakeModel final : public LoadedModel {
 public:
  FakeModel(const std::string& name, int step_us, uint64_t first_id) {
    testing::FakeOptions fake;
    fake.vocab_size = tokenizer_.vocab_size();
    fake.full_blocks = fake.window_blocks = 100;
    fake.before_run = [step_us](const StepPlan&) {
      std::this_thread::sleep_for(std::chrono::microseconds(step_us));
      return Status();
    };
    EngineOptions options;
    options.scheduler.max_context = 1024;
    options.admission.first_id = first_id;
    engine_ = std::make_unique<Engine>(std::make_unique<testing::FakeBackend>(fake), options);
    format_ = *MakeHarmonyFormat(tokenizer_);
    masks_ = *ReplyMasks::Make(tokenizer_, format_->stop_tokens(), {});
    model_.name = name;
    model_.tokenizer = &tokenizer_;
    model_.format = format_.get();
    model_.masks = masks_.get();
    model_.max_context = 1024;
  }
  Engine& engine() override { return *engine_; }
  const ServedModel& model() const override { return model_; }

 private:
  const testing::ByteTokenizer tokenizer_;
  std::unique_ptr<ChatFormat> format_;
  std::unique_ptr<ReplyMasks> masks_;
  ServedModel model_;
  std::unique_ptr<Engine> engine_;
};

// Models of ten bytes each; "broken" cannot be loaded, "unreadable" not even looked into, "huge"
// never fits.
class FakeOpener final : public ModelOpener {
 public:
  Result<MeasuredModel> Measure(const std::string& name) override {
    if (name == "unreadable") return Error(Code::kCorrupt, "no GGUF file");
    MeasuredModel measured;
    measured.bytes = name == "huge" ? 1000 : 10;
    measured.known.name = name;
    measured.known.max_context = 1024;
    measured.known.facts.family = "llama";
    measured.known.facts.can_call_tools = true;
    return measured;
  }
  Result<std::unique_ptr<LoadedModel>> Load(const std::string& name, int64_t) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(load_ms));
    while (is_held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (name == "broken") return Error(Code::kCorrupt, "cut short");
    if (is_short) throw std::bad_alloc();
    ++num_loads;
    return std::unique_ptr<LoadedModel>(
        std::make_unique<FakeModel>(name, step_us, static_cast<uint64_t>(num_loads) << 40));
  }
  std::atomic<int> load_ms{5}, step_us{0}, num_loads{0};
  std::atomic<bool> is_held{false};   // so long nothing gets loaded
  std::atomic<bool> is_short{false};  // of memory
};

class ModelHostTest : public ::testing::Test {
 protected:
  void Start(const std::vector<HostedModel>& models, int64_t budget) {
    HostOptions options;
    options.budget_bytes = budget;
    options.version = "9";
    host_ = std::make_unique<ModelHost>(models, opener_, options);
    ServiceOptions service;
    service.ping_every = std::chrono::milliseconds(100);
    service.observer = &heard_;
    service_ = std::make_unique<TurnService>(*host_, service);
    for (const auto& dialect : AllDialects(*responses_)) service_->AddRoutes(router_, dialect);
    AddModelRoutes(*service_, router_);
  }
  void TearDown() override {
    opener_.is_held = false;
    if (host_ != nullptr) host_->Drain(0);
    service_.reset();
  }
  std::shared_ptr<testing::StringClient> Send(const std::string& method, const std::string& path,
                                              std::string body = "",
                                              const std::string& key_id = "") {
    auto client = std::make_shared<testing::StringClient>();
    HttpRequest request;
    const size_t question = std::min(path.find('?'), path.size());
    request.method = method;
    request.path = path.substr(0, question);
    request.query = path.substr(std::min(question + 1, path.size()));
    request.body = std::move(body);
    request.key_id = key_id;
    auto match = std::get<Router::Match>(router_.Find(method, request.path));
    request.path_captures = match.captures;
    match.route->handler(std::move(request), client);
    return client;
  }
  std::shared_ptr<testing::StringClient> Chat(const std::string& model,
                                              const std::string& more = "",
                                              const std::string& key_id = "") {
    return Send("POST", "/v1/chat/completions",
                R"({"messages": [{"role": "user", "content": "hi"}], "seed": 1, "max_tokens": 5,
                    "model": ")" +
                    model + "\"" + more + "}",
                key_id);
  }
  std::shared_ptr<testing::StringClient> Respond(const std::string& model) {
    return Send("POST", "/v1/responses",
                R"({"input": "hi", "background": true, "max_output_tokens": 5, "model": ")" +
                    model + "\"}");
  }
  static std::string IdOf(testing::StringClient& response) {
    return *ParseJson(response.bytes())->Find("id")->string();
  }
  std::string StatusOf(const std::string& id) {
    const auto found = Send("GET", "/v1/responses/" + id);
    if (!found->WaitForEnd() || found->status() != 200) return "none";
    return *ParseJson(found->bytes())->Find("status")->string();
  }
  // Of a stream's events; each must have the number after the last one's.
  static std::vector<std::string> TypesOf(const std::string& stream) {
    std::vector<std::string> types;
    int64_t last = -1;
    for (size_t at = stream.find("data: "); at != std::string::npos;
         at = stream.find("data: ", at + 1)) {
      const Json event = *ParseJson(stream.substr(at + 6, stream.find('\n', at) - at - 6));
      const int64_t number = *event.Find("sequence_number")->integer();
      if (last >= 0) {
        EXPECT_EQ(number, last + 1);
      }
      last = number;
      types.push_back(*event.Find("type")->string());
    }
    return types;
  }
  // The content of a whole reply; what else came, where there is none.
  static std::string TextOf(testing::StringClient& client) {
    if (!client.WaitForEnd()) return "nothing";
    if (client.status() != 200) return std::to_string(client.status()) + client.bytes();
    const Json json = *ParseJson(client.bytes());
    return WriteJson(*(*json.Find("choices")->array())[0].Find("message"));
  }
  bool WaitForState(const std::string& name, const std::string& state) {
    for (int i = 0; i < 4000; ++i) {
      const std::vector<ModelListing> all = host_->List();
      const ModelListing* found = FindListing(all, name);
      if (found != nullptr && found->state == state) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
  }

  testing::Heard heard_;
  FakeOpener opener_;
  std::unique_ptr<ResponseStore> responses_ = *ResponseStore::Open("");
  std::unique_ptr<ModelHost> host_;
  std::unique_ptr<TurnService> service_;
  Router router_;
};

TEST_F(ModelHostTest, LoadsOnDemandAndSaysTheSameEveryTime) {
  Start({{"a"}, {"b"}, {"c"}}, 20);
  const std::string once = TextOf(*Chat("a"));
  EXPECT_THAT(once, HasSubstr("assistant"));
  for (const char* name : {"b", "c", "a", "b", "c", "a:latest"}) {
    EXPECT_EQ(TextOf(*Chat(name)), once) << name;
    EXPECT_LE(host_->counts().planned_bytes, 20);
  }
  EXPECT_GT(opener_.num_loads, 3);
  EXPECT_THAT(TextOf(*Chat("d")), HasSubstr("available: a, b, c"));
  EXPECT_THAT(TextOf(*Chat("")), HasSubstr("is missing: this server has several models"));
}

TEST_F(ModelHostTest, ACrowdIsServedWithinTheBudget) {
  Start({{"a"}, {"b"}, {"c"}, {"d", {}, true}}, 30);
  ASSERT_TRUE(host_->WaitForPinned().ok());
  const std::string expected = TextOf(*Chat("d"));
  std::atomic<bool> is_over{false};
  std::thread watcher([&] {
    while (!is_over) {
      const HostCounts counts = host_->counts();
      EXPECT_LE(counts.planned_bytes, 30);
      EXPECT_EQ(counts.models[3].state, "loaded");
      host_->snapshot();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&, i] {
      for (int j = 0; j < 25; ++j) {
        const std::string name(1, static_cast<char>('a' + (i * 7 + j * 3) % 4));
        EXPECT_EQ(TextOf(*Chat(name)), expected);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  is_over = true;
  watcher.join();
  EXPECT_EQ(host_->counts().models[3].num_unloads, 0u);
  // All that was done is still counted, although most engines are gone.
  EXPECT_EQ(host_->snapshot()->num_admitted, 201u);
}

TEST_F(ModelHostTest, WithoutMemoryAModelDoesNotComeAndTheServerStays) {
  opener_.is_short = true;
  Start({{"a"}}, 20);
  EXPECT_THAT(TextOf(*Chat("a")), AllOf(HasSubstr("503"), HasSubstr("not enough memory")));
  opener_.is_short = false;
  EXPECT_THAT(TextOf(*Chat("a")), HasSubstr("assistant"));
}

TEST_F(ModelHostTest, AFailureIsToldWithItsReason) {
  Start({{"broken"}, {"huge"}}, 20);
  EXPECT_THAT(TextOf(*Chat("broken")), HasSubstr("503"));
  EXPECT_THAT(TextOf(*Chat("broken")), HasSubstr("cut short"));
  EXPECT_THAT(TextOf(*Chat("huge")), HasSubstr("cannot be loaded"));
  EXPECT_EQ(host_->counts().models[0].num_failures, 2u);
}

TEST_F(ModelHostTest, AStreamThatWaitsGetsSignsOfLifeAndItsReply) {
  opener_.load_ms = 1800;
  Start({{"a"}, {"broken"}}, 20);
  const auto client = Chat("a", R"(, "stream": true)");
  ASSERT_TRUE(client->WaitForEnd());
  EXPECT_EQ(client->status(), 200);
  EXPECT_THAT(client->bytes(), HasSubstr(": loading a, 1 s\n"));
  EXPECT_THAT(client->bytes(), HasSubstr("data: [DONE]"));
  const auto refused = Chat("broken", R"(, "stream": true)");
  ASSERT_TRUE(refused->WaitForEnd());
  EXPECT_EQ(refused->status(), 200) << "its head was out";
  EXPECT_THAT(refused->bytes(), HasSubstr("model_not_loaded"));
}

TEST_F(ModelHostTest, WhoLeavesIsForgotten) {
  opener_.load_ms = 300;
  Start({{"a"}, {"b"}}, 10);
  const auto first = Chat("a");
  const auto second = Chat("b");
  while (host_->counts().num_waiting < 2) std::this_thread::yield();
  second->Leave();
  EXPECT_EQ(host_->counts().num_waiting, 1);
  EXPECT_THAT(TextOf(*first), HasSubstr("assistant"));
  EXPECT_EQ(opener_.num_loads, 1) << "nobody wants b any more";
  service_.reset();  // nobody tells any more
  ASSERT_FALSE(heard_.outcomes.empty());
  EXPECT_EQ(heard_.outcomes[0].status, 499);
}

TEST_F(ModelHostTest, RoutesLoadUnloadPinAndList) {
  Start({{"a", {"alias"}}, {"b"}}, 20);
  const auto load = Send("POST", "/models/load", R"({"model": "alias", "pin": true})");
  ASSERT_TRUE(load->WaitForEnd());
  EXPECT_THAT(load->bytes(), HasSubstr(R"("model":"a","state":"loaded","pinned":true)"));
  const auto stays = Send("POST", "/models/unload", R"({"model": "a"})");
  ASSERT_TRUE(stays->WaitForEnd());
  EXPECT_EQ(stays->status(), 409);
  const auto list = Send("GET", "/v1/models");
  EXPECT_THAT(list->bytes(), HasSubstr(R"("id":"alias","root":"a")"));
  EXPECT_THAT(list->bytes(), HasSubstr(R"("state":"offered")"));
  const auto loosened =
      Send("POST", "/models/load", R"({"model": "a", "pin": false, "keep_alive": "1h"})");
  ASSERT_TRUE(loosened->WaitForEnd());
  EXPECT_THAT(loosened->bytes(), HasSubstr(R"("pinned":false)"));
  const auto gone = Send("POST", "/models/unload", R"({"model": "a"})");
  ASSERT_TRUE(gone->WaitForEnd());
  EXPECT_EQ(gone->status(), 200) << gone->bytes();
  EXPECT_TRUE(WaitForState("a", "offered"));
}

TEST_F(ModelHostTest, OllamasClientsLoadAndUnloadWithEmptyRequests) {
  Start({{"a"}, {"b"}}, 20);
  const auto load = Send("POST", "/api/generate", R"({"model": "a", "keep_alive": "10m"})");
  ASSERT_TRUE(load->WaitForEnd());
  EXPECT_THAT(load->bytes(), HasSubstr(R"("done_reason":"load")"));
  ASSERT_TRUE(WaitForState("a", "loaded"));
  EXPECT_THAT(Send("GET", "/api/ps")->bytes(), HasSubstr(R"("name":"a:latest")"));
  const auto unload = Send("POST", "/api/chat", R"({"model": "a", "keep_alive": 0})");
  ASSERT_TRUE(unload->WaitForEnd());
  EXPECT_THAT(unload->bytes(), HasSubstr(R"("done_reason":"unload")"));
  EXPECT_TRUE(WaitForState("a", "offered"));
  EXPECT_EQ(Send("GET", "/api/ps")->bytes(), R"({"models":[]})");
  EXPECT_THAT(Send("GET", "/api/tags")->bytes(), HasSubstr(R"("name":"b:latest")"));
}

// When a model will leave tells when it was used last, and with keys that is others' business.
TEST_F(ModelHostTest, AKeyIsNotToldWhenOthersUsedAModel) {
  Start({{"a"}, {"b"}}, 20);
  const auto load = Send("POST", "/api/generate", R"({"model": "a", "keep_alive": "10m"})");
  ASSERT_TRUE(load->WaitForEnd());
  ASSERT_TRUE(WaitForState("a", "loaded"));
  const std::string never = R"("expires_at":"9999-12-31T23:59:59Z")";
  // Once the load's own lease is given back.
  for (int i = 0; i < 4000 && !host_->List().front().expires_in_s; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_THAT(Send("GET", "/v1/models")->bytes(), HasSubstr("expires_in_s"));
  EXPECT_THAT(Send("GET", "/api/ps")->bytes(), Not(HasSubstr(never)));
  EXPECT_THAT(Send("GET", "/v1/models", "", "anna")->bytes(), Not(HasSubstr("expires_in_s")));
  EXPECT_THAT(Send("GET", "/api/ps", "", "anna")->bytes(), HasSubstr(never));
}

TEST_F(ModelHostTest, IdleModelsLeaveWhenTheirTimeIsUp) {
  Start({{"a", {}, false, 0.05}}, 20);
  EXPECT_THAT(TextOf(*Chat("a")), HasSubstr("assistant"));
  EXPECT_TRUE(WaitForState("a", "offered"));
  EXPECT_EQ(host_->counts().models[0].num_unloads, 1u);
}

TEST_F(ModelHostTest, ATimeLimitRunsWhileTheModelIsLoaded) {
  opener_.is_held = true;
  Start({{"a"}, {"b"}}, 10);
  const auto whole = Chat("a", R"(, "timeout": 0.1)");
  const auto patient = Chat("a", R"(, "timeout": 600)");
  const auto stream = Chat("a", R"(, "timeout": 1.5, "stream": true)");
  EXPECT_THAT(TextOf(*whole), HasSubstr("504"));
  EXPECT_THAT(whole->bytes(), HasSubstr("the request timed out while model \\\"a\\\" was"));
  EXPECT_THAT(whole->bytes(), HasSubstr(R"("code":"expired")"));
  ASSERT_TRUE(stream->WaitForEnd());
  EXPECT_THAT(stream->bytes(), HasSubstr("expired"));
  EXPECT_EQ(host_->counts().num_waiting, 1) << "they are out of the line";
  opener_.is_held = false;
  EXPECT_THAT(TextOf(*patient), HasSubstr("assistant"));
}

TEST_F(ModelHostTest, TheTimeThatWasWaitedIsTakenOffTheLimit) {
  opener_.load_ms = 1500;
  opener_.step_us = 200'000;
  Start({{"a"}, {"b"}}, 10);
  // The reply alone, of a second, would be within it.
  EXPECT_THAT(TextOf(*Chat("a", R"(, "timeout": 2)")), HasSubstr("504"));
}

TEST_F(ModelHostTest, ABackgroundResponseIsQueuedUntilItsModelIsThere) {
  opener_.is_held = true;
  Start({{"a", {"alias"}}, {"b"}}, 10);
  const auto client = Respond("alias");
  ASSERT_TRUE(client->WaitForEnd()) << "before anything is loaded";
  EXPECT_EQ(client->status(), 200);
  EXPECT_THAT(client->bytes(), HasSubstr(R"("status":"queued")"));
  EXPECT_THAT(client->bytes(), HasSubstr(R"("model":"a")"));
  EXPECT_NE(client->header("x-request-id"), "");
  client->Leave();
  // Answered first, put into line then; and it does not need its client.
  while (host_->counts().num_waiting < 1) std::this_thread::yield();
  const std::string id = IdOf(*client);
  EXPECT_EQ(StatusOf(id), "queued");
  const auto follower = Send("GET", "/v1/responses/" + id + "?stream=true&starting_after=0");
  opener_.is_held = false;
  ASSERT_TRUE(follower->WaitForEnd());
  EXPECT_EQ(StatusOf(id), "incomplete") << "five tokens";
  const auto again = Send("GET", "/v1/responses/" + id + "?stream=true");
  ASSERT_TRUE(again->WaitForEnd());
  // One stream by two writers: numbered on, begun once.
  const std::vector<std::string> types = TypesOf(again->bytes());
  ASSERT_GE(types.size(), 3u);
  EXPECT_EQ(types[0], "response.created");
  EXPECT_EQ(types[1], "response.queued");
  EXPECT_EQ(types.back(), "response.incomplete");
  EXPECT_EQ(std::count(types.begin(), types.end(), "response.created"), 1);
  EXPECT_EQ(TypesOf(follower->bytes()).size() + 1, types.size());
}

TEST_F(ModelHostTest, AQueuedResponseIsCancelledOrFailsAndIsKept) {
  opener_.is_held = true;
  Start({{"a"}, {"broken"}}, 10);
  const auto first = Respond("a"), second = Respond("broken");
  ASSERT_TRUE(first->WaitForEnd() && second->WaitForEnd());
  while (host_->counts().num_waiting < 2) std::this_thread::yield();
  const auto cancel = Send("POST", "/v1/responses/" + IdOf(*first) + "/cancel", "{}");
  ASSERT_TRUE(cancel->WaitForEnd());
  EXPECT_THAT(cancel->bytes(), HasSubstr(R"("status":"cancelled")"));
  EXPECT_EQ(StatusOf(IdOf(*first)), "cancelled");
  while (host_->counts().num_waiting > 1) std::this_thread::yield();
  const auto follower = Send("GET", "/v1/responses/" + IdOf(*second) + "?stream=true");
  opener_.is_held = false;
  ASSERT_TRUE(follower->WaitForEnd());
  EXPECT_THAT(follower->bytes(), HasSubstr("cut short"));
  EXPECT_EQ(StatusOf(IdOf(*second)), "failed");
}

TEST_F(ModelHostTest, ShowsModelsThatAreNotLoaded) {
  Start({{"a"}, {"unreadable"}}, 20);
  for (int i = 0; i < 4000 && host_->List()[1].error.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  const auto known = Send("POST", "/api/show", R"({"model": "a"})");
  ASSERT_TRUE(known->WaitForEnd());
  EXPECT_EQ(known->status(), 200);
  EXPECT_THAT(known->bytes(), HasSubstr(R"("llama.context_length":1024)"));
  EXPECT_THAT(known->bytes(), HasSubstr(R"("capabilities":["completion","tools"])"));
  const auto unknown = Send("POST", "/api/show", R"({"model": "unreadable"})");
  ASSERT_TRUE(unknown->WaitForEnd());
  EXPECT_EQ(unknown->status(), 503);
  EXPECT_THAT(unknown->bytes(), HasSubstr("cannot be read: no GGUF file"));
  EXPECT_EQ(opener_.num_loads, 0);
}

TEST_F(ModelHostTest, DrainingRefusesThoseWhoWait) {
  opener_.load_ms = 300;
  Start({{"a"}, {"b"}}, 10);
  const auto first = Chat("a"), second = Chat("b");
  while (host_->counts().num_waiting < 2) std::this_thread::yield();
  host_->Drain(1'000'000);
  EXPECT_THAT(TextOf(*first), HasSubstr("shutting_down"));
  EXPECT_THAT(TextOf(*second), HasSubstr("503"));
  EXPECT_THAT(TextOf(*Chat("a")), HasSubstr("shutting_down"));
  EXPECT_TRUE(host_->snapshot()->is_draining);
}

TEST_F(ModelHostTest, AModelThatAnotherKeyUsesStaysForAWhile) {
  opener_.load_ms = 150;
  Start({{"a"}, {"b"}}, 15);
  const auto ada = Chat("a", "", "ada");
  ASSERT_TRUE(ada->WaitForEnd());
  ASSERT_EQ(ada->status(), 200) << ada->bytes();
  const auto bob = Chat("b", "", "bob");
  while (host_->counts().num_waiting < 1) std::this_thread::yield();
  EXPECT_EQ(host_->counts().num_deferred, 1);
  const auto again = Chat("a", "", "ada");
  ASSERT_TRUE(again->WaitForEnd());
  EXPECT_EQ(opener_.num_loads, 1) << "hers is there";
  ASSERT_TRUE(bob->WaitForEnd());
  EXPECT_EQ(bob->status(), 200) << bob->bytes();
  EXPECT_EQ(opener_.num_loads, 2);
  EXPECT_EQ(host_->counts().num_deferred, 0);
}

TEST_F(ModelHostTest, AKeysOwnModelLeavesAtOnce) {
  opener_.load_ms = 150;
  Start({{"a"}, {"b"}}, 15);
  ASSERT_TRUE(Chat("a", "", "ada")->WaitForEnd());
  const auto other = Chat("b", "", "ada");
  EXPECT_EQ(host_->counts().num_deferred, 0);
  ASSERT_TRUE(other->WaitForEnd());
  EXPECT_EQ(host_->counts().models[0].num_taken, 0U);
}

}  // namespace
}  // namespace hearth
