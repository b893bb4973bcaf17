// SPDX-License-Identifier: Apache-2.0
#include "server/turns/session_key.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

std::string Key(const std::string& body, const std::string& header = "") {
  HttpRequest http;
  if (!header.empty()) http.headers.push_back({kSessionHeader, header});
  return SessionKeyOf(http, *ParseJson(body));
}

constexpr const char* kFirst = R"({"role": "user", "content": "hi"})";
constexpr const char* kSystem = R"({"role": "system", "content": "be brief"})";
constexpr const char* kReply = R"({"role": "assistant", "content": "hello"})";

std::string Chat(std::initializer_list<const char*> messages, const std::string& more = "") {
  std::string list;
  for (const char* each : messages) list += (list.empty() ? "" : ", ") + std::string(each);
  return R"({"messages": [)" + list + "]" + more + "}";
}

TEST(SessionKey, TheHeaderCountsFirstThenTheKeyThenTheUser) {
  const std::string all = R"({"prompt_cache_key": "k", "user": "u", "messages": []})";
  EXPECT_EQ(Key(all, "abc-1"), "abc-1");
  const std::string by_key = Key(all);
  EXPECT_EQ(by_key, Key(R"({"prompt_cache_key": "k"})"));
  const std::string by_user = Key(R"({"user": "u"})");
  EXPECT_NE(by_key, by_user);
  EXPECT_NE(Key(R"({"user": "k"})"), by_key) << "a user is no key of the same word";
  EXPECT_EQ(Key(R"({"prompt_cache_key": "", "user": "u"})"), by_user);
  EXPECT_EQ(Key(R"({"prompt_cache_key": null, "user": "u"})"), by_user);
  for (const std::string& key : {by_key, by_user}) {
    EXPECT_EQ(key.size(), 16u);
    EXPECT_EQ(key.find_first_not_of("0123456789abcdef"), std::string::npos) << key;
  }
}

TEST(SessionKey, AHeaderThatIsNoWordIsNotUsed) {
  const std::string body = R"({"user": "u"})";
  EXPECT_EQ(Key(body, "two words"), Key(body));
  EXPECT_EQ(Key(body, std::string(257, 'a')), Key(body));
  EXPECT_EQ(Key(body, "\xc3\xa4"), Key(body));
  EXPECT_EQ(Key(body, std::string(256, 'a')), std::string(256, 'a'));
}

// What the second request of a conversation has and the first has not must not count.
TEST(SessionKey, StaysTheSameThroughoutAConversation) {
  EXPECT_EQ(Key(Chat({kFirst})), Key(Chat({kFirst, kReply, kFirst})));
  const std::string with_system = Key(Chat({kSystem, kFirst}));
  EXPECT_EQ(with_system, Key(Chat({kSystem, kFirst, kReply, kFirst}, R"(, "seed": 3)")));
  EXPECT_NE(with_system, Key(Chat({kFirst})));
  EXPECT_NE(with_system, Key(Chat({kSystem, kReply})));
  EXPECT_EQ(Key(R"({"input": [{"role": "user", "content": "hi"}]})"), Key(Chat({kFirst})));
}

TEST(SessionKey, IsTheSameEverywhere) { EXPECT_EQ(Key(R"({"user": "u"})"), "4a61e2a8f2179a0d"); }

TEST(SessionKey, NothingTells) {
  for (const char* body : {"{}", "[]", R"({"messages": []})", R"({"messages": "x"})",
                           R"({"user": 3})", R"({"prompt": "x"})", R"({"input": "x"})"}) {
    EXPECT_EQ(Key(body), "") << body;
  }
}

}  // namespace
}  // namespace hearth
