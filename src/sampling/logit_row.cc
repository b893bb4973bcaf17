// SPDX-License-Identifier: Apache-2.0
#include "sampling/logit_row.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "base/check.h"
#include "sampling/exact_math.h"

namespace hearth {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

Float4 WithoutNan(Float4 four) {
  return Choose(std::bit_cast<Bits4>(four == four), four, Splat(kImpossible));
}

// Lane by lane, then 0 with 2, 1 with 3, and both: the order is part of the result.
float JoinSums(Float4 sums) { return (sums[0] + sums[2]) + (sums[1] + sums[3]); }

// `logits` is padded to whole words, `allowed` may have bits beyond the tokens: padding stays
// impossible.
void Forbid(AllowedTokens allowed, std::span<float> logits) {
  const Float4 impossible = Splat(kImpossible);
  for (size_t word = 0; word < logits.size() / 32; ++word) {
    const uint32_t bits = word < allowed.size() ? allowed[word] : 0;
    if (bits == 0xffffffffu) continue;
    for (uint32_t i = 0; i < 32; i += 4) {
      const Bits4 lanes = Bits4{1, 2, 4, 8} << i;
      const Bits4 forbidden = std::bit_cast<Bits4>((Bits4{bits, bits, bits, bits} & lanes) == 0);
      float* four = &logits[word * 32 + i];
      StoreFour(four, Choose(forbidden, impossible, LoadFour(four)));
    }
  }
}

}  // namespace

void LogitRow::Load(std::span<const float> logits, AllowedTokens allowed) {
  HEARTH_CHECK(allowed.empty() || allowed.size() >= (logits.size() + 31) / 32);
  num_tokens_ = static_cast<int>(logits.size());
  const size_t num_blocks = (logits.size() + kBlock - 1) / kBlock;
  logits_.resize(num_blocks * kBlock);
  const size_t whole = logits.size() / 4 * 4;
  for (size_t i = 0; i < whole; i += 4) StoreFour(&logits_[i], WithoutNan(LoadFour(&logits[i])));
  for (size_t i = whole; i < logits.size(); ++i) {
    logits_[i] = logits[i] == logits[i] ? logits[i] : kImpossible;
  }
  std::fill(logits_.begin() + num_tokens_, logits_.end(), kImpossible);
  if (!allowed.empty()) Forbid(allowed, logits_);
}

void LogitRow::FindLargest() {
  block_largest_.resize(logits_.size() / kBlock);
  largest_ = kImpossible;
  for (size_t block = 0; block < block_largest_.size(); ++block) {
    const float* from = &logits_[block * kBlock];
    Float4 a = LoadFour(from), b = LoadFour(from + 4);
    for (size_t i = 8; i < kBlock; i += 8) {
      a = Larger(LoadFour(from + i), a);
      b = Larger(LoadFour(from + i + 4), b);
    }
    a = Larger(a, b);
    block_largest_[block] = std::max(std::max(a[0], a[1]), std::max(a[2], a[3]));
    largest_ = std::max(largest_, block_largest_[block]);
  }
}

Token LogitRow::FirstLargest() const {
  if (largest_ == kImpossible) return -1;
  const auto block = std::find(block_largest_.begin(), block_largest_.end(), largest_);
  const auto from = logits_.begin() + (block - block_largest_.begin()) * kBlock;
  return static_cast<Token>(std::find(from, logits_.end(), largest_) - logits_.begin());
}

