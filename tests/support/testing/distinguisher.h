// SPDX-License-Identifier: Apache-2.0
// What somebody who collects many names can see in them: bits that are not fair coins, names that
// hang together with the ones before, with those of another, or with what they should hide.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>
namespace hearth::testing {

// Samples of one size, bit by bit: column i has bit i of every sample.
class BitColumns {
 public:
  explicit BitColumns(const std::vector<std::string>& samples)
      : num_samples_(samples.size()),
        columns_(8 * samples.front().size(), std::vector<uint64_t>((samples.size() + 63) / 64)) {
    for (size_t i = 0; i < samples.size(); ++i) {
      for (size_t bit = 0; bit < columns_.size(); ++bit) {
        const uint64_t value = static_cast<unsigned char>(samples[i][bit / 8]) >> bit % 8 & 1;
        columns_[bit][i / 64] |= value << i % 64;
      }
    }
  }
  size_t num_bits() const { return columns_.size(); }

  double Bias(size_t bit) const {
    int64_t ones = 0;
    for (const uint64_t word : columns_[bit]) ones += std::popcount(word);
    return Deviations(ones, static_cast<int64_t>(num_samples_));
  }
  // Of each sample's bit with the next one's.
  double Serial(size_t bit) const {
    const std::vector<uint64_t>& column = columns_[bit];
    int64_t unlike = 0;
    const size_t count = num_samples_ - 1;
    for (size_t word = 0; word < column.size(); ++word) {
      const uint64_t above = word + 1 < column.size() ? column[word + 1] << 63 : 0;
      const size_t left = count > 64 * word ? count - 64 * word : 0;
      const uint64_t mask = left >= 64 ? ~uint64_t{0} : (uint64_t{1} << left) - 1;
      unlike += std::popcount((column[word] ^ (column[word] >> 1 | above)) & mask);
    }
    return Deviations(unlike, static_cast<int64_t>(count));
  }
  // With a bit of the other's sample of the same number.
  double With(size_t bit, const BitColumns& other, size_t other_bit) const {
    const std::vector<uint64_t>&mine = columns_[bit], &theirs = other.columns_[other_bit];
    int64_t unlike = 0;
    for (size_t word = 0; word < mine.size(); ++word) {
      unlike += std::popcount(mine[word] ^ theirs[word]);
    }
    return Deviations(unlike, static_cast<int64_t>(num_samples_));
  }

 private:
  // Of fair coins, in standard deviations.
  static double Deviations(int64_t heads, int64_t count) {
    return std::abs(static_cast<double>(2 * heads - count)) / std::sqrt(static_cast<double>(count));
  }
  const size_t num_samples_;
  std::vector<std::vector<uint64_t>> columns_;
};

// The chi-square of a byte over all samples, as about so many standard deviations (Wilson and
// Hilferty's cube root). `samples` needs five of each value or more.
inline double ChiSquareOf(const std::vector<std::string>& samples, size_t byte) {
  std::vector<int64_t> counts(256);
  for (const std::string& sample : samples) ++counts[static_cast<unsigned char>(sample[byte])];
  const double wanted = static_cast<double>(samples.size()) / 256;
  double sum = 0;
  for (const int64_t count : counts) {
    const double off = static_cast<double>(count) - wanted;
    sum += off * off / wanted;
  }
  constexpr double kFreedom = 255, kSpread = 2 / (9 * kFreedom);
  return (std::cbrt(sum / kFreedom) - (1 - kSpread)) / std::sqrt(kSpread);
}

// Beyond 6.5 standard deviations coins come once in 10^10 looks; the longest of the lists below
// takes 10^5 looks.
inline constexpr double kMostDeviations = 6.5;

struct Suspicion {
  double deviations = 0;
  std::string what;
  void Look(double found, const char* of, size_t where) {
    if (found <= deviations) return;
    deviations = found;
    char text[100];
    std::snprintf(text, sizeof text, "%s at %zu: %.1f standard deviations", of, where, found);
    what = text;
  }
  bool is_sure() const { return deviations > kMostDeviations; }
};

// In one key's names, one after the other.
inline Suspicion SuspicionOf(const std::vector<std::string>& samples) {
  Suspicion out;
  const BitColumns columns(samples);
  for (size_t bit = 0; bit < columns.num_bits(); ++bit) {
    out.Look(columns.Bias(bit), "bias of a bit", bit);
    out.Look(columns.Serial(bit), "a bit and the next sample's", bit);
  }
  for (size_t byte = 0; byte < samples.front().size(); ++byte) {
    out.Look(ChiSquareOf(samples, byte), "chi-square of a byte", byte);
  }
  return out;
}

// In what two have, taken in turns.
inline Suspicion SuspicionBetween(const std::vector<std::string>& one,
                                  const std::vector<std::string>& other) {
  Suspicion out;
  const BitColumns mine(one), theirs(other);
  for (size_t bit = 0; bit < mine.num_bits(); ++bit) {
    if (mine.num_bits() == theirs.num_bits()) {
      out.Look(mine.With(bit, theirs, bit), "a bit and the other's", bit);
      continue;
    }
    for (size_t their = 0; their < theirs.num_bits(); ++their) {
      out.Look(mine.With(bit, theirs, their), "a bit and one of the other", bit);
    }
  }
  return out;
}

}  // namespace hearth::testing
