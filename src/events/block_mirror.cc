// SPDX-License-Identifier: Apache-2.0
#include "events/block_mirror.h"

#include <algorithm>

namespace hearth {

bool BlockMirror::Store(const BlockEvent& event, std::span<const Token> tokens) {
  const auto [at, is_new] = blocks_.try_emplace(IdOf(event));
  if (!is_new) return false;
  at->second = {next_number_++, event.parent, {tokens.begin(), tokens.end()}};
  return true;
}

bool BlockMirror::Remove(const BlockEvent& event) { return blocks_.erase(IdOf(event)) > 0; }

void BlockMirror::Clear(BlockPlace place) {
  std::erase_if(blocks_, [&](const auto& each) { return each.first.place == place; });
}

BlockEvents BlockMirror::All() const {
  std::vector<const std::pair<const Id, Block>*> sorted;
  sorted.reserve(blocks_.size());
  for (const auto& each : blocks_) sorted.push_back(&each);
  std::ranges::sort(sorted, {}, [](const auto* each) { return each->second.number; });
  BlockEvents all;
  all.is_all = true;
  for (const auto* each : sorted) {
    const auto& [id, block] = *each;
    all.events.push_back({true, id.place, id.group, id.key, block.parent});
    all.tokens.insert(all.tokens.end(), block.tokens.begin(), block.tokens.end());
  }
  return all;
}

}  // namespace hearth
