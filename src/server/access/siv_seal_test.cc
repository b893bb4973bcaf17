// SPDX-License-Identifier: Apache-2.0
#include "server/access/siv_seal.h"

#include <gtest/gtest.h>

#include "base/fresh_random.h"

namespace hearth {
namespace {

SivSeal::Key FreshKey() {
  SivSeal::Key key;
  FillRandom(key);
  return key;
}

// By RFC 5297 over a block cipher of another program.
TEST(SivSeal, IsWhatTheStandardSays) {
  SivSeal::Key key;
  for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<unsigned char>(i);
  const SivSeal seal(key);
  EXPECT_EQ(seal.Seal("an id", "anna"), "XMxt/iCsPocTGetyeTONCMnTTH7a");
  EXPECT_EQ(seal.Seal("0123456789abcdef0123456789abcdef012", ""),
            "mcOD8+dVpNhU26LBX6z5gQb0gvMfpnjpxKT+omUSE+8Rbkca3FZInuLCo0jz4Y6ZyUeM");
}

TEST(SivSeal, OpensWhatItSealed) {
  const SivSeal seal(FreshKey());
  const SivSeal copy = seal;
  for (const size_t size : {1, 15, 16, 17, 65, 1000}) {
    const std::string content(size, 'x');
    const std::string sealed = seal.Seal(content, "anna");
    EXPECT_EQ(seal.Open(sealed, "anna"), content) << size;
    EXPECT_EQ(copy.Open(sealed, "anna"), content) << size;
    EXPECT_EQ(copy.Seal(content, "anna"), sealed) << "the same again";
    EXPECT_EQ(sealed.find("xxx"), std::string::npos);
  }
}

TEST(SivSeal, IsNobodyElses) {
  const SivSeal seal(FreshKey()), other(FreshKey());
  const std::string sealed = seal.Seal("content", "anna");
  EXPECT_EQ(seal.Open(sealed, "bert"), std::nullopt);
  EXPECT_EQ(seal.Open(sealed, ""), std::nullopt);
  EXPECT_EQ(other.Open(sealed, "anna"), std::nullopt);
  EXPECT_NE(seal.Seal("content", "bert"), sealed);
}

TEST(SivSeal, RefusesEveryChange) {
  const SivSeal seal(FreshKey());
  const std::string sealed = seal.Seal("some content whose text has no padding", "anna");
  constexpr std::string_view kLetters = "AB/+9z=. ";
  for (size_t i = 0; i < sealed.size(); ++i) {
    for (const char letter : kLetters) {
      std::string changed = sealed;
      changed[i] = letter;
      if (changed == sealed) continue;
      EXPECT_EQ(seal.Open(changed, "anna"), std::nullopt) << i << letter;
    }
    EXPECT_EQ(seal.Open(sealed.substr(0, i), "anna"), std::nullopt) << i;
  }
  EXPECT_EQ(seal.Open(sealed + "AAAA", "anna"), std::nullopt);
  EXPECT_EQ(seal.Open(std::string(1'000'000, 'A'), "anna"), std::nullopt);
}

}  // namespace
}  // namespace hearth
