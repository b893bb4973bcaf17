// SPDX-License-Identifier: Apache-2.0
#include "http/authority.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

// What Node 18's `new URL("http://" + text)` and Python 3.11's `urlsplit` agree on; tests/server/
// authority_test.py asks them about many more.
TEST(Authority, TakesNamesAndAddressesWithPorts) {
  const struct {
    const char* text;
    Authority is;
  } cases[] = {
      {"localhost", {"localhost", -1}},
      {"LocalHost:8080", {"localhost", 8080}},
      {"127.0.0.1:0", {"127.0.0.1", 0}},
      {"255.255.255.255:65535", {"255.255.255.255", 65535}},
      {"[::1]", {"[::1]", -1}},
      {"[0:0:0:0:0:0:0:1]:443", {"[::1]", 443}},
      {"[FE80::A]:1", {"[fe80::a]", 1}},
      {"a-b_c.xn--bcher-kva.example:1", {"a-b_c.xn--bcher-kva.example", 1}},
      {"1password.example", {"1password.example", -1}},
  };
  for (const auto& one : cases) EXPECT_EQ(ParseAuthority(one.text), one.is) << one.text;
}

constexpr const char* kRefused[] = {
    "",
    ":80",
    "[::1].evil.example",
    "[::1]evil",
    "[::1]:80:80",
    "[::1",
    "::1",
    "[]",
    "[::1]]",
    "[[::1]]",
    "[localhost]",
    "[127.0.0.1]",
    "[::1%lo]",
    "[::1%25lo]",
    "[v1.a]",
    "127.0.0.1:80@evil.example",
    "evil.example@127.0.0.1",
    "127.0.0.1@evil.example",
    "localhost:80/",
    "localhost/",
    "localhost?",
    "localhost#",
    "localhost\\evil",
    "localhost,evil.example",
    "localhost, evil.example",
    "local host",
    " localhost",
    "localhost:",
    "localhost:+80",
    "localhost:-1",
    "localhost:0x50",
    "localhost:080",
    "localhost:65536",
    "localhost:4294967376",
    "localhost: 80",
    "localhost:80 ",
    "local%68ost",
    "localhost.",
    ".localhost",
    "a..b",
    "127.1",
    "127.0.0.01",
    "127.0.0.256",
    "127.0.0.1.",
    "127...1",
    "127.0.0.1.1",
    "0x7f.0.0.1",
    "0x7f000001",
    "2130706433",
    "evil.127",
    "evil.0x7f",
    "evil.0x",
    "b\xc3\xbc"
    "cher.example",
    "\xef\xbd\x8cocalhost",
};

TEST(Authority, RefusesWhatAnotherReaderCouldTakeForAnotherHost) {
  for (const char* text : kRefused) EXPECT_FALSE(ParseAuthority(text)) << text;
  EXPECT_FALSE(ParseAuthority(std::string_view("[::1\0]", 6)));
  EXPECT_FALSE(ParseAuthority(std::string_view("localhost\0.evil", 15)));
  EXPECT_TRUE(ParseAuthority(std::string(63, 'a')));
  EXPECT_FALSE(ParseAuthority(std::string(64, 'a')));
  std::string longest;
  for (int i = 0; i < 126; ++i) longest += "a.";
  EXPECT_TRUE(ParseAuthority(longest + "a"));
  EXPECT_FALSE(ParseAuthority(longest + "aa"));
}

TEST(Authority, KnowsThisMachine) {
  for (const char* text : {"localhost:1", "LOCALHOST", "127.0.0.1", "127.9.9.9:7", "[::1]"}) {
    EXPECT_TRUE(IsLoopbackHost(*ParseAuthority(text))) << text;
  }
  for (const char* text :
       {"localhost.example", "128.0.0.1", "127.evil", "[::2]", "[::ffff:127.0.0.1]", "10.0.0.1"}) {
    EXPECT_FALSE(IsLoopbackHost(*ParseAuthority(text))) << text;
  }
}

TEST(WebOrigin, IsASchemeAndAnAuthorityAlone) {
  EXPECT_EQ(ParseOrigin("http://LOCALHOST:3000")->Text(), "http://localhost:3000");
  EXPECT_EQ(ParseOrigin("https://a.example:443")->Text(), "https://a.example");
  EXPECT_EQ(ParseOrigin("https://a.example:80")->Text(), "https://a.example:80");
  EXPECT_EQ(ParseOrigin("http://[0::1]:80")->Text(), "http://[::1]");
  EXPECT_EQ(ParseOrigin("chrome-extension://abc")->Text(), "chrome-extension://abc");
  for (const char* text :
       {"", "null", "*", "http://", "http://a/", "http:/a", "//a", "a", "http://a, http://b",
        "http://u@a", "http://a?b", "9p://a", "ht tp://a", "http://[::1].evil.example", "://a"}) {
    EXPECT_FALSE(ParseOrigin(text)) << text;
  }
}

}  // namespace
}  // namespace hearth
