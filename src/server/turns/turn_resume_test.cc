// SPDX-License-Identifier: Apache-2.0
// Replies that are asked for again: the rest of a stream, and the same once more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "testing/old_seeds.h"
#include "testing/service_rig.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;
using testing::Heard;
using testing::StringClient;

struct Asked {
  const char* path;
  const char* body;
};
constexpr Asked kAsks[] = {
    {"/v1/chat/completions",
     R"({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 40, "stream": true,
         "stream_options": {"include_usage": true}})"},
    {"/v1/completions", R"({"prompt": "hi", "max_tokens": 30, "stream": true, "seed": 3})"},
    {"/v1/completions",
     R"({"prompt": "hi", "max_tokens": 9, "stream": true, "logprobs": 2, "echo": true})"},
    {"/v1/messages",
     R"({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 40, "stream": true})"},
    {"/v1/responses",
     R"({"input": "hi", "max_output_tokens": 40, "stream": true, "store": false})"},
    {"/v1/chat/completions",
     R"({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 60, "stream": true,
         "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema":
             {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}}})"},
};

std::vector<std::string> EventsOf(const std::string& bytes) {
  std::vector<std::string> out;
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = std::min(bytes.find("\n\n", at), bytes.size());
    std::string event = bytes.substr(at, end - at);
    while (event.starts_with(":")) {  // comments, a line each
      const size_t line = event.find('\n');
      event = line == std::string::npos ? "" : event.substr(line + 1);
    }
    if (!event.empty()) out.push_back(std::move(event));
    at = end + 2;
  }
  return out;
}

std::string IdOf(const std::string& event) {
  return event.starts_with("id: ") ? event.substr(4, event.find('\n') - 4) : "";
}

class TurnResumeTest : public testing::ServiceRig {
 protected:
  void Begin(ServiceOptions options = {}) {
    options.observer = &heard_;
    options.secrets.emplace(secrets_);
    if (options.journal == nullptr) options.journal = journal_;
    Start(0, options);
  }
  void BeginWithoutJournal() {
    has_journal_ = false;
    ServiceOptions options;
    JournalLimits limits;
    limits.max_entries = 0;
    options.journal = std::make_shared<ReplyJournal>(limits);
    Begin(options);
  }
  std::shared_ptr<StringClient> Ask(const Asked& asked, const char* header = "",
                                    const std::string& value = "", const std::string& key = "") {
    std::vector<HttpHeader> headers;
    if (*header != '\0') headers.push_back({header, value});
    const auto client = Post(asked.path, asked.body, key, headers);
    EXPECT_TRUE(client->WaitForEnd());
    return client;
  }
  std::shared_ptr<StringClient> GetEvents(const std::string& id, const std::string& query,
                                          const std::string& key = "",
                                          const std::string& last_event = "") {
    auto client = std::make_shared<StringClient>();
    HttpRequest request;
    if (!last_event.empty()) request.headers.push_back({"last-event-id", last_event});
    request.method = "GET";
    request.path = "/v1/responses/" + id;
    request.query = query;
    request.key_id = key;
    const auto found = std::get<Router::Match>(router_.Find("GET", request.path));
    request.path_captures = {id};
    found.route->handler(std::move(request), client);
    EXPECT_TRUE(client->WaitForEnd());
    return client;
  }
  std::vector<std::string> Events(const Asked& asked, const char* header = "",
                                  const std::string& value = "") {
    const auto client = Ask(asked, header, value);
    EXPECT_EQ(client->status(), 200) << client->bytes();
    return EventsOf(client->bytes());
  }
  EventId Read(const std::string& id, const std::string& key = "") const {
    const auto read = ReadEventId(id, seal_, key);
    EXPECT_TRUE(read.has_value()) << id;
    return read.value_or(EventId());
  }
  // Replies are drawn, and one may end at its first token: asks until there is something to resume.
  std::vector<std::string> LongEvents(const Asked& asked) {
    for (int i = 0; i < 200; ++i) {
      std::vector<std::string> events = Events(asked);
      if (events.size() > 7) return events;
    }
    ADD_FAILURE() << asked.path << " says nothing";
    return std::vector<std::string>(8);
  }
  void ResumeEverywhere() {
    for (const Asked& asked : kAsks) {
      const std::vector<std::string> whole = LongEvents(asked);
      for (size_t i = 0; i < whole.size(); ++i) {
        const std::string id = IdOf(whole[i]);
        ASSERT_NE(id, "") << whole[i];
        // Before the first token nobody knows yet what the cache had of the prompt, and the second
        // time it has more: the numbers of usage are then others.
        if (Read(id).cursor.num_cached < 0 && !has_journal_) continue;
        const std::vector<std::string> rest = Events(asked, "last-event-id", id);
        EXPECT_EQ(rest, std::vector(whole.begin() + static_cast<int>(i) + 1, whole.end()))
            << asked.path << " after " << i;
      }
    }
  }
  void ExpectRefused(const StringClient& client, int status, const std::string& text) {
    EXPECT_EQ(client.status(), status) << client.bytes();
    EXPECT_THAT(client.bytes(), HasSubstr(text));
  }
  int FromJournal() {
    int sum = 0;
    for (const TurnOutcome& outcome : heard_.outcomes) sum += outcome.num_from_journal;
    return sum;
  }
  int Recomputed() {
    int sum = 0;
    for (const TurnOutcome& outcome : heard_.outcomes) sum += outcome.num_recomputed;
    return sum;
  }

