// SPDX-License-Identifier: Apache-2.0
#include "server/turns/cache_report.h"

#include "base/result.h"

namespace hearth {
namespace {

std::string Told(const KvMiss& miss) {
  switch (miss.why) {
    case KvMiss::Why::kNone:
      break;
    case KvMiss::Why::kNeverSeen:
      return Printf("new from token %d", miss.position + miss.branch_tokens);
    case KvMiss::Why::kEvicted:
      return Printf("evicted from token %d", miss.position);
    case KvMiss::Why::kWindowMissing:
      return Printf("window missing at token %d", miss.position);
    case KvMiss::Why::kNotWanted:
      return "not used: something is asked of every token";
  }
  return "none";
}

}  // namespace

void CacheReport::Add(const RequestRecord& record) {
  cached_tokens += record.num_cached;
  computed_tokens += record.num_computed;
  if (is_empty_) miss = record.miss;
  is_empty_ = false;
}

std::vector<HttpHeader> CacheReport::AsHeaders() const {
  return {{"x-hearth-cached-tokens", std::to_string(cached_tokens)},
          {"x-hearth-computed-tokens", std::to_string(computed_tokens)},
          {"x-hearth-cache-miss", Told(miss)}};
}

}  // namespace hearth
