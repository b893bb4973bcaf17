// SPDX-License-Identifier: Apache-2.0
#include "kv/content_seed.h"

#include "kv/block_key.h"

namespace hearth {

uint64_t ContentSeed(const BlockContent& content) {
  uint64_t seed = FoldSeed(content.model_digest, static_cast<uint64_t>(content.numerics_version));
  seed = FoldSeed(seed, static_cast<uint64_t>(content.layout.block_tokens));
  // The usual form adds nothing, so that what was stored before there was another is still found.
  if (content.layout.code != KvCode::kInt16) {
    seed = FoldSeed(seed, static_cast<uint64_t>(content.layout.code));
  }
  for (const KvGroupLayout& group : content.layout.groups) {
    seed = FoldSeed(seed, static_cast<uint64_t>(group.window));
    seed = FoldSeed(seed, static_cast<uint64_t>(group.block_bytes));
  }
  seed = FoldSeed(seed, content.secret.size());
  for (const char c : content.secret) seed = FoldSeed(seed, static_cast<unsigned char>(c));
  return seed;
}

}  // namespace hearth
