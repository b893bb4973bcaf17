// SPDX-License-Identifier: Apache-2.0
#include "server/access/domain.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Domain, KeepsKeysAndSaltsApart) {
  EXPECT_EQ(DomainOf("", "", 1).salt, 0u);
  EXPECT_EQ(DomainOf("", "", 1).tenant, 0u);
  EXPECT_EQ(DomainOf("a", "s", 1).salt, DomainOf("a", "s", 1).salt);
  EXPECT_NE(DomainOf("a", "s", 1).salt, DomainOf("b", "s", 1).salt);
  EXPECT_NE(DomainOf("a", "bc", 1).salt, DomainOf("ab", "c", 1).salt);
  EXPECT_NE(DomainOf("a", "s", 1).salt, DomainOf("a", "s", 2).salt) << "a client could aim";
  EXPECT_EQ(DomainOf("a", "s", 1).tenant, DomainOf("a", "t", 2).tenant);
  EXPECT_NE(DomainOf("a", "", 1).tenant, DomainOf("b", "", 1).tenant);
}

}  // namespace
}  // namespace hearth
