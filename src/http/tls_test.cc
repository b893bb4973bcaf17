// SPDX-License-Identifier: Apache-2.0
#include "http/tls.h"

#include <gtest/gtest.h>

#include <fstream>

#include "testing/tls.h"

namespace hearth {
namespace {

std::unique_ptr<HttpServer> Listen(const TlsFiles& files) {
  HttpOptions options;
  options.tls = files;
  auto server = HttpServer::Listen(options, Router());
  EXPECT_TRUE(server.ok()) << server.status().message();
  return *std::move(server);
}

TEST(Tls, SpeaksForwardSecretAuthenticatedSuitesOnly) {
  const testing::TempDir dir;
  const auto server = Listen(testing::MakeTlsFiles(dir, testing::TlsKeyKind::kRsa));
  const char* good[] = {"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384",
                        "ECDHE-RSA-CHACHA20-POLY1305"};
  for (const char* suite : good) {
    const testing::TlsClient client(server->port(), TLS1_2_VERSION, suite);
    EXPECT_TRUE(client.connected()) << suite;
    EXPECT_EQ(client.suite(), suite);
  }
  const char* bad[] = {"AES128-SHA",           "AES256-GCM-SHA384",
                       "ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES256-SHA384",
                       "AES128-SHA256",        "DHE-RSA-AES128-GCM-SHA256"};
  for (const char* suite : bad) {
    EXPECT_FALSE(testing::TlsClient(server->port(), TLS1_2_VERSION, suite).connected()) << suite;
  }
  EXPECT_TRUE(testing::TlsClient(server->port(), TLS1_3_VERSION, nullptr).connected());
  EXPECT_FALSE(testing::TlsClient(server->port(), TLS1_1_VERSION, nullptr).connected());
}

TEST(Tls, ReadsItsCertificateAgain) {
  const testing::TempDir dir;
  const TlsFiles files = testing::MakeTlsFiles(dir);
  const auto server = Listen(files);
  const testing::TlsClient before(server->port());
  testing::MakeTlsFiles(dir);
  EXPECT_EQ(testing::TlsClient(server->port()).PeerKey(), before.PeerKey()) << "not asked to";
  EXPECT_TRUE(server->ReloadTls().ok());
  const std::string after = testing::TlsClient(server->port()).PeerKey();
  EXPECT_NE(after, before.PeerKey());
  // A file with a mistake in it changes nothing, and says so.
  std::ofstream(files.key_path) << "no key";
  EXPECT_NE(server->ReloadTls().message().find(files.key_path), std::string::npos);
  EXPECT_EQ(testing::TlsClient(server->port()).PeerKey(), after);
}

TEST(Tls, ThereIsNothingToReadAgainWithoutIt) {
  auto server = HttpServer::Listen({}, Router());
  ASSERT_TRUE(server.ok());
  EXPECT_TRUE((*server)->ReloadTls().ok());
}

}  // namespace
}  // namespace hearth
