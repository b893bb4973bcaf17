// SPDX-License-Identifier: Apache-2.0
// Whether a prefix is faster fetched from a tier or computed again. Pure: fed with what was
// measured, asked with the time.
#pragma once
#include <cstdint>
namespace hearth {

// Thread: one.
class FetchPolicy {
 public:
  // What a whole load took. One that failed took its time as well and brought nothing.
  void Observe(int64_t bytes, int64_t us, bool succeeded, int64_t now_us);
  void SetPrefill(double us_per_token) { prefill_us_per_token_ = us_per_token; }

  // Fetch rather than compute. Before anything was measured yes; and now and then after a no,
  // because what was measured grows old.
  bool Pays(int64_t tokens, int64_t bytes, int64_t now_us) const;
  // How long a load may take before computing would have been faster: at most `most_us`.
  int64_t Patience(int64_t tokens, int64_t most_us) const;

 private:
  double prefill_us_per_token_ = 0;  // 0: not measured
  double us_per_byte_ = 0;           // a fading mean; 0: not measured
  int64_t observed_at_us_ = 0;
};

}  // namespace hearth
