// SPDX-License-Identifier: Apache-2.0
// The masks of a step, filled while the backend computes it, so that they cost the step nothing.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"
#include "engine/clock.h"
#include "engine/sequence.h"
#include "engine/side_thread.h"
#include "sampling/logit_row.h"
namespace hearth {

// What masks cost, since the start. Fills after the first of a slice (drafts) are not hidden, and
// are counted in none but num_fills.
struct MaskTotals {
  int64_t num_steps = 0;       // with at least one mask
  int64_t num_fills = 0;       // masks filled
  int64_t num_delayed = 0;     // steps whose masks were not ready when the backend was
  int64_t delayed_us = 0;      // how long they waited, all together
  int64_t median_fill_us = 0;  // of the last fills (at most 512)
  int64_t num_ahead = 0;       // masks that were filled between steps

  MaskTotals With(MaskTotals other) const;  // both together; the median stays
};

// Begin before the backend runs, End after it, then read. Masks that a step had to wait for are
// marked in their sequences, which then have them filled ahead (mask_ahead.h). Thread: the
// engine's; with a side thread the masks' Fill runs there, else inside End.
class MaskFills {
 public:
  // `beside` may be null: then everything happens in a fixed order on one thread.
  MaskFills(int vocab_size, const Clock& clock, SideThread* beside)
      : words_(MaskWords(vocab_size)), clock_(clock), beside_(beside) {}

  // Takes up the masks of those slices that reach the end of their sequence's tokens.
  void Begin(const StepPlan& plan, std::span<Sequence* const> planned);
  // Until all are filled. Must follow Begin, also when the backend failed.
  void End();

  // What slice `slice` may say; empty: anything. An error ends its sequence.
  Result<AllowedTokens> Allowed(size_t slice) const;
  // The same after one more token was accepted, for slices that say several.
  Result<AllowedTokens> Refill(size_t slice);

  MaskTotals totals() const;

 private:
  static constexpr int kNone = -1;
  struct Fill {
    Sequence* sequence = nullptr;
    TokenMask* mask = nullptr;
    Status status;
    int64_t took_us = 0;
    bool was_ahead = false;
  };
  void Work();
  void MarkDear(int64_t waited_us);
  std::span<uint32_t> Bits(size_t fill) { return std::span(bits_).subspan(fill * words_, words_); }

  const size_t words_;
  const Clock& clock_;
  SideThread* const beside_;
  std::vector<int> fill_of_;  // by slice; kNone: no mask
  std::vector<Fill> fills_;
  size_t num_beside_ = 0;        // of them, those that were not done ahead
  std::vector<uint32_t> bits_;   // [fills, words]
  std::atomic<size_t> next_{0};  // fill to be taken up
  MaskTotals totals_;
  std::vector<int64_t> recent_us_;  // a ring of the last fills
  size_t next_recent_ = 0;
};

}  // namespace hearth
