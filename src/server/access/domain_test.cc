// SPDX-License-Identifier: Apache-2.0
#include "server/access/domain.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Domain, KeepsKeysAndSaltsApart) {
  const CipherKey one{1}, two{2};
  EXPECT_EQ(DomainOf("", "", one).salt, 0u);
  EXPECT_EQ(DomainOf("", "", one).tenant, 0u);
  EXPECT_EQ(DomainOf("a", "s", one).salt, DomainOf("a", "s", one).salt);
  EXPECT_NE(DomainOf("a", "s", one).salt, DomainOf("b", "s", one).salt);
  EXPECT_NE(DomainOf("a", "bc", one).salt, DomainOf("ab", "c", one).salt);
  EXPECT_NE(DomainOf("a", "s", one).salt, DomainOf("a", "s", two).salt) << "a client could aim";
  EXPECT_EQ(DomainOf("a", "s", one).tenant, DomainOf("a", "t", two).tenant);
  EXPECT_NE(DomainOf("a", "", one).tenant, DomainOf("b", "", one).tenant);
}

// All of the secret counts, not a number made of it.
TEST(Domain, EveryByteOfTheSecretCounts) {
  const CipherKey secret{};
  for (size_t i = 0; i < secret.size(); ++i) {
    CipherKey other = secret;
    other[i] ^= 1;
    EXPECT_NE(DomainOf("a", "s", secret).salt, DomainOf("a", "s", other).salt) << i;
  }
}

}  // namespace
}  // namespace hearth
