// SPDX-License-Identifier: Apache-2.0
#include "base/age_clock.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "base/check.h"

namespace hearth {
namespace {

constexpr int64_t kNewsAfter_s = 60;
// Two clocks that are read one after the other, in whole seconds, are as far apart.
constexpr int64_t kFlicker_s = 2;

bool IsNumber(std::string_view text, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  // Sums of four of them stay sound.
  constexpr int64_t kMost = int64_t{1} << 60;
  return !text.empty() && error == std::errc() && end == text.data() + text.size() &&
         number < kMost && number > -kMost;
}

}  // namespace

// Where ages were dates, nothing has an end before the oldest of them; the date that counts is the
// first that can be believed.
AgeRecord AgeRecord::Begin(const ClockReading& now, int64_t oldest_s) {
  if (oldest_s <= 0) return {now.wall_s, now.boot_s, now.boot, std::nullopt};
  return {std::min(now.wall_s, oldest_s), 0, "", 0};
}

std::string AgeRecord::Write() const {
  const std::string offset = offset_s ? std::to_string(*offset_s) : "-";
  return std::to_string(age_s) + " " + std::to_string(boot_s) + " " + (boot.empty() ? "-" : boot) +
         " " + offset;
}

std::optional<AgeRecord> AgeRecord::Parse(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::array<std::string_view, 4> parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t end = i + 1 < parts.size() ? text.find(' ') : text.size();
    if (end == std::string_view::npos) return std::nullopt;
    parts[i] = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  AgeRecord record;
  if (!IsNumber(parts[0], record.age_s) || !IsNumber(parts[1], record.boot_s)) return std::nullopt;
  if (parts[2].empty() || parts[2].size() > 64) return std::nullopt;
  if (parts[2] != "-") record.boot = parts[2];
  if (parts[3] == "-") return record;
  int64_t offset_s = 0;
  if (!IsNumber(parts[3], offset_s)) return std::nullopt;
  record.offset_s = offset_s;
  return record;
}

bool AgeRecord::IsNews(const AgeRecord& kept) const {
  return boot != kept.boot || offset_s != kept.offset_s || age_s - kept.age_s >= kNewsAfter_s;
}

bool AgeClock::IsDue(const ClockReading& now) const {
  return !anchor_ || now.boot_s - anchor_->boot_s >= kSyncEvery_s || now.boot_s < anchor_->boot_s;
}

int64_t AgeClock::Age(const ClockReading& now) const {
  HEARTH_CHECK(anchor_.has_value());
  return anchor_->age_s + std::max<int64_t>(0, now.boot_s - anchor_->boot_s);
}

AgeRecord AgeClock::Sync(const ClockReading& now, AgeRecord kept) {
  int64_t age_s = kept.age_s;
  if (anchor_) {
    age_s = std::max(age_s, Age(now));  // whoever shares the store may be ahead
  } else {
    began_s_ = now.boot_s;
    has_gap_ = kept.boot.empty() || kept.boot != now.boot || now.boot_s < kept.boot_s;
    if (!has_gap_) age_s += now.boot_s - kept.boot_s;
  }
  const bool is_settled = watch_.IsSettled(now.wall_s, now.boot_s);
  if (is_settled && (!has_gap_ || now.boot_s - began_s_ >= settle_s_ + kMargin_s)) {
    const int64_t offset_s = now.wall_s - age_s;
    const int64_t gap_s = has_gap_ && kept.offset_s ? offset_s - *kept.offset_s : 0;
    has_gap_ = false;
    if (gap_s > 0) {
      age_s += gap_s;
    } else if (!kept.offset_s || std::abs(offset_s - *kept.offset_s) > kFlicker_s) {
      kept.offset_s = offset_s;
    }
  }
  anchor_ = {age_s, now.boot_s};
  // What is still to be added is so for the next process as well.
  return {age_s, now.boot_s, has_gap_ && kept.offset_s ? "" : now.boot, kept.offset_s};
}

}  // namespace hearth
