// SPDX-License-Identifier: Apache-2.0
// What the prefix cache has after some tokens: drafts for whoever says the same again.
#include <algorithm>

#include "kv/prefix_cache.h"

namespace hearth {
namespace {

// Of a node with more children than this (a preamble that everybody shares) only some are looked
// at: a draft must cost less than it can save.
constexpr int kChildrenSeen = 64;

}  // namespace

// The child whose tokens begin so; of several the one used after more was evicted, and then the
// newest, which stands first. -1: there is none.
int PrefixCache::LastUsedChild(int node, std::span<const Token> beginning) const {
  int best = -1, seen = 0;
  for (int child = nodes_[node].first_child; child >= 0 && seen < kChildrenSeen;
       child = nodes_[child].next_sibling, ++seen) {
    if (!std::equal(beginning.begin(), beginning.end(), TokensOf(child).begin())) continue;
    if (best < 0 || slot(0, child).level > slot(0, best).level) best = child;
  }
  return best;
}

void PrefixCache::Continue(uint64_t salt, const KvNode& last, std::span<const Token> tail,
                           int count, std::vector<Token>& out) const {
  int node = last.index;
  if (node < 0) {
    const auto root = roots_.find(salt);
    if (root == roots_.end()) return;
    node = root->second;
  }
  while (static_cast<int>(out.size()) < count) {
    // A tail longer than a block is in the tree block by block.
    const std::span<const Token> beginning = tail.first(std::min(tail.size(), block_tokens_));
    node = LastUsedChild(node, beginning);
    if (node < 0) return;
    const auto tokens = TokensOf(node);
    const auto more =
        std::min<size_t>(tokens.size() - beginning.size(), static_cast<size_t>(count) - out.size());
    const auto from = tokens.begin() + static_cast<std::ptrdiff_t>(beginning.size());
    out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(more));
    tail = tail.subspan(beginning.size());
  }
}

}  // namespace hearth
