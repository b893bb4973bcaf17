// SPDX-License-Identifier: Apache-2.0
#include "http/line_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

namespace hearth {
namespace {

using ::testing::HasSubstr;

// What a client reads that says `says` first, until the other side hangs up.
std::string Ask(int port, const std::string& says = "") {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    ::close(socket);
    return "refused";
  }
  if (!says.empty()) {
    EXPECT_EQ(::send(socket, says.data(), says.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(says.size()));
  }
  std::string heard;
  char piece[64];
  ssize_t got = 0;
  while ((got = ::recv(socket, piece, sizeof piece, 0)) > 0) {
    heard.append(piece, static_cast<size_t>(got));
  }
  ::close(socket);
  return heard;
}

TEST(LineServer, TellsEverybodyTheLineOfTheMoment) {
  auto server = LineServer::Listen("127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status().message();
  std::atomic<int> asked{0};
  (*server)->Start([&] { return "up " + std::to_string(++asked) + "\n"; });
  for (int i = 1; i <= 50; ++i) {
    EXPECT_EQ(Ask((*server)->port()), "up " + std::to_string(i) + "\n");
  }
}

TEST(LineServer, HearsOutWhoSpeaksFirst) {
  auto server = LineServer::Listen("127.0.0.1:0");
  ASSERT_TRUE(server.ok());
  // Started after they speak: their words lie unread when the line is sent.
  (*server)->Start([] { return std::string("ready\n"); });
  EXPECT_EQ(Ask((*server)->port(), "agent-send\n"), "ready\n");
}

TEST(LineServer, ASecondOneOnThePortIsRefusedAndALaterOneIsNot) {
  auto server = LineServer::Listen("127.0.0.1:0");
  ASSERT_TRUE(server.ok());
  const std::string address = "127.0.0.1:" + std::to_string((*server)->port());
  (*server)->Start([] { return std::string("one\n"); });
  EXPECT_EQ(Ask((*server)->port()), "one\n");
  EXPECT_THAT(LineServer::Listen(address).status().message(), HasSubstr("cannot listen on"));
  *server = nullptr;
  auto next = LineServer::Listen(address);
  ASSERT_TRUE(next.ok()) << next.status().message();
  (*next)->Start([] { return std::string("two\n"); });
  EXPECT_EQ(Ask((*next)->port()), "two\n");
}

TEST(LineServer, KnowsAddresses) {
  for (const char* wrong : {"", ":9", "9", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x",
                            "127.0.0.1:65536", "127.0.0.1:9 ", "[::1:9", "somebody:9", "::1:9"}) {
    EXPECT_THAT(LineServer::Listen(wrong).status().message(), HasSubstr("expected an address"))
        << wrong;
  }
  EXPECT_TRUE(LineServer::Listen("localhost:0").ok());
  EXPECT_TRUE(LineServer::Listen("[::1]:0").ok());
}

}  // namespace
}  // namespace hearth