  bool has_journal_ = true;
  const std::shared_ptr<ReplyJournal> journal_ = std::make_shared<ReplyJournal>();
  const Secrets secrets_ = Secrets::Fresh();
  const SivSeal seal_{secrets_.For<64>(Purpose::kEventIds)};
  Heard heard_;
};

TEST_F(TurnResumeTest, TheRestFollowsFromTheJournal) {
  Begin();
  ResumeEverywhere();
  EXPECT_GT(FromJournal(), 10);
}

TEST_F(TurnResumeTest, AndWithoutOneFromTheOriginAlone) {
  BeginWithoutJournal();
  ResumeEverywhere();
  EXPECT_EQ(FromJournal(), 0);
  EXPECT_GT(Recomputed(), 10);
}

TEST_F(TurnResumeTest, ChoicesGoOnEachOnItsOwn) {
  Begin();
  const Asked asked{"/v1/completions",
                    R"({"prompt": "hi", "max_tokens": 12, "n": 3, "stream": true})"};
  const std::vector<std::string> whole = Events(asked);
  const auto of = [](const std::vector<std::string>& events, int choice) {
    std::vector<std::string> out;
    const std::string mark = "\"index\":" + std::to_string(choice);
    for (const std::string& event : events) {
      if (event.find(mark) != std::string::npos) out.push_back(event.substr(event.find('\n')));
    }
    return out;
  };
  for (size_t i = 0; i < whole.size(); ++i) {
    const std::vector<std::string> had(whole.begin(), whole.begin() + static_cast<int>(i) + 1);
    const std::vector<std::string> rest = Events(asked, "last-event-id", IdOf(whole[i]));
    for (int choice = 0; choice < 3; ++choice) {
      std::vector<std::string> all = of(had, choice);
      for (const std::string& event : of(rest, choice)) all.push_back(event);
      EXPECT_EQ(all, of(whole, choice)) << i;
    }
    EXPECT_EQ(had.size() + rest.size(), whole.size()) << i;
  }
}

// An endpoint picker writes bodies anew, and is left out while it is gone.
TEST_F(TurnResumeTest, GoesOnWhenABalancerWroteTheBodyAnew) {
  Begin();
  const std::vector<std::string> whole = LongEvents(kAsks[0]);
  Asked anew = kAsks[0];
  anew.body = R"({"max_tokens":40,"messages":[{"content":"\u0068i","role":"user"}],"stream":true,)"
              R"("stream_options":{"include_usage":true}})";
  EXPECT_EQ(Events(anew, "last-event-id", IdOf(whole.at(1))),
            std::vector(whole.begin() + 2, whole.end()));
}

