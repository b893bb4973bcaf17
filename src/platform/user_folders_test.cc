// SPDX-License-Identifier: Apache-2.0
#include "platform/user_folders.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

namespace hearth {
namespace {

Environment Of(std::map<std::string, std::string> variables) {
  return [variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
}

TEST(UserFolders, AreBelowTheHome) {
  const Environment home = Of({{"HOME", "/h/"}});
  EXPECT_EQ(PathOf(UserFolder::kConfig, home), "/h/.config");
  EXPECT_EQ(PathOf(UserFolder::kData, home), "/h/.local/share");
  EXPECT_EQ(PathOf(UserFolder::kState, home), "/h/.local/state");
  EXPECT_EQ(PathOf(UserFolder::kCache, home), "/h/.cache");
  EXPECT_EQ(PathOf(UserFolder::kCache, Of({{"HOME", "/"}})), "/.cache");
}

TEST(UserFolders, AreWhereTheirVariableSays) {
  const Environment all = Of({{"HOME", "/h"},
                              {"XDG_CONFIG_HOME", "/c"},
                              {"XDG_DATA_HOME", "/d//"},
                              {"XDG_STATE_HOME", "/s/"},
                              {"XDG_CACHE_HOME", "/"}});
  EXPECT_EQ(PathOf(UserFolder::kConfig, all), "/c");
  EXPECT_EQ(PathOf(UserFolder::kData, all), "/d");
  EXPECT_EQ(PathOf(UserFolder::kState, all), "/s");
  EXPECT_EQ(PathOf(UserFolder::kCache, all), "/");
}

TEST(UserFolders, RelativePathsCountAsNone) {
  EXPECT_EQ(PathOf(UserFolder::kData, Of({{"HOME", "/h"}, {"XDG_DATA_HOME", "data"}})),
            "/h/.local/share");
  EXPECT_EQ(PathOf(UserFolder::kData, Of({{"HOME", "/h"}, {"XDG_DATA_HOME", "./data"}})),
            "/h/.local/share");
  EXPECT_EQ(PathOf(UserFolder::kData, Of({{"HOME", "h"}})), "");
  EXPECT_EQ(PathOf(UserFolder::kData, Of({})), "");
}

TEST(UserFolders, TheProcessHasAnEnvironment) {
  setenv("HEARTH_TEST_FOLDER", "x", 1);
  EXPECT_EQ(ProcessEnvironment()("HEARTH_TEST_FOLDER"), "x");
  unsetenv("HEARTH_TEST_FOLDER");
  EXPECT_EQ(ProcessEnvironment()("HEARTH_TEST_FOLDER"), "");
}

}  // namespace
}  // namespace hearth
