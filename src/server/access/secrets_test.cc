// SPDX-License-Identifier: Apache-2.0
#include "server/access/secrets.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <set>

namespace hearth {
namespace {

template <class Bytes>
std::string HexOf(const Bytes& bytes) {
  std::string out;
  for (const auto byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
    out += digits;
  }
  return out;
}

// By RFC 5869 over Python's hmac. Servers of several builds share a root: these may not change.
TEST(Secrets, AreWhatTheStandardSays) {
  const Secrets secrets("a root");
  EXPECT_EQ(HexOf(secrets.For<64>(Purpose::kEventIds)),
            "a0bdf01bf941f88e25938e236678ed0acfbad991eae197c66442e783d5be684f"
            "f087734d2bbaee48292330cf467970dc31fbc8bed4822744a2de3edee186ffea");
  EXPECT_EQ(HexOf(secrets.TextFor(Purpose::kCacheDomains)),
            "c88bbaa98ddf4fa737a5cd76f98c24435518e3c89c5b394551ce9ed63cddbf9b");
}

TEST(Secrets, EveryPurposeHasItsOwn) {
  const Secrets one("a root"), other("a Root"), longer(std::string(4096, 'x'));
  std::set<std::string> all;
  for (size_t i = 0; i < kNumPurposes; ++i) {
    const auto purpose = static_cast<Purpose>(i);
    for (const Secrets* secrets : {&one, &other, &longer}) all.insert(secrets->TextFor(purpose));
    EXPECT_EQ(one.TextFor(purpose), Secrets("a root").TextFor(purpose)) << "another process";
    EXPECT_EQ(one.TextFor(purpose).size(), 32u);
    EXPECT_EQ(one.TextFor(purpose).find("a root"), std::string::npos);
  }
  EXPECT_EQ(all.size(), 3 * kNumPurposes);
}

TEST(Secrets, FreshOnesAreNobodyElses) {
  EXPECT_NE(Secrets::Fresh().TextFor(Purpose::kEventIds),
            Secrets::Fresh().TextFor(Purpose::kEventIds));
}

}  // namespace
}  // namespace hearth
