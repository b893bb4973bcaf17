// SPDX-License-Identifier: Apache-2.0
// How much time has passed for what a store keeps. Seconds that never go back and never jump while
// the machine runs, whatever the clock on the wall does; what it was off for is added when it runs
// again, by two dates that could each be believed.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock_watch.h"
#include "base/clocks.h"
namespace hearth {

// What a store keeps of its clock. One for all who share the store.
struct AgeRecord {
  int64_t age_s = 0;
  int64_t boot_s = 0;  // when that was
  std::string boot;    // empty: unknown
  // From the age to the date on the wall, when that went evenly for long.
  std::optional<int64_t> offset_s;

  // A new store, whose age begins as today's date; or, if `oldest_s` > 0, one that was made when
  // ages were dates, the oldest in it this.
  static AgeRecord Begin(const ClockReading& now, int64_t oldest_s = 0);
  std::string Write() const;
  static std::optional<AgeRecord> Parse(std::string_view text);
  // Whether it should be written over `kept`. Not each second: it would be had from `kept` again.
  bool IsNews(const AgeRecord& kept) const;
};

// Thread: one.
class AgeClock {
 public:
  // Nothing ends for the time that the machine was off until the wall's clock went evenly for so
  // long: time daemons need minutes, a machine without a battery begins in 1970.
  static constexpr int64_t kSettle_s = 3600;
  // Of several who share a record, those who were there when the wall's clock jumped note that
  // before one that came after it adds anything.
  static constexpr int64_t kMargin_s = 60;
  static constexpr int64_t kSyncEvery_s = 10;

  explicit AgeClock(int64_t settle_s = kSettle_s) : settle_s_(settle_s), watch_(settle_s) {}
  // No time that the machine was off is still to be added.
  bool is_sure() const { return anchor_.has_value() && !has_gap_; }
  bool has_begun() const { return anchor_.has_value(); }
  bool IsDue(const ClockReading& now) const;
  // `kept` is what the store has now; answers what it is to have.
  AgeRecord Sync(const ClockReading& now, AgeRecord kept);
  // After a Sync.
  int64_t Age(const ClockReading& now) const;

 private:
  struct Anchor {
    int64_t age_s = 0, boot_s = 0;
  };
  const int64_t settle_s_;
  ClockWatch watch_;
  std::optional<Anchor> anchor_;
  // The record is of another start of the machine, or of another machine: how long ago that was
  // only the wall's clock can say.
  bool has_gap_ = false;
  int64_t began_s_ = 0;  // the first Sync, since the machine's start
};

}  // namespace hearth
