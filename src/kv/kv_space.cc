// SPDX-License-Identifier: Apache-2.0
#include "kv/kv_space.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "kv/prefix_cache.h"
namespace hearth {
namespace {

int SizeOf(const BlockTable& table) { return static_cast<int>(table.size()); }

}  // namespace

struct KvSpace::Impl {
  Impl(const KvLayout& kv_layout, const KvPolicy& policy)
      : layout(kv_layout), pools(PoolsOf(layout)), cache(layout, policy, pools) {}

  static std::vector<BlockPool> PoolsOf(const KvLayout& layout) {
    const Status valid = CheckLayout(layout);
    HEARTH_CHECK(valid.ok());
    std::vector<BlockPool> pools;
    for (const KvGroupLayout& group : layout.groups) pools.emplace_back(group.num_blocks);
    return pools;
  }

  int num_groups() const { return layout.num_groups(); }
  const BlockPool& pool(int group) const { return pools[static_cast<size_t>(group)]; }
  int BlocksUpTo(int64_t tokens) const { return static_cast<int>(layout.BlocksUpTo(tokens)); }

  // The first block of the group that the token at `position` sees.
  int FirstVisible(int group, int position) const {
    const int window = layout.group(group).window;
    if (window == 0) return 0;
    return std::max(0, position - window + 1) / layout.block_tokens;
  }

  // The first block of the group that the token after `num_blocks` blocks sees.
  int FirstNeeded(int group, int num_blocks) const {
    return std::max(0, num_blocks - cache.span(group));
  }

  static BlockTable& Table(KvHolding& holding, int group) {
    return holding.tables[static_cast<size_t>(group)];
  }
  // A holding that was never filled has no tables yet.
  static int SizeOfTable(const KvHolding& holding, int group) {
    return holding.tables.empty() ? 0 : SizeOf(holding.tables[static_cast<size_t>(group)]);
  }

  // Appends blocks until the table reaches `size`. The caller knows that there is room.
  void Fill(int group, KvHolding& holding, int size) {
    BlockTable& table = Table(holding, group);
    HEARTH_CHECK(cache.MakeRoom(group, size - SizeOf(table)));
    while (SizeOf(table) < size) table.push_back(*pools[static_cast<size_t>(group)].Take());
  }

  // After the last of the first `count` entries that has a block in some group.
  size_t EndOfBlocks(const KvHolding& holding, size_t count) const {
    const auto has_block = [&](size_t i) {
      return std::ranges::any_of(
          holding.tables, [&](const BlockTable& table) { return table[i] != BlockId::kNone; });
    };
    while (count > 0 && !has_block(count - 1)) --count;
    return count;
  }

  // Lets go of blocks that the token at `position` and later ones do not see.
  void Slide(KvHolding& holding, int position) {
    for (int group = 0; group < num_groups(); ++group) {
      BlockTable& table = Table(holding, group);
      for (int i = std::min(FirstVisible(group, position), SizeOf(table)) - 1;
           i >= 0 && table[i] != BlockId::kNone; --i) {
        cache.Drop(group, table[i]);
        table[i] = BlockId::kNone;
      }
    }
  }

  // Forgets nodes that the cache let go of. Ancestors outlive descendants, so they are the last.
  void DropStale(KvHolding& holding) const {
    while (!holding.nodes.empty() && !cache.alive(holding.nodes.back())) holding.nodes.pop_back();
  }

  // Equal tokens, equal bytes: where the cache has the block already, the sequence goes on with
  // that one. Two copies would both be out of reach, one held and one below a held descendant.
  void Adopt(const KvNode& node, BlockId& mine) {
    const BlockId known = cache.block(0, node);
    if (known == mine) return;
    cache.Hold(0, known);
    cache.Drop(0, std::exchange(mine, known));
  }

  // Shortens a table to `size` entries.
  void Shorten(int group, KvHolding& holding, int size) {
    BlockTable& table = Table(holding, group);
    while (SizeOf(table) > size) {
      if (table.back() != BlockId::kNone) cache.Drop(group, table.back());
      table.pop_back();
    }
  }

