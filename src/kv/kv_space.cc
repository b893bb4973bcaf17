// SPDX-License-Identifier: Apache-2.0
#include "kv/kv_space.h"

#include <algorithm>
#include <climits>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/mutant.h"
#include "kv/prefix_cache.h"
namespace hearth {
namespace {

int BlocksUpTo(int64_t position) {
  return static_cast<int>((position + kBlockTokens - 1) / kBlockTokens);
}

int SizeOf(const BlockTable& table) { return static_cast<int>(table.size()); }

}  // namespace

struct KvSpace::Impl {
  Impl(const KvLayout& kv_layout, const KvPolicy& policy)
      : layout(kv_layout),
        full(has_full() ? layout.full.num_blocks : 0),
        window(has_window() ? layout.window.num_blocks : 0),
        cache(layout, policy, full, window) {}

  bool has_full() const { return layout.full.block_bytes > 0; }
  bool has_window() const { return layout.window.block_bytes > 0; }
  const BlockPool& pool(KvGroup group) const { return group == KvGroup::kFull ? full : window; }

  // The first window block that the token at `position` sees.
  int FirstVisible(int position) const {
    const int lag = HEARTH_MUTANT(9) ? kBlockTokens : 0;  // 9: window blocks go one block too early
    return std::max(0, position - layout.window.window + 1 + lag) / kBlockTokens;
  }

  // Appends blocks until the table reaches `size`. The caller knows that there is room.
  void Fill(KvGroup group, BlockTable& table, int size) {
    BlockPool& blocks = group == KvGroup::kFull ? full : window;
    HEARTH_CHECK(cache.MakeRoom(group, size - SizeOf(table)));
    while (SizeOf(table) < size) table.push_back(*blocks.Take());
  }

  // Lets go of window blocks before block `first`.
  void Slide(KvHolding& holding, int first) {
    for (int i = std::min(first, SizeOf(holding.window)) - 1;
         i >= 0 && holding.window[i] != BlockId::kNone; --i) {
      cache.Drop(KvGroup::kWindow, holding.window[i]);
      holding.window[i] = BlockId::kNone;
    }
  }

  // Forgets nodes that the cache let go of. Ancestors outlive descendants, so they are the last.
  void DropStale(KvHolding& holding) const {
    while (!holding.nodes.empty() && !cache.alive(holding.nodes.back())) holding.nodes.pop_back();
  }

  // Equal tokens, equal bytes: where the cache has the block already, the sequence goes on with
  // that one. Two copies would both be out of reach, one held and one below a held descendant.
  void Adopt(const KvNode& node, BlockId& mine) {
    const BlockId known = cache.block(KvGroup::kFull, node);
    if (known == mine) return;
    cache.Hold(KvGroup::kFull, known);
    cache.Drop(KvGroup::kFull, std::exchange(mine, known));
  }

  // Shortens a table to `size` entries.
  void Cut(KvGroup group, BlockTable& table, int size) {
    while (SizeOf(table) > size) {
      if (table.back() != BlockId::kNone) cache.Drop(group, table.back());
      table.pop_back();
    }
  }

  // Blocks of `group` that Reserve could append to the table.
  int Spare(KvGroup group, const KvHolding& holding, int num_computed) const {
    int spare = pool(group).num_free() + cache.reclaimable(group);
    if (group == KvGroup::kFull) return spare;
    for (int i = std::min(FirstVisible(num_computed), SizeOf(holding.window)) - 1;
         i >= 0 && holding.window[i] != BlockId::kNone; --i) {
      spare += window.is_sole(holding.window[i]);
    }
    return spare;
  }

