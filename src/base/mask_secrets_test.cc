// SPDX-License-Identifier: Apache-2.0
#include "base/mask_secrets.h"

#include <gtest/gtest.h>

#include "base/result.h"

namespace hearth {
namespace {

struct Case {
  const char* text;
  const char* masked;
};

TEST(MaskSecrets, LeavesWhatIsNone) {
  for (const char* text : {"",
                           "redis://cache.example:6379/1",
                           "http://127.0.0.1:4318/v1/traces",
                           "http://host:4318/users/@ada",
                           "http://[::1]:8080/a@b",
                           "http://[::1]/a@b",
                           "unix:///run/redis@1.sock",
                           "postgresql://ada@db.example/jobs?sslmode=require",
                           "mail ada@example.org: 12 tokens=3, max_tokens=5",
                           "key = keys.json",
                           "tls-key=/etc/k.pem",
                           "the password is wrong",
                           "FATAL: password authentication failed for user \"ada\"",
                           "expected https://, found x@y",
                           "a basic test",
                           "a bearer of news",
                           "://",
                           "password",
                           "redis://a:6379 and redis://b:6379: no answer",
                           "topic kv@127.0.0.1:5557@tiny",
                           "owner/repo@main:Q4_0",
                           "warning: ada@h"}) {
    EXPECT_EQ(MaskSecrets(text), text);
    const bool is_value = std::string_view(text).find(' ') == std::string_view::npos;
    EXPECT_FALSE(is_value && HoldsSecret(text)) << text;
  }
}

TEST(MaskSecrets, LoginsOfUrls) {
  const Case cases[] = {
      {"redis://:hunter2@h:6379", "redis://:***@h:6379"},
      {"REDISS://ada:hunter2@h", "REDISS://ada:***@h"},
      {"redis://hunter2@h", "redis://***@h"},
      {"postgresql://ada:hunter2@db/jobs", "postgresql://ada:***@db/jobs"},
      {"postgres://ada:@db", "postgres://ada:***@db"},
      {"https://hunter2@h/x", "https://***@h/x"},
      {"http://ada:hunter2@h:1/x?y=z", "http://ada:***@h:1/x?y=z"},
      {"tcp://ada:hunter2@h:1", "tcp://ada:***@h:1"},
      {"amqp+tls://ada:hunter2@h", "amqp+tls://ada:***@h"},
      {"redis://ada:hun%40ter2@h", "redis://ada:***@h"},
      // What nobody should write, and everybody does.
      {"redis://ada:hun@ter2@h", "redis://ada:***@h"},
      {"redis://:hun/ter2@h", "redis://:***@h"},
      {"http://ada:hun/ter2@h", "http://ada:***@h"},
      {"http://ada:hun?ter#2@h", "http://ada:***@h"},
      {"redis://:12/hunter2@h", "redis://:***@h"},
      {"postgresql://ada:hun ter2@db/jobs", "postgresql://ada:***@db/jobs"},
      {"redis://:hun:ter2@h", "redis://:***@h"},
      // What is no URL.
      {"ada:hunter2@h", "ada:***@h"},
      {"redis:/:hunter2@h", "redis:***@h"},
      {"the server \"ada:hun@ter2@h\": no", "the server \"ada:***@h\": no"},
      // Several.
      {"redis://:one@a,rediss://u:two@b:1/2,redis://c",
       "redis://:***@a,rediss://u:***@b:1/2,redis://c"},
      {"a redis://:one@a b http://x:two@c d", "a redis://:***@a b http://x:***@c d"},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(MaskSecrets(each.text), each.masked);
    EXPECT_TRUE(HoldsSecret(each.text)) << each.text;
  }
}

TEST(MaskSecrets, Parameters) {
  const Case cases[] = {
      {"postgresql://db/jobs?user=ada&password=hunter2&sslmode=require",
       "postgresql://db/jobs?user=ada&password=***&sslmode=require"},
      {"postgresql://db/jobs?sslpassword=hunter2", "postgresql://db/jobs?sslpassword=***"},
      {"host=db password=hunter2 user=ada", "host=db password=*** user=ada"},
      {"host=db password = 'hun ter\\'2' user=ada", "host=db password = *** user=ada"},
      {"host=db PassWord=hun\\ ter2 user=ada", "host=db PassWord=*** user=ada"},
      {"PGPASSWORD=hunter2 psql", "PGPASSWORD=*** psql"},
      {"postgresql://ada@db?password=hun@ter2", "postgresql://ada@db?password=***"},
      {"redis://:hun?t=er2@h", "redis://:***@h"},
      {"https://h/x?token=hunter2", "https://h/x?token=***"},
      {"https://h/x?a=b&access_token=hunter2#top", "https://h/x?a=b&access_token=***#top"},
      {"https://h/x?api_key=hunter2&b", "https://h/x?api_key=***&b"},
      {"https://h/x?key=hunter2", "https://h/x?key=***"},
      {"https://h/x?X-Amz-Signature=hunter2&X-Amz-Credential=hunter2",
       "https://h/x?X-Amz-Signature=***&X-Amz-Credential=***"},
      {"https://h/x?sig=hunter2", "https://h/x?sig=***"},
      {"https://h/x#access_token=hunter2", "https://h/x#access_token=***"},
      {"{\"password\": \"hun \\\" ter2\", \"a\": 1}", "{\"password\": ***, \"a\": 1}"},
      {"password = \"hunter2\"", "password = ***"},
      {"client_secret=hunter2", "client_secret=***"},
      {"Authorization: Bearer hunter2hunter2", "Authorization: Bearer ***"},
      {"authorization: basic aHVudGVyMjpodW50ZXIy x", "authorization: basic *** x"},
      {"https://u:hunter2@h/?password=hunter2", "https://u:***@h/?password=***"},
  };
  for (const Case& each : cases) EXPECT_EQ(MaskSecrets(each.text), each.masked);
}

TEST(MaskSecrets, InMessages) {
  EXPECT_EQ(MaskSecrets("--x \"http://u:hunter2@h\": expected a URL"),
            "--x \"http://u:***@h\": expected a URL");
  EXPECT_EQ(MaskSecrets("--x " + Quoted("redis://:hun\"ter2@h") + ": no"),
            "--x \"redis://:***@h\": no");
  EXPECT_EQ(MaskSecrets("redis://:hun ter2@h: no answer from http://x:1/y"),
            "redis://:***@h: no answer from http://x:1/y");
  EXPECT_EQ(MaskSecrets("<https://u:hunter2@h>"), "<https://u:***@h>");
}

TEST(MaskSecrets, AValueIsOneThing) {
  EXPECT_EQ(MaskSecretValue("http://ada:hun ter2@h"), "http://ada:***@h");
  EXPECT_EQ(MaskSecretValue("http://ada:hun\"ter2@h"), "http://ada:***@h");
  EXPECT_EQ(MaskSecretValue("https://h/?token=hun ter2&a=b"), "https://h/?token=***&a=b");
}

// Whatever surrounds it: a login's password is never there afterwards.
TEST(MaskSecrets, WhateverThePasswordIs) {
  const std::string letters = "a0:/?#@%&=,;.+-_~!$()*'[]{}|^`";
  for (const char* scheme : {"redis", "rediss", "postgresql", "postgres", "mysql"}) {
    for (const char first : letters) {
      for (const char last : letters) {
        const std::string password = std::string("S") + first + "cret" + last + "S";
        const std::string url = std::string(scheme) + "://ada:" + password + "@h:1/2";
        EXPECT_EQ(MaskSecretValue(url), std::string(scheme) + "://ada:***@h:1/2");
        if (first == '\'' || last == '\'') continue;  // which quotes a URL in a message
        EXPECT_EQ(MaskSecrets("no: " + url + ": x"),
                  std::string("no: ") + scheme + "://ada:***@h:1/2: x");
      }
    }
  }
}

}  // namespace
}  // namespace hearth
