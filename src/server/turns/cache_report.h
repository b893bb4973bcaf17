// SPDX-License-Identifier: Apache-2.0
// How much of a prompt was found in the cache and, where it was not, why: what the x-hearth-*
// headers say.
#pragma once
#include <string>
#include <vector>

#include "engine/request.h"
#include "http/message.h"
namespace hearth {

struct CacheReport {
  int64_t cached_tokens = 0, computed_tokens = 0;
  KvMiss miss;         // of the first choice
  TierMiss tier_miss;  // likewise
  std::vector<TierTokens> loaded_from;

  void Add(const RequestRecord& record);
  std::vector<HttpHeader> AsHeaders() const;

 private:
  bool is_empty_ = true;
};

}  // namespace hearth
