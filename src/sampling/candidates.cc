// SPDX-License-Identifier: Apache-2.0
#include "sampling/candidates.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "base/check.h"
#include "sampling/exact_math.h"

namespace hearth {
namespace {

// Ascending keys are descending logits; equal logits, and zeros of both signs, have equal keys.
uint32_t KeyOf(float logit) {
  const auto bits = std::bit_cast<uint32_t>(logit + 0.0f);  // -0 + 0 is 0
  return (bits >> 31) != 0 ? bits : ~(bits | 0x80000000u);
}

// Three digits of eleven, eleven and ten bits: 2048 buckets are 16 KiB and stay in L1.
struct Digit {
  int shift;
  uint32_t last;
};
constexpr Digit kDigits[] = {{21, 2047}, {10, 2047}, {0, 1023}};
constexpr uint32_t kBuckets = 2048;

// Clearing and reading the buckets takes 2 us; sorting 64 takes 1.9 us, 128 already 4.8 us
// (Sapphire Rapids, 2.1 GHz).
constexpr size_t kFewEnoughToSort = 64;

uint64_t OrderOf(const Candidate& candidate) {
  return uint64_t{KeyOf(candidate.logit)} << 32 | static_cast<uint32_t>(candidate.token);
}

}  // namespace

// Without branches: which candidates stay is often a coin toss to the processor.
template <class Predicate>
void Candidates::KeepIf(Predicate stays) {
  size_t kept = 0;
  for (size_t i = 0; i < size_; ++i) {
    const Candidate candidate = memory_[i];
    memory_[kept] = candidate;
    kept += stays(candidate) ? 1 : 0;
  }
  size_ = kept;
}

void Candidates::Weigh(float top, float inverse_temperature) {
  for (Candidate& candidate : mine()) {
    candidate.weight = ExpOfNonPositive((candidate.logit - top) * inverse_temperature);
  }
  KeepIf([](const Candidate& candidate) { return candidate.weight > 0; });
}

double Candidates::TotalWeight() const {
  double total = 0;
  for (const Candidate& candidate : list()) total += static_cast<double>(candidate.weight);
  return total;
}

void Candidates::KeepTopK(size_t count) {
  if (count == 0 || count >= size_) return;
  order_.clear();
  for (const Candidate& candidate : list()) order_.push_back(OrderOf(candidate));
  const auto last = order_.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(order_.begin(), last, order_.end());
  const uint64_t limit = *last;  // no two are equal, so exactly `count` are within it
  KeepIf([limit](const Candidate& candidate) { return OrderOf(candidate) <= limit; });
}

void Candidates::KeepTypical(float share, float inverse_temperature) {
  if (share >= 1 || size_ < 2) return;
  // With x = (logit - top) / temperature, -ln p is ln Z - x and its expectation ln Z - E[x]: the
  // distance between the two is |x - E[x]|, and no logarithm is needed.
  float top = memory_[0].logit;
  for (const Candidate& candidate : list()) top = std::max(top, candidate.logit);
  double total = 0, sum = 0;
  for (const Candidate& candidate : list()) {
    total += static_cast<double>(candidate.weight);
    sum += static_cast<double>(candidate.weight) *
           static_cast<double>((candidate.logit - top) * inverse_temperature);
  }
  KeepTypical(static_cast<double>(share) * total, top, inverse_temperature, sum / total);
}

void Candidates::KeepTypical(double wanted, float top, float inverse_temperature, double expected) {
  keys_.resize(std::max(keys_.size(), size_));
  for (size_t i = 0; i < size_; ++i) {
    const float x = (memory_[i].logit - top) * inverse_temperature;
    const auto distance = static_cast<float>(static_cast<double>(x) - expected);
    keys_[i] = std::bit_cast<uint32_t>(distance) & 0x7fffffffu;  // of numbers that are not
  }  // negative, the bits ascend
  KeepFirstByKey(wanted);
}

void Candidates::KeepTopWeight(double wanted) {
  keys_.resize(std::max(keys_.size(), size_));
  for (size_t i = 0; i < size_; ++i) keys_[i] = KeyOf(memory_[i].logit);
  KeepFirstByKey(wanted);
}

void Candidates::KeepFirstByKey(double wanted) {
  // A share of 0 still takes the first: every weight is larger than this.
  wanted = std::max(wanted, std::numeric_limits<double>::min());
  if (size_ <= kFewEnoughToSort) {
    KeepFirstOfFew(wanted);
  } else {
    KeepFirstOfMany(wanted);
  }
}

void Candidates::KeepFirstOfFew(double wanted) {
  order_.clear();
  for (size_t i = 0; i < size_; ++i) order_.push_back(uint64_t{keys_[i]} << 32 | i);
  std::sort(order_.begin(), order_.end());
  double reached = 0;
  size_t count = 0;
  while (count < size_ && reached < wanted) {
    reached += static_cast<double>(memory_[order_[count++] & 0xffffffffu].weight);
  }
  std::sort(
      order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(count),
      [](uint64_t a, uint64_t b) { return static_cast<uint32_t>(a) < static_cast<uint32_t>(b); });
  for (size_t i = 0; i < count; ++i) memory_[i] = memory_[order_[i] & 0xffffffffu];
  size_ = count;
}

void Candidates::KeepFirstOfMany(double wanted) {
  tied_.resize(std::max(tied_.size(), size_ + 1));
  uint32_t differing = 0;
  for (size_t i = 0; i < size_; ++i) {
    tied_[i] = {keys_[i], memory_[i].weight};
    differing |= keys_[i] ^ keys_[0];
  }
  size_t num_tied = size_;
  // After each digit `border` holds the leading digits of the key at which the weight is reached,
  // tied_ those with these digits, and `reached` the weight of everything before them.
  uint32_t border = 0;
  double reached = 0;
  for (const auto& [low_bit, last] : kDigits) {
    if ((differing >> low_bit & last) == 0) {  // all have this digit
      border |= keys_[0] & last << low_bit;
      continue;
    }
    const auto digit_of = [mask = last, shift = low_bit](uint32_t key) {
      return key >> shift & mask;
    };
    // Neighbours count into different halves: adding to the same number twice in a row would wait.
    std::array<double, kBuckets> even = {}, odd = {};
    tied_[num_tied] = {0, 0};  // adds nothing, if the number is odd
    for (size_t i = 0; i < num_tied; i += 2) {
      even[digit_of(tied_[i].key)] += static_cast<double>(tied_[i].weight);
      odd[digit_of(tied_[i + 1].key)] += static_cast<double>(tied_[i + 1].weight);
    }
    uint32_t digit = 0;
    for (; digit < last; ++digit) {
      const double here = even[digit] + odd[digit];
      if (reached + here >= wanted) break;
      reached += here;
    }
    border |= digit << low_bit;
    size_t kept = 0;
    for (size_t i = 0; i < num_tied; ++i) {
      const KeyAndWeight one = tied_[i];
      tied_[kept] = one;
      kept += digit_of(one.key) == digit ? 1 : 0;
    }
    num_tied = kept;
  }
  size_t kept = 0;
  for (size_t i = 0; i < size_; ++i) {
    const Candidate candidate = memory_[i];
    memory_[kept] = candidate;
    const bool is_tied = keys_[i] == border;
    const bool stays = (keys_[i] < border) | (is_tied & (reached < wanted));
    kept += stays ? 1 : 0;
    reached += is_tied ? static_cast<double>(candidate.weight) : 0;
  }
  size_ = kept;
}

void Candidates::KeepMinP(float share) {
  if (share <= 0) return;
  float most = 0;
  for (const Candidate& candidate : list()) most = std::max(most, candidate.weight);
  const double least = static_cast<double>(share) * static_cast<double>(most);
  KeepIf([least](const Candidate& candidate) {
    return static_cast<double>(candidate.weight) >= least;
  });
}

void Candidates::DropTopChoices(float threshold) {
  const double least = static_cast<double>(threshold) * TotalWeight();
  const auto is_top = [least](const Candidate& candidate) {
    return static_cast<double>(candidate.weight) >= least;
  };
  uint64_t last = 0;  // the place of the least likely top choice
  for (const Candidate& candidate : list()) {
    if (is_top(candidate)) last = std::max(last, OrderOf(candidate));
  }
  KeepIf([is_top, last](const Candidate& candidate) {
    return !is_top(candidate) || OrderOf(candidate) == last;
  });
}

Token Candidates::Draw(double u) const {
  HEARTH_CHECK(size_ > 0);
  double left = u * TotalWeight();
  for (const Candidate& candidate : list()) {
    left -= static_cast<double>(candidate.weight);
    if (left < 0) return candidate.token;
  }
  return list().back().token;  // rounding left a sliver
}

}  // namespace hearth
