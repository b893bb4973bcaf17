// SPDX-License-Identifier: Apache-2.0
// Arithmetic on numbers that came from outside. A wrapped size is an error, never a small size.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
namespace hearth {

// An unsigned 64-bit number that remembers whether any step on the way to it overflowed.
class Checked {
 public:
  constexpr Checked(uint64_t value) : value_(value) {}
  constexpr Checked operator+(Checked other) const {
    Checked sum(0);
    sum.overflowed_ = __builtin_add_overflow(value_, other.value_, &sum.value_) || overflowed_ ||
                      other.overflowed_;
    return sum;
  }
  constexpr Checked operator*(Checked other) const {
    Checked product(0);
    product.overflowed_ = __builtin_mul_overflow(value_, other.value_, &product.value_) ||
                          overflowed_ || other.overflowed_;
    return product;
  }
  // Rounds up to a multiple of `unit`, a power of two.
  constexpr Checked AlignedUp(uint64_t unit) const {
    Checked up = *this + Checked(unit - 1);
    up.value_ &= ~(unit - 1);
    return up;
  }
  constexpr std::optional<uint64_t> value() const {
    return overflowed_ ? std::nullopt : std::optional<uint64_t>(value_);
  }
  // True when the number is sound and at most `limit`.
  constexpr bool FitsIn(uint64_t limit) const { return !overflowed_ && value_ <= limit; }

 private:
  uint64_t value_;
  bool overflowed_ = false;
};

constexpr Checked CheckedProduct(std::span<const uint64_t> factors) {
  Checked product(1);
  for (const uint64_t factor : factors) product = product * factor;
  return product;
}

}  // namespace hearth
