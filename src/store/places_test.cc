// SPDX-License-Identifier: Apache-2.0
#include "store/places.h"

#include <gtest/gtest.h>

#include <map>

namespace hearth {
namespace {

Environment Of(std::map<std::string, std::string> variables) {
  return [variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
}

TEST(Places, FollowTheHomeFolder) {
  Result<StorePlaces> places = FindPlaces(Of({{"HOME", "/h/"}}));
  ASSERT_TRUE(places.ok());
  EXPECT_EQ(places->own, "/h/.local/share/hearth/models");
  EXPECT_EQ(places->ollama[0], "/h/.ollama/models");
  EXPECT_EQ(places->hugging_face, "/h/.cache/huggingface/hub");
  EXPECT_EQ(places->lm_studio,
            (std::vector<std::string>{"/h/.lmstudio/models", "/h/.cache/lm-studio/models"}));
}

TEST(Places, VariablesWin) {
  Result<StorePlaces> places = FindPlaces(Of(
      {{"HOME", "/h"}, {"XDG_DATA_HOME", "/data"}, {"OLLAMA_MODELS", "/o/"}, {"HF_HOME", "/hf"}}));
  ASSERT_TRUE(places.ok());
  EXPECT_EQ(places->own, "/data/hearth/models");
  EXPECT_EQ(places->ollama, (std::vector<std::string>{"/o"}));
  EXPECT_EQ(places->hugging_face, "/hf/hub");
  places = FindPlaces(Of({{"HEARTH_MODELS", "/m//"}, {"HF_HUB_CACHE", "/c"}, {"HF_HOME", "/hf"}}));
  ASSERT_TRUE(places.ok());
  EXPECT_EQ(places->own, "/m");
  EXPECT_EQ(places->hugging_face, "/c");
  EXPECT_TRUE(places->lm_studio.empty());
}

TEST(Places, RelativeXdgFoldersCountAsNone) {
  Result<StorePlaces> places =
      FindPlaces(Of({{"HOME", "/h"}, {"XDG_DATA_HOME", "data"}, {"XDG_CACHE_HOME", "./cache"}}));
  ASSERT_TRUE(places.ok());
  EXPECT_EQ(places->own, "/h/.local/share/hearth/models");
  EXPECT_EQ(places->hugging_face, "/h/.cache/huggingface/hub");
}

TEST(Places, WithoutAHomeTheFolderMustBeNamed) {
  const Status status = FindPlaces(Of({})).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("HEARTH_MODELS"), std::string::npos);
}

}  // namespace
}  // namespace hearth