void LogitRow::CollectLikeliest(size_t count, Candidates& out) {
  out.clear();
  // The count-th largest of the blocks' largest: at least `count` tokens reach it.
  // Impossible tokens are below every `least`.
  float least = std::numeric_limits<float>::lowest();
  if (count <= block_largest_.size()) {
    some_largest_ = block_largest_;
    const auto last = some_largest_.begin() + static_cast<std::ptrdiff_t>(count - 1);
    std::nth_element(some_largest_.begin(), last, some_largest_.end(), std::greater<float>());
    least = std::max(least, *last);
  }
  // Fewer than `count` blocks hold more than `least`, and of the tokens that just reach it only the
  // first `count` can matter: so there are never more than 65 times `count` candidates.
  size_t ties_left = count;
  for (size_t block = 0; block < block_largest_.size(); ++block) {
    const float most = block_largest_[block];
    if (most < least || (most == least && ties_left == 0)) continue;
    Candidate* to = out.Reserve(kBlock);
    size_t taken = 0;
    for (size_t i = block * kBlock; i < (block + 1) * kBlock; ++i) {
      const bool is_tied = (logits_[i] == least) & (ties_left > 0);
      to[taken] = {static_cast<Token>(i), logits_[i], 0};
      const bool stays = (logits_[i] > least) | is_tied;
      taken += stays ? 1 : 0;
      ties_left -= is_tied ? 1 : 0;
    }
    out.Add(taken);
  }
}

double LogitRow::Weigh(float inverse_temperature) {
  weights_.resize(logits_.size());
  block_weights_.resize(block_largest_.size());
  total_ = 0;
  for (size_t block = 0; block < block_weights_.size(); ++block) {
    Float4 a = Splat(0), b = Splat(0);
    for (size_t i = block * kBlock; i < (block + 1) * kBlock; i += 8) {
      const Float4 x = ExpOfNonPositive((LoadFour(&logits_[i]) - largest_) * inverse_temperature);
      const Float4 y =
          ExpOfNonPositive((LoadFour(&logits_[i + 4]) - largest_) * inverse_temperature);
      StoreFour(&weights_[i], x);
      StoreFour(&weights_[i + 4], y);
      a += x;
      b += y;
    }
    block_weights_[block] = JoinSums(a + b);
    total_ += static_cast<double>(block_weights_[block]);
  }
  return total_;
}

double LogitRow::MeanWeighed(float inverse_temperature) const {
  Double4 a = {}, b = {};
  const auto add = [&](size_t i, Double4& sum) {
    const Float4 weight = LoadFour(&weights_[i]);
    const Float4 x = (LoadFour(&logits_[i]) - largest_) * inverse_temperature;
    // What is impossible weighs 0, and 0 times infinity is no number.
    const Float4 product = Only(std::bit_cast<Bits4>(weight > Splat(0)), x) * weight;
    sum += __builtin_convertvector(product, Double4);
  };
  for (size_t i = 0; i < logits_.size(); i += 8) {
    add(i, a);
    add(i + 4, b);
  }
  a += b;
  return ((a[0] + a[2]) + (a[1] + a[3])) / total_;
}

void LogitRow::CollectHeaviest(float least, Candidates& out) const {
  out.clear();
  least = std::max(least, std::numeric_limits<float>::min());  // every weight but 0 is normal
  for (size_t block = 0; block < block_weights_.size(); ++block) {
    // Rounded sums of what is not negative are never below a summand.
    if (block_weights_[block] < least) continue;
    Candidate* to = out.Reserve(kBlock);
    size_t taken = 0;
    for (size_t i = block * kBlock; i < (block + 1) * kBlock; ++i) {
      to[taken] = {static_cast<Token>(i), logits_[i], weights_[i]};
      taken += weights_[i] >= least ? 1 : 0;
    }
    out.Add(taken);
  }
}

Token LogitRow::Draw(double u) const {
  double left = u * total_;
  size_t block = 0, last_heavy = 0;
  for (; block < block_weights_.size(); ++block) {
    const auto weight = static_cast<double>(block_weights_[block]);
    if (weight > 0) last_heavy = block;
    if (left < weight) break;
    left -= weight;
  }
  // Rounding may leave a sliver behind the last block, or behind the last token of one.
  if (block == block_weights_.size()) block = last_heavy;
  Token last = -1;
  for (size_t i = block * kBlock; i < (block + 1) * kBlock; ++i) {
    if (weights_[i] == 0) continue;
    last = static_cast<Token>(i);
    left -= static_cast<double>(weights_[i]);
    if (left < 0) break;
  }
  return last;
}

}  // namespace hearth
