// SPDX-License-Identifier: Apache-2.0
// What tests of kernels share: the inputs of proof/inputs.h, and a test per instruction set.
#pragma once
#include <gtest/gtest.h>

#include <iterator>
#include <string>

#include "cpu/kernel_choice.h"
#include "platform/isa.h"
#include "proof/inputs.h"
namespace hearth::testing {

using proof::Difference;
using proof::FactorsOf;
using proof::Lines;
using proof::Rng;
using proof::SameFloat;
using proof::TestMatrix;

// Every level but the definition's.
inline constexpr Isa kVectorIsas[] = {Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512Vnni, Isa::kAvx512,
                                      Isa::kAmx};
static_assert(std::size(kVectorIsas) == kNumIsas - 1);

// One test per table. A level that this machine lacks is skipped by name, never silently.
class KernelsOfIsa : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!HasIsa(GetParam())) {
      GTEST_SKIP() << "SKIPPED LOUDLY: this machine has no " << NameOf(GetParam());
    }
  }
  const KernelTable& table() const { return KernelsOf(GetParam()); }
};
inline std::string IsaTestName(const ::testing::TestParamInfo<Isa>& info) {
  return NameOf(info.param);
}

}  // namespace hearth::testing
