// SPDX-License-Identifier: Apache-2.0
// The libraries come when they are asked for, and not before.
#include "late/late.h"

#include <curl/curl.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <zmq.h>

#include <fstream>
#include <string>

#include "late/late_library.h"

namespace hearth {
namespace {

bool IsMapped(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/" + library) != std::string::npos) return true;
  }
  return false;
}

TEST(LateLibrary, SaysWhatToInstall) {
  LateLibrary none("libno-such-thing.so.1", "libno-such-thing1");
  const Status status = none.Load();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(status.message().find("install it (Debian: libno-such-thing1)"), std::string::npos)
      << status.message();
}

TEST(Late, CurlComesWhenItIsUsed) {
  EXPECT_FALSE(IsMapped("libcurl"));
  ASSERT_TRUE(LoadCurl().ok());
  EXPECT_TRUE(IsMapped("libcurl"));
  EXPECT_TRUE(LoadCurl().ok()) << "again";
  CURL* const easy = curl_easy_init();
  ASSERT_NE(easy, nullptr);
  // An option of each kind of argument; what comes back shows that they arrived whole.
  EXPECT_EQ(curl_easy_setopt(easy, CURLOPT_TIMEOUT, 5L), CURLE_OK);
  EXPECT_EQ(curl_easy_setopt(easy, CURLOPT_TIMEOUT, -5L), CURLE_BAD_FUNCTION_ARGUMENT);
  EXPECT_EQ(curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t{1} << 40), CURLE_OK);
  EXPECT_EQ(curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t{-2}),
            CURLE_BAD_FUNCTION_ARGUMENT);
  int mark = 0;
  EXPECT_EQ(curl_easy_setopt(easy, CURLOPT_PRIVATE, static_cast<void*>(&mark)), CURLE_OK);
  void* back = nullptr;
  EXPECT_EQ(curl_easy_getinfo(easy, CURLINFO_PRIVATE, &back), CURLE_OK);
  EXPECT_EQ(back, &mark);
  curl_easy_cleanup(easy);
  EXPECT_EQ(curl_getdate("Thu, 01 Jan 1970 00:01:40 GMT", nullptr), 100);
}

TEST(Late, LibpqComesWhenItIsUsed) {
  EXPECT_FALSE(IsMapped("libpq"));
  ASSERT_TRUE(LoadLibpq().ok());
  const char* names[] = {"host", "connect_timeout", nullptr};
  const char* values[] = {"/nowhere", "1", nullptr};
  PGconn* const connection = PQconnectdbParams(names, values, 0);
  EXPECT_EQ(PQstatus(connection), CONNECTION_BAD);
  EXPECT_NE(std::string(PQerrorMessage(connection)).find("/nowhere"), std::string::npos);
  PQfinish(connection);
}

TEST(Late, ZmqComesWhenItIsUsed) {
  EXPECT_FALSE(IsMapped("libzmq"));
  ASSERT_TRUE(LoadZmq().ok());
  void* const context = zmq_ctx_new();
  void* const socket = zmq_socket(context, ZMQ_PUB);
  EXPECT_NE(socket, nullptr);
  EXPECT_NE(zmq_bind(socket, "tcp://nowhere"), 0);
  EXPECT_EQ(zmq_errno(), EINVAL);
  EXPECT_EQ(zmq_close(socket), 0);
  EXPECT_EQ(zmq_ctx_term(context), 0);
}

}  // namespace
}  // namespace hearth
