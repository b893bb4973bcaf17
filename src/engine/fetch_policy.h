// SPDX-License-Identifier: Apache-2.0
// Whether a prefix is faster fetched from a tier or computed again, by the part of the tier that
// has it and by its length. Pure: fed with what was measured, asked with the time.
#pragma once
#include <cstdint>
#include <span>
#include <vector>
namespace hearth {

// What fetching from one part takes: a time for the asking and one for each byte. A fading least
// squares fit. Thread: one.
class FetchTime {
 public:
  void Observe(int64_t bytes, int64_t us, int64_t now_us);
  // Nothing was measured, or long ago: what it would take now is anybody's guess.
  bool is_unknown(int64_t now_us) const;
  double Predict(int64_t bytes) const;  // in us; 0 before anything was measured

 private:
  void Solve();
  double weight_ = 0, x_ = 0, xx_ = 0, y_ = 0, xy_ = 0;  // fading sums
  double fixed_us_ = 0, us_per_byte_ = 0;
  int64_t observed_at_us_ = 0;
};

// Thread: one.
class FetchPolicy {
 public:
  // What is to come from one part (kv/tier.h).
  struct Share {
    int part = 0;
    int64_t bytes = 0;
  };
  // What a part's share of a load took. One that failed took its time as well and brought nothing.
  void Observe(const Share& share, int64_t us, bool succeeded, int64_t now_us);
  void SetPrefill(double us_per_token) { prefill_us_per_token_ = us_per_token; }

  // Fetch rather than compute. Before anything was measured yes; and now and then after a no,
  // because what was measured grows old. Parts are fetched from at the same time.
  bool Pays(int64_t tokens, std::span<const Share> shares, int64_t now_us) const;
  // How long a load may take before computing would have been faster: at most `most_us`.
  int64_t Patience(int64_t tokens, int64_t most_us) const;

 private:
  const FetchTime* TimeOf(int part) const;
  double prefill_us_per_token_ = 0;  // 0: not measured
  std::vector<FetchTime> times_;     // by part
};

}  // namespace hearth
