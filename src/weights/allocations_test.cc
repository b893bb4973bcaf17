// SPDX-License-Identifier: Apache-2.0
// Replaces the global operators of this test program by ones that count, see
// testing/allocations.h.
#include "testing/allocations.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

// Not inlined: g++ 12 would see free() meet a pointer from new and call it a mismatch.
[[gnu::noinline]] void* operator new(size_t bytes) {
  hearth::testing::CountAllocation(bytes);
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new[](size_t bytes) { return operator new(bytes); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace hearth::testing {
namespace {

TEST(AllocationMeter, CountsWhatNewWasAskedFor) {
  const AllocationMeter meter;
  const auto large = std::make_unique<std::vector<char>>(100000);
  const auto small = std::make_unique<std::vector<char>>(1000);
  EXPECT_EQ(meter.Read().largest, 100000u);
  EXPECT_EQ(meter.Read().total, 101000u + 2 * sizeof(std::vector<char>));
}

}  // namespace
}  // namespace hearth::testing