TEST_F(TurnResumeTest, RefusesWhatItCannotSplice) {
  Begin();
  const std::string id = IdOf(LongEvents(kAsks[0]).at(1));
  Asked other = kAsks[0];
  other.body = R"({"messages": [{"role": "user", "content": "ho"}], "stream": true})";
  ExpectRefused(*Ask(other, "last-event-id", id), 409, "request_mismatch");
  ExpectRefused(*Ask(kAsks[0], "last-event-id", id, "anna"), 400, "invalid_event_id");
  ExpectRefused(*Ask(kAsks[0], "last-event-id", "17"), 400, "invalid_event_id");
  ExpectRefused(*Ask(kAsks[0], "last-event-id", std::string(100'000, 'A')), 400,
                "invalid_event_id");
  for (size_t i = 0; i < id.size(); i += 7) {
    std::string forged = id;
    forged[i] = forged[i] == 'A' ? 'B' : 'A';
    ExpectRefused(*Ask(kAsks[0], "last-event-id", forged), 400, "invalid_event_id");
  }
  // As earlier versions wrote counts, which could be changed.
  for (const char* counts : {".2", ".1", ".2.2147483647", ".2-1"}) {
    ExpectRefused(*Ask(kAsks[0], "last-event-id", id + counts), 400, "invalid_event_id");
  }
  const Asked whole{"/v1/completions", R"({"prompt": "hi", "max_tokens": 3})"};
  ExpectRefused(*Ask(whole, "last-event-id", id), 400, "not_a_stream");
  ExpectRefused(*Ask(kAsks[3], "last-event-id", id), 409, "another request");
}

// The published attack, on what two keys really get: ids, and the seeds in them.
TEST_F(TurnResumeTest, NoSeedFollowsFromAnother) {
  Begin();
  const testing::SeedAttack attack(10'000, 4);
  std::set<uint64_t> seeds;
  std::string id_before;
  uint64_t seed_before = 0;
  constexpr int kStreams = 40;
  for (int i = 0; i < kStreams; ++i) {
    const std::string key = i % 2 == 0 ? "anna" : "bert";
    const std::string id = IdOf(EventsOf(Ask(kAsks[0], "", "", key)->bytes()).at(0));
    const uint64_t seed = Read(id, key).origin.seed;
    seeds.insert(seed);
    EXPECT_FALSE(attack.Solve(seed_before, seed)) << i;
    EXPECT_TRUE(attack.SolveAnywhere(id_before, id).empty()) << i;
    seed_before = seed;
    id_before = id;
  }
  EXPECT_EQ(seeds.size(), static_cast<size_t>(kStreams));
}

// Those who share every secret do not share seeds.
TEST_F(TurnResumeTest, NoProcessRepeatsTheSeedsOfAnother) {
  std::set<uint64_t> seeds;
  constexpr int kProcesses = 4, kStreams = 5;
  for (int process = 0; process < kProcesses; ++process) {
    service_.reset();
    router_ = Router();
    Begin();
    for (int i = 0; i < kStreams; ++i) {
      seeds.insert(Read(IdOf(Events(kAsks[0]).at(0))).origin.seed);
    }
  }
  EXPECT_EQ(seeds.size(), static_cast<size_t>(kProcesses * kStreams));
}

TEST_F(TurnResumeTest, RefusesWhenItWouldSaySomethingElse) {
  Begin();
  const std::string id = IdOf(LongEvents(kAsks[0]).at(1));
  service_.reset();
  adjust_ = [](ServedModel& model) { model.content = "other weights"; };
  router_ = Router();
  Begin();
  ExpectRefused(*Ask(kAsks[0], "last-event-id", id), 409, "reply_changed");
}

TEST_F(TurnResumeTest, AnotherProcessWithTheKeyGoesOn) {
  Begin();
  const std::vector<std::string> whole = LongEvents(kAsks[0]);
  service_.reset();
  router_ = Router();
  Begin();
  EXPECT_EQ(Events(kAsks[0], "last-event-id", IdOf(whole[4])),
            std::vector(whole.begin() + 5, whole.end()));
}

TEST_F(TurnResumeTest, AKeyGivesTheSameReplyAgain) {
  Begin();
  int number = 0;
  for (const Asked& asked : kAsks) {
    const std::string key = "key " + std::to_string(++number);
    const std::vector<std::string> first = Events(asked, "idempotency-key", key);
    EXPECT_EQ(Events(asked, "idempotency-key", key), first) << asked.path;
    EXPECT_NE(Events(asked), first) << asked.path;  // ids differ at least
  }
  const Asked whole{"/v1/completions", R"({"prompt": "hi", "max_tokens": 30, "temperature": 2})"};
  const std::string first = Ask(whole, "idempotency-key", "k")->bytes();
  EXPECT_EQ(Ask(whole, "idempotency-key", "k")->bytes(), first);
  EXPECT_NE(Ask(whole, "idempotency-key", "l")->bytes(), first);
  EXPECT_NE(Ask(whole, "idempotency-key", "k", "anna")->bytes(), first);
}

TEST_F(TurnResumeTest, AKeyIsForOneRequest) {
  Begin();
  const Asked one{"/v1/completions", R"({"prompt": "hi", "max_tokens": 3})"};
  const Asked two{"/v1/completions", R"({"prompt": "ho", "max_tokens": 3})"};
  Ask(one, "idempotency-key", "k");
  ExpectRefused(*Ask(two, "idempotency-key", "k"), 422, "idempotency_key_reused");
  ExpectRefused(*Ask(one, "idempotency-key", std::string(256, 'k')), 400,
                "invalid_idempotency_key");
  ExpectRefused(*Ask(one, "idempotency-key", "\x01"), 400, "invalid_idempotency_key");
  EXPECT_EQ(Ask(one, "idempotency-key", std::string(255, 'k'))->status(), 200);
}

TEST_F(TurnResumeTest, AResponseIsFoundByItsName) {
  Begin();
  const Asked asked{"/v1/responses", R"({"input": "hi", "max_output_tokens": 20, "stream": true})"};
  const std::vector<std::string> whole = LongEvents(asked);
  const size_t at = whole[0].find("resp_");
  const std::string id = whole[0].substr(at, whole[0].find('"', at) - at);
  service_.reset();  // another process, which has the journal
  router_ = Router();
  ServiceOptions options;
  options.journal = journal_;
  Begin(options);
  for (const int after : {-1, 0, 3, static_cast<int>(whole.size()) - 2}) {
    const auto client = GetEvents(
        id, after < 0 ? "stream=true" : "stream=true&starting_after=" + std::to_string(after));
    EXPECT_EQ(client->status(), 200) << client->bytes();
    EXPECT_EQ(EventsOf(client->bytes()), std::vector(whole.begin() + after + 1, whole.end()));
  }
  // An EventSource keeps the path that it was given, and names the last event that it has.
  const auto client = GetEvents(id, "stream=true&starting_after=0", "", IdOf(whole[4]));
  EXPECT_EQ(EventsOf(client->bytes()), std::vector(whole.begin() + 5, whole.end()));
  ExpectRefused(*GetEvents(id, "stream=true", "", "17"), 400, "invalid_event_id");
  EXPECT_EQ(GetEvents(id, "stream=true&starting_after=x")->status(), 400);
  EXPECT_EQ(GetEvents(id, "stream=true", "anna")->status(), 404);
  EXPECT_EQ(GetEvents("resp_000000000000000000000000", "stream=true")->status(), 404);
}

TEST_F(TurnResumeTest, ABackgroundResponseIsJoined) {
  Begin();
  const Asked asked{"/v1/responses",
                    R"({"input": "hi", "max_output_tokens": 20, "stream": true,
                        "background": true})"};
  std::string key = "k";
  std::vector<std::string> whole = Events(asked, "idempotency-key", key);
  while (whole.size() <= 5 && key.size() < 200) {
    whole = Events(asked, "idempotency-key", key += "k");
  }
  ASSERT_GT(whole.size(), 5u);
  EXPECT_EQ(Events(asked, "idempotency-key", key), whole);
  EXPECT_EQ(engine_->snapshot()->num_admitted, key.size()) << "joined, not computed again";
  EXPECT_EQ(Events(asked, "last-event-id", IdOf(whole[3])),
            std::vector(whole.begin() + 4, whole.end()));
}

}  // namespace
}  // namespace hearth
