// SPDX-License-Identifier: Apache-2.0
// How far one list of predictions lies from another: what is lost by computing fast.
#pragma once
#include <cstdint>
#include <span>
namespace hearth {

// Sums over rows of logits. Rows may be added on several threads, to objects of their own.
class Divergence {
 public:
  // One position: what should come out and what did. A `got` that is no number makes every figure
  // NaN, which no bound accepts.
  void Add(std::span<const double> want, std::span<const float> got);
  void Add(const Divergence& other);

  int64_t rows() const { return rows_; }
  // How often both would choose the same token first.
  double top1() const { return static_cast<double>(same_top_) / static_cast<double>(rows_); }
  // Kullback-Leibler divergence of the two distributions over tokens, in nats: KL(want || got).
  double mean_kl() const { return sum_kl_ / static_cast<double>(rows_); }
  double max_kl() const { return max_kl_; }
  // Squared error of the logits over their square.
  double nmse() const { return error_ / square_; }

 private:
  int64_t rows_ = 0, same_top_ = 0;
  double sum_kl_ = 0, max_kl_ = 0, error_ = 0, square_ = 0;
};

}  // namespace hearth
