// SPDX-License-Identifier: Apache-2.0
#include "proof/checks.h"

#include <cstdint>

#include "cuda/numbers.h"
#include "proof/inputs.h"

namespace hearth::cuda {
namespace canon {
namespace {
#include "cpu/canon.inl"
}  // namespace
}  // namespace canon

namespace {
int64_t num_compared = 0;
}

int64_t NumCompared() { return num_compared; }
void CountCompared(int64_t count) { num_compared += count; }

std::string CheckElementary(Machine&, CaseGrid grid) {
  // Prime steps over all bit patterns.
  const uint64_t step = grid == CaseGrid::kFull ? 17 : 4099;
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += step) {
    const float x = canon::FloatOf(static_cast<uint32_t>(bits));
    const bool is_same = proof::SameFloat(canon::Exp(x), Exp(x)) &&
                         proof::SameFloat(canon::Silu(x, 1.702f), Silu(x, 1.702f));
    if (!is_same) return "exp or silu of " + std::to_string(x) + " differs";
    CountCompared(2);
  }
  return "";
}

}  // namespace hearth::cuda
