// SPDX-License-Identifier: Apache-2.0
#include "load/stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hearth {

Percentiles PercentilesOf(std::vector<double> values) {
  Percentiles out;
  out.count = static_cast<int64_t>(values.size());
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
    return values[std::max<size_t>(rank, 1) - 1];
  };
  out.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(out.count);
  out.p50 = at(0.50);
  out.p90 = at(0.90);
  out.p99 = at(0.99);
  out.most = values.back();
  return out;
}

std::vector<double> FirstTokenSeconds(const std::vector<LoadReply>& replies) {
  std::vector<double> out;
  for (const LoadReply& reply : replies) {
    if (!reply.heard_s.empty()) out.push_back(reply.heard_s.front() - reply.sent_s);
  }
  return out;
}

std::vector<double> TokenGaps(const std::vector<LoadReply>& replies, double from_s, double to_s) {
  std::vector<double> out;
  for (const LoadReply& reply : replies) {
    for (size_t i = 1; i < reply.heard_s.size(); ++i) {
      if (reply.heard_s[i - 1] < from_s || reply.heard_s[i] > to_s) continue;
      out.push_back(reply.heard_s[i] - reply.heard_s[i - 1]);
    }
  }
  return out;
}

std::vector<double> GapsBeside(const std::vector<LoadReply>& replies, double from_s, double to_s) {
  std::vector<double> out;
  for (const LoadReply& reply : replies) {
    for (size_t i = 1; i < reply.heard_s.size(); ++i) {
      if (reply.heard_s[i] <= from_s || reply.heard_s[i - 1] >= to_s) continue;
      out.push_back(reply.heard_s[i] - reply.heard_s[i - 1]);
    }
    if (reply.heard_s.empty() || reply.heard_s.back() >= to_s || reply.ended_s < to_s) continue;
    out.push_back(to_s - reply.heard_s.back());
  }
  return out;
}

}  // namespace hearth
