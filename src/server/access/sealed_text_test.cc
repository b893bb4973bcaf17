// SPDX-License-Identifier: Apache-2.0
#include "server/access/sealed_text.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(TextSealer, OpensWhatItSealed) {
  const TextSealer sealer(NewSealKey());
  for (size_t size : {0, 1, 2, 3, 15, 16, 17, 1000, 100'000}) {
    std::string text;
    for (size_t i = 0; i < size; ++i) text += static_cast<char>(i * 37);
    const std::string sealed = sealer.Seal(text, "anna");
    EXPECT_EQ(sealer.Open(sealed, "anna"), text) << size;
    EXPECT_EQ(sealer.Seal(text, "anna"), sealed) << "the same every time";
    EXPECT_EQ(sealer.Open(sealed, "bert"), std::nullopt) << "for one tenant alone";
    EXPECT_NE(sealer.Seal(text, "bert"), sealed);
  }
  EXPECT_EQ(sealer.Seal("secret plan", "").find("secret"), std::string::npos);
  EXPECT_EQ(TextSealer(NewSealKey()).Open(sealer.Seal("x", ""), ""), std::nullopt);
}

TEST(TextSealer, NoticesEveryChange) {
  const TextSealer sealer(NewSealKey());
  const std::string sealed = sealer.Seal("thoughts about owls", "anna");
  ASSERT_TRUE(sealer.Open(sealed, "anna"));
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_EQ(sealer.Open(changed, "anna"), std::nullopt) << i;
    EXPECT_EQ(sealer.Open(sealed.substr(0, i), "anna"), std::nullopt) << i;
  }
  for (const char* odd : {"", "hearth1.", "hearth1.====", "hearth1.AAAA", "plain thoughts"}) {
    EXPECT_EQ(sealer.Open(odd, "anna"), std::nullopt) << odd;
  }
}

TEST(TextSealer, IsBounded) {
  const TextSealer sealer(NewSealKey());
  EXPECT_EQ(sealer.Seal(std::string(TextSealer::kMaxBytes + 1, 'x'), ""), "");
  const std::string most(TextSealer::kMaxBytes, 'x');
  EXPECT_EQ(sealer.Open(sealer.Seal(most, ""), ""), most);
  EXPECT_EQ(sealer.Open("hearth1." + std::string(TextSealer::kMaxBytes * 2, 'A'), ""),
            std::nullopt);
}

}  // namespace
}  // namespace hearth