  // Blocks of `group` that Reserve could append to the table.
  int Spare(int group, const KvHolding& holding, int num_computed) const {
    int spare = pool(group).num_free() + cache.reclaimable(group);
    for (int i = std::min(FirstVisible(group, num_computed), SizeOfTable(holding, group)) - 1;
         i >= 0; --i) {
      const BlockId id = holding.tables[static_cast<size_t>(group)][i];
      if (id == BlockId::kNone) break;
      spare += pool(group).is_sole(id);
    }
    return spare;
  }

  // Makes the tables `size` entries long and lets go of what the token at `position` does not see.
  // With `only_needed`, entries that the token after all of them does not see stay without a block.
  // False, and nothing changed, when there is no room.
  bool Grow(KvHolding& holding, int position, int size, bool only_needed) {
    const auto first = [&](int group) {
      const int needed = only_needed ? FirstNeeded(group, size) : 0;
      return std::max(SizeOfTable(holding, group), needed);
    };
    for (int group = 0; group < num_groups(); ++group) {
      if (size - first(group) > Spare(group, holding, position)) return false;
    }
    holding.tables.resize(static_cast<size_t>(num_groups()));
    Slide(holding, position);
    // Windows first: what goes for them goes alone, while a full block takes its node along.
    for (int group = num_groups() - 1; group >= 0; --group) {
      Table(holding, group).resize(static_cast<size_t>(first(group)), BlockId::kNone);
      Fill(group, holding, size);
    }
    return true;
  }

  // The block at entry `i` is read by others, or will be.
  bool IsShared(const KvHolding& holding, size_t i) const {
    for (int group = 0; group < num_groups(); ++group) {
      const BlockTable& table = holding.tables[static_cast<size_t>(group)];
      if (i < table.size() && table[i] != BlockId::kNone && !pool(group).is_private(table[i])) {
        return true;
      }
    }
    return false;
  }

