// SPDX-License-Identifier: Apache-2.0
#include "backend/numerics.h"

#include <gtest/gtest.h>

#include <set>

namespace hearth {
namespace {

// Blocks of one definition handed to another would be wrong replies.
TEST(Numerics, EachHasANameAndANumberOfItsOwn) {
  std::set<std::string> names;
  std::set<int> numbers;
  for (const Numerics numerics : {Numerics::kExact, Numerics::kFast}) {
    for (const KvCode code : {KvCode::kInt16, KvCode::kInt8}) {
      names.insert(NumericsName(numerics, code));
      numbers.insert(BlockNumerics(numerics, code));
    }
  }
  EXPECT_EQ(names.size(), 4u);
  EXPECT_EQ(numbers.size(), 4u);
  EXPECT_EQ(NumericsName(Numerics::kExact, KvCode::kInt16), "exact-2");
  EXPECT_EQ(NumericsName(Numerics::kFast, KvCode::kInt8), "fast-1-kv8v2");
  // What was stored before there were others is still found.
  EXPECT_EQ(BlockNumerics(Numerics::kExact, KvCode::kInt16), 2);
  EXPECT_EQ(BlockNumerics(Numerics::kExact, KvCode::kInt8), 2002);
}

}  // namespace
}  // namespace hearth
