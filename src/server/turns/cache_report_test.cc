// SPDX-License-Identifier: Apache-2.0
#include "server/turns/cache_report.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

std::string Of(const CacheReport& report, const std::string& name) {
  for (const HttpHeader& header : report.AsHeaders()) {
    if (header.name == name) return header.value;
  }
  return "(none)";
}

TEST(CacheReport, NamesTheTierThatMissed) {
  RequestRecord record;
  record.num_cached = 512;
  record.miss = {KvMiss::Why::kEvicted, 512, 0};
  CacheReport report;
  report.Add(record);
  EXPECT_EQ(Of(report, "x-hearth-cache-miss"), "evicted from token 512");
  EXPECT_EQ(Of(report, "x-hearth-loaded-tokens"), "(none)");
  record.tier_miss = {TierMiss::Why::kLate, "disk,shared"};
  CacheReport late;
  late.Add(record);
  EXPECT_EQ(Of(late, "x-hearth-cache-miss"), "evicted from token 512; disk,shared: late");
}

TEST(CacheReport, AMissThatIsNoneHasNoTier) {
  RequestRecord record;
  record.tier_miss = {TierMiss::Why::kAbsent, "disk"};
  CacheReport report;
  report.Add(record);
  EXPECT_EQ(Of(report, "x-hearth-cache-miss"), "none");
}

TEST(CacheReport, SumsWhatEachTierBroughtOverAllChoices) {
  RequestRecord record;
  record.loaded_from = {{"disk", 32}, {"shared", 16}};
  CacheReport report;
  report.Add(record);
  record.loaded_from = {{"shared", 64}};
  report.Add(record);
  EXPECT_EQ(Of(report, "x-hearth-loaded-tokens"), "disk=32,shared=80");
}

}  // namespace
}  // namespace hearth
