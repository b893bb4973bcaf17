// SPDX-License-Identifier: Apache-2.0
#include "server/turns/overload.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

Admission Refused(Code code) {
  Admission admission;
  admission.status = Status(code, "the queue is full");
  admission.retry_after_s = 7;
  return admission;
}

TEST(Overload, HasTheOperatorsStatus) {
  for (const int status : {429, 503, 529}) {
    const ApiError full = Overloaded(Refused(Code::kExhausted), false, status);
    EXPECT_EQ(full.status, status);
    EXPECT_EQ(full.code, "overloaded");
    EXPECT_EQ(full.type, status == 429 ? "rate_limit_error" : "server_error");
    EXPECT_EQ(full.retry_after_s, 7);
    EXPECT_EQ(TooManyUnread(status).status, status);
    EXPECT_EQ(TooManyUnread(status).retry_after_s, 1);
  }
}

// Whoever sends the same request again gets the same answer: no replica is to be tried for it.
TEST(Overload, OtherRefusalsKeepTheirs) {
  EXPECT_EQ(Overloaded(Refused(Code::kInvalid), false, 503).status, 400);
  const ApiError leaving = Overloaded(Refused(Code::kExhausted), true, 529);
  EXPECT_EQ(leaving.status, 503);
  EXPECT_EQ(leaving.code, "shutting_down");
}

}  // namespace
}  // namespace hearth
