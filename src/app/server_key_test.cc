// SPDX-License-Identifier: Apache-2.0
#include "app/server_key.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace hearth {
namespace {

TEST(ServerKey, IsTheFilesElseTheVariables) {
  const std::string path = ::testing::TempDir() + "server_key_test";
  std::ofstream(path) << "from-file \r\n";
  ASSERT_EQ(setenv("HEARTH_API_KEY", "from-variable", 1), 0);
  EXPECT_EQ(*ServerKey(path), "from-file");
  EXPECT_EQ(*ServerKey(""), "from-variable");
  unsetenv("HEARTH_API_KEY");
  EXPECT_EQ(*ServerKey(""), "");
  EXPECT_FALSE(ServerKey(path + ".none").ok());
}

}  // namespace
}  // namespace hearth
