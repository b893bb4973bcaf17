// SPDX-License-Identifier: Apache-2.0
#include "base/near_match.h"

#include <gtest/gtest.h>

#include <vector>

namespace hearth {
namespace {

TEST(NearMatch, CountsInsertedRemovedChangedAndSwappedLetters) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("port", "port"), 0u);
  EXPECT_EQ(EditDistance("", "port"), 4u);
  EXPECT_EQ(EditDistance("prot", "port"), 1u);  // neighbours swapped
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("ports", "port"), 1u);
  EXPECT_EQ(EditDistance("port", "sport"), 1u);
}

TEST(NearMatch, FindsWhatWasMeantAndNothingElse) {
  const std::vector<std::string> known = {"port", "host", "max-sequences", "tls-key"};
  EXPECT_EQ(NearMatch("prot", known), "port");
  EXPECT_EQ(NearMatch("max_sequences", known), "max-sequences");
  EXPECT_EQ(NearMatch("max-seqences", known), "max-sequences");
  EXPECT_EQ(NearMatch("colour", known), "");
  EXPECT_EQ(NearMatch("", known), "");
  EXPECT_EQ(NearMatch("x", known), "") << "one letter shares nothing with any";
  EXPECT_EQ(NearMatch("port", std::span<const std::string>()), "");
}

TEST(NearMatch, LongNamesAreNotCompared) {
  const std::vector<std::string> known = {std::string(65, 'a')};
  EXPECT_EQ(NearMatch(std::string(65, 'a'), known), "");
  EXPECT_EQ(NearMatch(std::string(64, 'a'), known), known[0]);
}

TEST(NearMatch, SpeaksOnlyWhenThereIsOne) {
  const std::vector<std::string> known = {"port"};
  EXPECT_EQ(DidYouMean("pott", known), "; did you mean \"port\"?");
  EXPECT_EQ(DidYouMean("hearth", known), "");
}

}  // namespace
}  // namespace hearth
