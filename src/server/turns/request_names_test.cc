// SPDX-License-Identifier: Apache-2.0
#include "server/turns/request_names.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(RequestNames, AreNeverTheSame) {
  EXPECT_EQ(NewId().size(), 24u);
  EXPECT_NE(NewId(), NewId());
}

TEST(RequestNames, OnlyAPlainTraceParentGoesOn) {
  HttpRequest http;
  EXPECT_EQ(TraceParent(http), "");
  const std::string good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  http.headers.push_back({"traceparent", good});
  EXPECT_EQ(TraceParent(http), good);
  http.headers[0].value[3] = '"';
  EXPECT_EQ(TraceParent(http), "");
}

}  // namespace
}  // namespace hearth
