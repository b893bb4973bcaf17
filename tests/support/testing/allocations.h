// SPDX-License-Identifier: Apache-2.0
// How much memory a piece of code asked `new` for. The operators themselves are replaced in
// src/weights/allocations_test.cc, once per test program; without that the meter reads zero.
#pragma once
#include <algorithm>
#include <cstddef>
namespace hearth::testing {

struct Allocations {
  size_t largest = 0;  // one request, in bytes
  size_t total = 0;    // all requests together, whether freed meanwhile or not
};
// Counts on the thread that asks, so that nobody else's memory is charged.
inline thread_local Allocations allocations_now;

// From construction on.
class AllocationMeter {
 public:
  AllocationMeter() { allocations_now = {}; }
  Allocations Read() const { return allocations_now; }
};

inline void CountAllocation(size_t bytes) {
  allocations_now.largest = std::max(allocations_now.largest, bytes);
  allocations_now.total += bytes;
}

}  // namespace hearth::testing
