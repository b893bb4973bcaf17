// SPDX-License-Identifier: Apache-2.0
#include "server/turns/cache_report.h"

#include <algorithm>

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
  for (const TierTokens& loaded : record.loaded_from) {
    auto of = std::ranges::find(loaded_from, loaded.tier, &TierTokens::tier);
    if (of == loaded_from.end()) of = loaded_from.insert(loaded_from.end(), {loaded.tier, 0});
    of->tokens += loaded.tokens;
  }
  if (is_empty_) {
    miss = record.miss;
    tier_miss = record.tier_miss;
  }
  is_empty_ = false;
}

std::vector<HttpHeader> CacheReport::AsHeaders() const {
  std::string why = Told(miss);
  if (miss.why != KvMiss::Why::kNone && tier_miss.why != TierMiss::Why::kNone) {
    why += "; " + tier_miss.tier + ": " + NameOf(tier_miss.why);
  }
  std::vector<HttpHeader> headers = {{"x-hearth-cached-tokens", std::to_string(cached_tokens)},
                                     {"x-hearth-computed-tokens", std::to_string(computed_tokens)},
                                     {"x-hearth-cache-miss", why}};
  std::string loaded;
  for (const TierTokens& each : loaded_from) {
    loaded += (loaded.empty() ? "" : ",") + each.tier + "=" + std::to_string(each.tokens);
  }
  if (!loaded.empty()) headers.push_back({"x-hearth-loaded-tokens", loaded});
  return headers;
}

}  // namespace hearth
