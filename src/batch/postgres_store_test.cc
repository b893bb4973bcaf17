// SPDX-License-Identifier: Apache-2.0
#include "batch/batch_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Nothing listens on port 1. Whatever libpq thinks of the URL, no part of the password is told.
TEST(PostgresStore, ThePasswordIsInNoMessage) {
  for (const char* url :
       {"postgresql://ada:hunter2@127.0.0.1:1/jobs",
        "postgresql://ada:hun/hunter2@127.0.0.1:1/jobs",
        "postgresql://ada:hun@hunter2@127.0.0.1:1/jobs",
        "postgresql://ada:hunter2%zz@127.0.0.1:1/jobs",
        "postgresql://ada:hunter2:x@127.0.0.1:1/jobs", "postgresql://ada:hunter2#@127.0.0.1:1/jobs",
        "postgresql://127.0.0.1:1/jobs?user=ada&password=hunter2",
        "postgresql://127.0.0.1:1/jobs?passwrd=hunter2", "postgresql://[hunter2@127.0.0.1:1/jobs",
        "postgresql://ada:1/hunter2@127.0.0.1:1/jobs"}) {
    const Status status = BatchStore::Open(url, BatchQuota()).status();
    ASSERT_FALSE(status.ok()) << url;
    EXPECT_THAT(status.message(), HasSubstr("PostgreSQL"));
    EXPECT_THAT(status.message(), Not(HasSubstr("hun"))) << url;
  }
}

TEST(PostgresStore, AWrongPasswordsLettersAreNamed) {
  const Status status =
      BatchStore::Open("postgresql://ada:hun/ter2@127.0.0.1:1/jobs", BatchQuota()).status();
  EXPECT_THAT(status.message(), HasSubstr("%XX"));
}

}  // namespace
}  // namespace hearth