  KvLayout layout;
  std::vector<BlockPool> pools;
  PrefixCache cache;
};

KvSpace::KvSpace(const KvLayout& layout, const KvPolicy& policy)
    : impl_(std::make_unique<Impl>(layout, policy)) {}
KvSpace::~KvSpace() = default;

KvMatch KvSpace::Match(std::span<const Token> tokens, int limit, KvHolding& holding) {
  HEARTH_CHECK(holding.keys.empty());
  for (const BlockTable& table : holding.tables) HEARTH_CHECK(table.empty());
  PrefixCache& cache = impl_->cache;
  const int block_tokens = impl_->layout.block_tokens;
  const int max_blocks = std::min(limit, static_cast<int>(tokens.size())) / block_tokens;
  const auto found =
      cache.Find(holding.domain.salt, tokens, max_blocks, holding.keys, holding.nodes);
  holding.tables.resize(static_cast<size_t>(impl_->num_groups()));
  for (int group = 0; group < impl_->num_groups(); ++group) {
    BlockTable& table = Impl::Table(holding, group);
    table.resize(static_cast<size_t>(found.num_blocks), BlockId::kNone);
    for (int i = std::max(0, found.num_blocks - cache.span(group)); i < found.num_blocks; ++i) {
      table[i] = cache.block(group, holding.nodes[i]);
      cache.Hold(group, table[i]);
      cache.Touch(group, holding.nodes[i]);
    }
  }
  return {found.num_blocks * block_tokens, found.miss};
}

bool KvSpace::Reserve(KvHolding& holding, int num_computed, int count) {
  // Published blocks are read by others: what is committed is not computed again.
  HEARTH_CHECK(num_computed >= static_cast<int>(holding.keys.size()) * impl_->layout.block_tokens);
  const int size = impl_->BlocksUpTo(int64_t{num_computed} + count);
  return impl_->Grow(holding, num_computed, size, false);
}

int KvSpace::Room(const KvHolding& holding, int num_computed, int count) const {
  int64_t end = int64_t{num_computed} + count;
  for (int group = 0; group < impl_->num_groups(); ++group) {
    const int64_t blocks =
        int64_t{Impl::SizeOfTable(holding, group)} + impl_->Spare(group, holding, num_computed);
    end = std::min(end, blocks * impl_->layout.block_tokens);
  }
  return static_cast<int>(std::max(int64_t{0}, end - num_computed));
}

void KvSpace::Commit(KvHolding& holding, std::span<const Token> tokens, int num_computed) {
  HEARTH_CHECK(static_cast<size_t>(num_computed) <= tokens.size());
  PrefixCache& cache = impl_->cache;
  const auto block_tokens = static_cast<size_t>(impl_->layout.block_tokens);
  const size_t num_blocks = static_cast<size_t>(num_computed) / block_tokens;
  for (const BlockTable& table : holding.tables) HEARTH_CHECK(num_blocks <= table.size());
  const auto block = [&](size_t i) { return tokens.subspan(i * block_tokens, block_tokens); };
  const size_t num_before = holding.keys.size();
  ExtendKeys(holding.domain, tokens, num_blocks, holding.keys);
  // In a model without full layers, a window block that was there first may have gone since; then
  // ours takes its place.
  if (num_blocks > num_before) impl_->DropStale(holding);
  const size_t first = num_blocks > num_before ? holding.nodes.size() : num_blocks;
  // What a tier brought may end in tokens without a block, where no layer looks back.
  const size_t end_of_blocks = impl_->EndOfBlocks(holding, num_blocks);
  for (size_t i = first; i < end_of_blocks; ++i) {
    PrefixCache::Offer offer;
    if (i > 0) offer.parent = holding.nodes.back();
    offer.key = holding.keys[i];
    offer.tokens = block(i);
    offer.domain = holding.domain;
    offer.tables = holding.tables;
    offer.entry = i;
    const KvNode node = cache.Publish(offer);
    if (node.index < 0) break;
    holding.nodes.push_back(node);
    if (impl_->layout.has_full()) impl_->Adopt(node, holding.tables[0][i]);
  }
  // At once, not when more is reserved: two that share what both are past would wait for each
  // other to let go of it.
  if (!holding.tables.empty()) impl_->Slide(holding, num_computed);
}

void KvSpace::KeepCheckpoint(KvHolding& holding, int position) {
  const auto boundary = static_cast<size_t>(position / impl_->layout.block_tokens);
  if (boundary == 0 || boundary > holding.nodes.size()) return;
  const KvNode& node = holding.nodes[boundary - 1];
  if (impl_->cache.alive(node)) impl_->cache.KeepCheckpoint(node);
}

void KvSpace::Continue(const KvHolding& holding, std::span<const Token> tokens, int count,
                       std::vector<Token>& out) const {
  out.clear();
  const size_t known = holding.nodes.size();
  const size_t num_known = known * static_cast<size_t>(impl_->layout.block_tokens);
  // Without its own node the sequence has left the tree.
  if (known != holding.keys.size() || num_known > tokens.size()) return;
  if (known > 0 && !impl_->cache.alive(holding.nodes.back())) return;
  const KvNode last = known > 0 ? holding.nodes.back() : KvNode();
  impl_->cache.Continue(holding.domain.salt, last, tokens.subspan(num_known), count, out);
}

void KvSpace::Release(KvHolding& holding) {
  impl_->DropStale(holding);
  KeepCheckpoint(holding, static_cast<int>(holding.nodes.size()) * impl_->layout.block_tokens);
  if (!holding.tables.empty()) {
    for (int group = impl_->num_groups() - 1; group >= 0; --group) {
      impl_->Shorten(group, holding, 0);
    }
  }
  holding.tables.clear();
  holding.keys.clear();
  holding.nodes.clear();
}

int KvSpace::Trim(KvHolding& holding, int num_tokens) {
  if (holding.tables.empty()) return num_tokens;
  const auto block_tokens = static_cast<size_t>(impl_->layout.block_tokens);
  const size_t last = static_cast<size_t>(num_tokens) / block_tokens;
  if (impl_->IsShared(holding, last)) {
    num_tokens = static_cast<int>(last * block_tokens);
  }
  const size_t committed = static_cast<size_t>(num_tokens) / block_tokens;
  if (holding.keys.size() > committed) holding.keys.resize(committed);
  if (holding.nodes.size() > committed) holding.nodes.resize(committed);
  for (int group = 0; group < impl_->num_groups(); ++group) {
    impl_->Shorten(group, holding, impl_->BlocksUpTo(num_tokens));
  }
  for (int group = 0; group < impl_->num_groups(); ++group) {
    const BlockTable& table = Impl::Table(holding, group);
    const int first = impl_->FirstVisible(group, num_tokens);
    if (first < SizeOf(table) && table[first] == BlockId::kNone) {
      Release(holding);
      return 0;
    }
  }
  return num_tokens;
}

void KvSpace::ExtendKeys(const KvDomain& domain, std::span<const Token> tokens, size_t count,
                         std::vector<BlockKey>& keys) const {
  const auto block_tokens = static_cast<size_t>(impl_->layout.block_tokens);
  BlockKey key = keys.empty() ? BlockKey() : keys.back();
  for (size_t i = keys.size(); i < count; ++i) {
    key = impl_->cache.KeyOf(domain.salt, key, tokens.subspan(i * block_tokens, block_tokens));
    keys.push_back(key);
  }
}

int KvSpace::Peek(const KvDomain& domain, std::span<const Token> tokens, int limit,
                  std::vector<BlockKey>& keys) const {
  std::vector<KvNode> nodes;
  const int block_tokens = impl_->layout.block_tokens;
  const int max_blocks = std::min(limit, static_cast<int>(tokens.size())) / block_tokens;
  return impl_->cache.Find(domain.salt, tokens, max_blocks, keys, nodes).num_blocks * block_tokens;
}

int KvSpace::FirstNeeded(int group, int num_blocks) const {
  return impl_->FirstNeeded(group, num_blocks);
}

bool KvSpace::Extend(KvHolding& holding, int num_tokens) {
  return impl_->Grow(holding, num_tokens, impl_->BlocksUpTo(num_tokens), true);
}

std::optional<KvSpace::IdleBlock> KvSpace::TakeIdle() { return impl_->cache.TakeIdle(); }
bool KvSpace::has_idle() const { return impl_->cache.has_idle(); }

void KvSpace::MarkBelow(int group, const BlockKey& key) { impl_->cache.MarkBelow(group, key); }

void KvSpace::Pin(int group, BlockId id) { impl_->cache.Pin(group, id); }
void KvSpace::Unpin(int group, BlockId id) { impl_->cache.Unpin(group, id); }

const KvLayout& KvSpace::layout() const { return impl_->layout; }
KvCounts KvSpace::counts(int group) const { return impl_->pool(group).counts(); }

int KvSpace::BlocksFor(int group, int num_tokens, int step_tokens) const {
  const int all = impl_->BlocksUpTo(num_tokens);
  const int window = impl_->layout.group(group).window;
  if (window == 0) return all;
  // A step looks back window - 1 tokens and writes step_tokens; a run of n tokens touches at most
  // (n + 2 b - 2) / b blocks of b tokens, wherever it starts.
  const int64_t run = int64_t{window} - 1 + step_tokens;
  const int block_tokens = impl_->layout.block_tokens;
  return static_cast<int>(std::min<int64_t>(all, (run + 2 * block_tokens - 2) / block_tokens));
}

Status KvSpace::SelfCheck() const {
  for (int group = 0; group < impl_->num_groups(); ++group) {
    HEARTH_TRY(impl_->pool(group).SelfCheck().Within(NameOfGroup(impl_->layout, group)));
  }
  return impl_->cache.SelfCheck();
}

Status KvSpace::SelfCheck(std::span<const KvHolding* const> holdings) const {
  HEARTH_TRY(SelfCheck());
  for (int group = 0; group < impl_->num_groups(); ++group) {
    std::unordered_map<BlockId, int> owners;
    int64_t references = 0;
    for (const KvHolding* holding : holdings) {
      if (holding->tables.empty()) continue;
      for (const BlockId id : holding->tables[static_cast<size_t>(group)]) {
        if (id == BlockId::kNone) continue;
        ++owners[id];
        ++references;
      }
    }
    for (const auto& [id, count] : owners) {
      if (impl_->pool(group).holders(id) != count) {
        return Error(Code::kCorrupt, "block %d has %d holders, %d sequences hold it",
                     static_cast<int>(id), impl_->pool(group).holders(id), count);
      }
    }
    if (references != impl_->pool(group).num_references()) {
      return Error(Code::kCorrupt, "%lld references counted, sequences hold %lld",
                   static_cast<long long>(impl_->pool(group).num_references()),
                   static_cast<long long>(references));
    }
  }
  return Status();
}

void KvSpace::TellAll(BlockWatch& watch) const { impl_->cache.TellAll(watch); }
void KvSpace::DropCache() { impl_->cache.DropAll(); }

}  // namespace hearth
