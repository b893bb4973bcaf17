// SPDX-License-Identifier: Apache-2.0
#include "http/head_check.h"

#include <gtest/gtest.h>

#include <string>

namespace hearth {
namespace {

int StatusOf(const std::string& head, const HttpLimits& limits = {}) {
  const auto refusal = CheckHead(head, limits);
  return refusal ? refusal->status : 0;
}

// A head with one line of the test's own between the request line and the end.
std::string With(const std::string& line) {
  return "POST /v1/x HTTP/1.1\r\nHost: a\r\n" + line + "\r\n\r\n";
}

TEST(HeadCheck, TakesWhatClientsSend) {
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"), 0);
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\n\r\n"), 0);
  EXPECT_EQ(StatusOf("GET /a?b=c%20d HTTP/1.1\r\nhOsT:x\r\nAccept: */*\r\n\r\n"), 0);
  EXPECT_EQ(StatusOf(With("Content-Length: 12")), 0);
  EXPECT_EQ(StatusOf(With("Transfer-Encoding: Chunked")), 0);
  EXPECT_EQ(StatusOf(With("Expect: 100-Continue")), 0);
  EXPECT_EQ(StatusOf(With("X-Name: caf\xc3\xa9\tau lait")), 0);
}

struct Bad {
  const char* name;
  std::string head;
  int status;
};

TEST(HeadCheck, RefusesWhatTwoReadersCouldReadDifferently) {
  const Bad cases[] = {
      {"bare LF after the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n", 400},
      {"bare LF after a header", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400},
      {"bare CR in a value", With("X: a\rContent-Length: 5"), 400},
      {"folded line", With("X: a\r\n b"), 400},
      {"tab-folded line", With("X: a\r\n\tb"), 400},
      {"blank before the colon", With("Content-Length : 5"), 400},
      {"no colon", With("nonsense"), 400},
      {"empty name", With(": a"), 400},
      {"NUL in a value", With(std::string("X: a\0b", 6)), 400},
      {"DEL in a value", With("X: a\x7f"), 400},
      {"two lengths", With("Content-Length: 5\r\nContent-Length: 5"), 400},
      {"two lengths in one", With("Content-Length: 5, 5"), 400},
      {"signed length", With("Content-Length: +5"), 400},
      {"negative length", With("Content-Length: -5"), 400},
      {"hexadecimal length", With("Content-Length: 0x5"), 400},
      {"empty length", With("Content-Length:"), 400},
      {"overlong length", With("Content-Length: 99999999999999999999"), 400},
      {"length and encoding", With("Content-Length: 5\r\nTransfer-Encoding: chunked"), 400},
      {"encoding twice", With("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), 400},
      {"chunked twice", With("Transfer-Encoding: chunked, chunked"), 501},
      {"obfuscated chunked",
       With("Transfer-Encoding: \x0b"
            "chunked"),
       400},
      {"identity", With("Transfer-Encoding: identity"), 501},
      {"gzip", With("Transfer-Encoding: gzip, chunked"), 501},
      {"encoding in HTTP/1.0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
       400},
      {"no host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"two hosts", With("Host: b"), 400},
      {"absolute target", "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"authority target", "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"asterisk target", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"blank in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"fragment", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"raw UTF-8 in the target", "GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"no version", "GET /\r\n\r\n", 400},
      {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\n", 505},
      {"lower-case version", "GET / http/1.1\r\nHost: a\r\n\r\n", 400},
      {"two blanks", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"empty request line", "\r\n\r\n", 400},
      {"unknown expectation", With("Expect: coffee"), 417},
      {"bytes after", "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET", 400},
  };
  for (const Bad& bad : cases) EXPECT_EQ(StatusOf(bad.head), bad.status) << bad.name;
}

TEST(HeadCheck, HoldsItsLimits) {
  std::string many = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 63; ++i) many += "A: b\r\n";
  EXPECT_EQ(StatusOf(many + "\r\n"), 0);
  EXPECT_EQ(StatusOf(many + "A: b\r\n\r\n"), 431);
  EXPECT_EQ(StatusOf("GET /" + std::string(2047, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
  EXPECT_EQ(StatusOf("GET /" + std::string(2048, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n"), 414);
  EXPECT_EQ(StatusOf(With("X: " + std::string(32 << 10, 'a'))), 431);
}

TEST(HeadCheck, FindsTheEnd) {
  EXPECT_FALSE(HeadEnd("GET / HTTP/1.1\r\nHost: a\r\n"));
  EXPECT_FALSE(HeadEnd(""));
  EXPECT_EQ(HeadEnd("a\r\n\r\nbody"), 5u);
}

}  // namespace
}  // namespace hearth