  KvLayout layout;
  BlockPool full, window;
  PrefixCache cache;
};

KvSpace::KvSpace(const KvLayout& layout, const KvPolicy& policy)
    : impl_(std::make_unique<Impl>(layout, policy)) {}
KvSpace::~KvSpace() = default;

KvMatch KvSpace::Match(std::span<const Token> tokens, int limit, KvHolding& holding) {
  HEARTH_CHECK(holding.full.empty() && holding.window.empty() && holding.keys.empty());
  PrefixCache& cache = impl_->cache;
  const int max_blocks = std::min(limit, static_cast<int>(tokens.size())) / kBlockTokens;
  const auto found =
      cache.Find(holding.domain.salt, tokens, max_blocks, holding.keys, holding.nodes);
  const int first_window = std::max(0, found.num_blocks - cache.window_span());
  if (impl_->has_window()) holding.window.resize(found.num_blocks, BlockId::kNone);
  for (int i = 0; i < found.num_blocks; ++i) {
    const KvNode& node = holding.nodes[i];
    if (impl_->has_full()) {
      holding.full.push_back(cache.block(KvGroup::kFull, node));
      cache.Hold(KvGroup::kFull, holding.full.back());
    }
    const bool with_window = impl_->has_window() && i >= first_window;
    if (with_window) {
      holding.window[i] = cache.block(KvGroup::kWindow, node);
      cache.Hold(KvGroup::kWindow, holding.window[i]);
    }
    cache.Touch(node, with_window);
  }
  return {found.num_blocks * kBlockTokens, found.miss};
}

bool KvSpace::Reserve(KvHolding& holding, int num_computed, int count) {
  // Published blocks are read by others: what is committed is not computed again.
  HEARTH_CHECK(num_computed >= static_cast<int>(holding.keys.size()) * kBlockTokens);
  const int size = BlocksUpTo(int64_t{num_computed} + count);
  if (impl_->has_full()) {
    const int spare = impl_->Spare(KvGroup::kFull, holding, num_computed);
    if (size - SizeOf(holding.full) > spare) return false;
    if (HEARTH_MUTANT(10)) impl_->Fill(KvGroup::kFull, holding.full, size);  // 10: takes too early
  }
  if (impl_->has_window()) {
    const int spare = impl_->Spare(KvGroup::kWindow, holding, num_computed);
    if (size - SizeOf(holding.window) > spare) return false;
    impl_->Slide(holding, impl_->FirstVisible(num_computed));
    impl_->Fill(KvGroup::kWindow, holding.window, size);
  }
  if (impl_->has_full()) impl_->Fill(KvGroup::kFull, holding.full, size);
  return true;
}

int KvSpace::Room(const KvHolding& holding, int num_computed, int count) const {
  int64_t end = int64_t{num_computed} + count;
  const auto bound = [&](KvGroup group, const BlockTable& table) {
    const int64_t blocks = int64_t{SizeOf(table)} + impl_->Spare(group, holding, num_computed);
    end = std::min(end, blocks * kBlockTokens);
  };
  if (impl_->has_full()) bound(KvGroup::kFull, holding.full);
  if (impl_->has_window()) bound(KvGroup::kWindow, holding.window);
  return static_cast<int>(std::max(int64_t{0}, end - num_computed));
}

void KvSpace::Commit(KvHolding& holding, std::span<const Token> tokens, int num_computed) {
  HEARTH_CHECK(static_cast<size_t>(num_computed) <= tokens.size());
  PrefixCache& cache = impl_->cache;
  [[maybe_unused]] const size_t covered =
      std::min(tokens.size(), std::max(holding.full.size(), holding.window.size()) * kBlockTokens);
  const size_t end = HEARTH_MUTANT(7) ? covered : num_computed;  // 7: also what is not computed yet
  const size_t num_blocks = end / kBlockTokens;
  HEARTH_CHECK(!impl_->has_full() || num_blocks <= holding.full.size());
  HEARTH_CHECK(!impl_->has_window() || num_blocks <= holding.window.size());
  const auto block = [&](size_t i) { return tokens.subspan(i * kBlockTokens, kBlockTokens); };
  const size_t num_before = holding.keys.size();
  for (size_t i = holding.keys.size(); i < num_blocks; ++i) {
    const BlockKey parent = i == 0 ? BlockKey() : holding.keys[i - 1];
    holding.keys.push_back(cache.KeyOf(holding.domain.salt, parent, block(i)));
  }
  // In a model without full layers, a window block that was there first may have gone since; then
  // ours takes its place.
  if (num_blocks > num_before) impl_->DropStale(holding);
  const size_t first = num_blocks > num_before ? holding.nodes.size() : num_blocks;
  for (size_t i = first; i < num_blocks; ++i) {
    PrefixCache::Offer offer;
    if (i > 0) offer.parent = holding.nodes.back();
    offer.key = holding.keys[i];
    offer.tokens = block(i);
    offer.domain = holding.domain;
    if (impl_->has_full()) offer.full = holding.full[i];
    if (impl_->has_window()) offer.window = holding.window[i];
    const KvNode node = cache.Publish(offer);
    if (node.index < 0) break;
    holding.nodes.push_back(node);
    if (impl_->has_full()) impl_->Adopt(node, holding.full[i]);
  }
  // At once, not when more is reserved: two that share what both are past would wait for each
  // other to let go of it.
  if (impl_->has_window()) impl_->Slide(holding, impl_->FirstVisible(num_computed));
}

void KvSpace::KeepCut(KvHolding& holding, int position) {
  const size_t boundary = static_cast<size_t>(position) / kBlockTokens;
  if (boundary == 0 || boundary > holding.nodes.size()) return;
  const KvNode& node = holding.nodes[boundary - 1];
  if (impl_->cache.alive(node)) impl_->cache.KeepCut(node);
}

void KvSpace::Continue(const KvHolding& holding, std::span<const Token> tokens, int count,
                       std::vector<Token>& out) const {
  out.clear();
  const size_t known = holding.nodes.size();
  // Without its own node the sequence has left the tree.
  if (known != holding.keys.size() || known * kBlockTokens > tokens.size()) return;
  if (known > 0 && !impl_->cache.alive(holding.nodes.back())) return;
  const KvNode last = known > 0 ? holding.nodes.back() : KvNode();
  impl_->cache.Continue(holding.domain.salt, last, tokens.subspan(known * kBlockTokens), count,
                        out);
}

void KvSpace::Release(KvHolding& holding) {
  impl_->DropStale(holding);
  KeepCut(holding, static_cast<int>(holding.nodes.size()) * kBlockTokens);
  if (!HEARTH_MUTANT(12)) impl_->Cut(KvGroup::kWindow, holding.window, 0);  // 12: forgotten
  impl_->Cut(KvGroup::kFull, holding.full, 0);
  holding.window.clear();
  holding.keys.clear();
  holding.nodes.clear();
}

int KvSpace::Trim(KvHolding& holding, int num_tokens) {
  const auto shared = [](const BlockPool& pool, const BlockTable& table, size_t i) {
    return i < table.size() && table[i] != BlockId::kNone && !pool.is_private(table[i]);
  };
  const size_t last = static_cast<size_t>(num_tokens) / kBlockTokens;
  if ((shared(impl_->full, holding.full, last) || shared(impl_->window, holding.window, last)) &&
      !HEARTH_MUTANT(11)) {  // 11: others' tokens may be overwritten
    num_tokens = static_cast<int>(last) * kBlockTokens;
  }
  const size_t committed = static_cast<size_t>(num_tokens) / kBlockTokens;
  if (holding.keys.size() > committed) holding.keys.resize(committed);
  if (holding.nodes.size() > committed) holding.nodes.resize(committed);
  impl_->Cut(KvGroup::kFull, holding.full, BlocksUpTo(num_tokens));
  impl_->Cut(KvGroup::kWindow, holding.window, BlocksUpTo(num_tokens));
  const int first = impl_->FirstVisible(num_tokens);
  if (first < SizeOf(holding.window) && holding.window[first] == BlockId::kNone) {
    Release(holding);
    return 0;
  }
  return num_tokens;
}

void KvSpace::Pin(KvGroup group, BlockId id) { impl_->cache.Pin(group, id); }
void KvSpace::Unpin(KvGroup group, BlockId id) { impl_->cache.Unpin(group, id); }

KvCounts KvSpace::counts(KvGroup group) const { return impl_->pool(group).counts(); }

int KvSpace::BlocksFor(KvGroup group, int num_tokens, int step_tokens) const {
  const int all = BlocksUpTo(num_tokens);
  if (group == KvGroup::kFull) return impl_->has_full() ? all : 0;
  if (!impl_->has_window()) return 0;
  // A step looks back window - 1 tokens and writes step_tokens; a run of n tokens touches at most
  // (n + 30) / 16 blocks, wherever it starts.
  const int64_t run = int64_t{impl_->layout.window.window} - 1 + step_tokens;
  return static_cast<int>(std::min<int64_t>(all, (run + 2 * kBlockTokens - 2) / kBlockTokens));
}

Status KvSpace::SelfCheck() const {
  HEARTH_TRY(impl_->full.SelfCheck().Within("full group"));
  HEARTH_TRY(impl_->window.SelfCheck().Within("window group"));
  return impl_->cache.SelfCheck();
}

Status KvSpace::SelfCheck(std::span<const KvHolding* const> holdings) const {
  HEARTH_TRY(SelfCheck());
  for (const KvGroup group : {KvGroup::kFull, KvGroup::kWindow}) {
    std::unordered_map<BlockId, int> owners;
    int64_t references = 0;
    for (const KvHolding* holding : holdings) {
      for (const BlockId id : group == KvGroup::kFull ? holding->full : holding->window) {
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

void KvSpace::DropCache() { impl_->cache.DropAll(); }

}  // namespace hearth
