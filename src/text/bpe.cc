// SPDX-License-Identifier: Apache-2.0
#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace hearth {
namespace {

// As in vocab_table.cc: a file made to collide is refused.
constexpr int kMaxRun = 1024;
// Symbols a window. Twice the longest token known (128 bytes), so that a window holds one whole
// wherever it begins; and small enough that a scan for the lowest rank beats a heap.
constexpr uint32_t kWindow = 256;

}  // namespace

void AppendCuts(const VocabTable& vocab, std::vector<Merge>& merges) {
  for (Token token = 0; token < vocab.size(); ++token) {
    const std::string_view bytes = vocab.Bytes(token);
    if (vocab.Find(bytes) != token) continue;
    for (size_t cut = 1; cut < bytes.size(); ++cut) {
      const Token left = vocab.Find(bytes.substr(0, cut));
      if (left == kNoToken) continue;
      const Token right = vocab.Find(bytes.substr(cut));
      if (right != kNoToken) merges.push_back({left, right, token});
    }
  }
}

Status MergeTable::Reserve(size_t count) {
  if (count > kMaxMerges) {
    return Error(Code::kInvalid, "%zu merges, the limit is %u", count, kMaxMerges);
  }
  const size_t size = std::bit_ceil(count + count / 2 + 2);
  slots_.assign(size, kFree);
  direct_.assign(size_t{kNumDirect} * kNumDirect, kNoValue);
  shift_ = 64 - std::countr_zero(size);
  return Status();
}

Status MergeTable::Insert(const Merge& merge, uint32_t value) {
  const auto left = static_cast<uint32_t>(merge.left), right = static_cast<uint32_t>(merge.right);
  HEARTH_CHECK(left < kMaxTokens && right < kMaxTokens && value < kMaxMerges);
  const uint64_t key = KeyOf(left, right);
  size_t i = Home(key);
  for (int steps = 0; steps < kMaxRun; ++steps, i = (i + 1) & (slots_.size() - 1)) {
    if (slots_[i] == kFree) {
      slots_[i] = key | value;
      if ((left | right) < kNumDirect) direct_[left * kNumDirect + right] = value;
      return Status();
    }
    if ((slots_[i] ^ key) < kMaxMerges) {
      return Error(Code::kInvalid, "the merge of tokens %d and %d appears twice", merge.left,
                   merge.right);
    }
  }
  return Error(Code::kInvalid,
               "too many merges collide in the hash table: not a plausible vocabulary");
}

Result<MergeTable> MergeTable::FromRanks(const VocabTable& vocab) {
  std::vector<Merge> merges;
  AppendCuts(vocab, merges);
  return FromTokenRanks(merges, {});
}

Result<MergeTable> MergeTable::FromTokenRanks(std::span<const Merge> merges,
                                              std::vector<uint32_t> rank_of_token) {
  MergeTable table;
  HEARTH_TRY(table.Reserve(merges.size()));
  for (const Merge& merge : merges) {
    HEARTH_TRY(table.Insert(merge, static_cast<uint32_t>(merge.merged)));
  }
  table.ranks_ = std::move(rank_of_token);
  return table;
}

Result<MergeTable> MergeTable::FromMerges(std::span<const Merge> merges) {
  MergeTable table;
  HEARTH_TRY(table.Reserve(merges.size()));
  for (size_t i = 0; i < merges.size(); ++i) {
    HEARTH_TRY(table.Insert(merges[i], static_cast<uint32_t>(i)));
    table.tokens_.push_back(merges[i].merged);
  }
  return table;
}

void Merger::Merge(std::span<const Token> symbols, std::vector<MergedPart>& out) {
  HEARTH_CHECK(symbols.size() < kNone);
  if (symbols.size() <= 2 * kWindow) return MergeWhole(symbols, 0, out);
  const size_t size_before = out.size();
  if (MergeByWindows(symbols, out)) return;
  out.resize(size_before);
  MergeByHeap(symbols, 0, out);
}

void Merger::MergeWhole(std::span<const Token> symbols, uint32_t begin,
                        std::vector<MergedPart>& out) {
  if (symbols.size() <= kWindow) return MergeByScan(symbols, begin, out);
  MergeByHeap(symbols, begin, out);
}

// Keeps the lowest rank of every 16 places, so that finding the lowest of all and keeping it after
// a merge look at some 60 numbers, without the mispredicted branches of a heap.
void Merger::MergeByScan(std::span<const Token> symbols, uint32_t begin,
                         std::vector<MergedPart>& out) {
  constexpr uint32_t kBlock = 16;
  const auto size = static_cast<uint32_t>(symbols.size());
  if (size == 0) return;
  uint64_t keys[kWindow];  // rank << 32 | index
  uint64_t lowest[kWindow / kBlock];
  Token tokens[kWindow], joined[kWindow];
  uint16_t next[kWindow + 1], previous[kWindow + 1];
  const auto rejoin = [&](uint32_t i) {
    const Joined both = next[i] == size ? Joined() : merges_.Find(tokens[i], tokens[next[i]]);
    keys[i] = (static_cast<uint64_t>(both.rank) << 32) | i;
    joined[i] = both.token;
  };
  const auto refresh = [&](uint32_t block) {
    uint64_t low = UINT64_MAX;
    const uint32_t end = std::min((block + 1) * kBlock, size);
    for (uint32_t i = block * kBlock; i < end; ++i) low = std::min(low, keys[i]);
    lowest[block] = low;
  };
  for (uint32_t i = 0; i < size; ++i) {
    tokens[i] = symbols[i];
    next[i] = static_cast<uint16_t>(i + 1);
    previous[i + 1] = static_cast<uint16_t>(i);
  }
  for (uint32_t i = 0; i < size; ++i) rejoin(i);
  const uint32_t num_blocks = (size + kBlock - 1) / kBlock;
  for (uint32_t block = 0; block < num_blocks; ++block) refresh(block);
  for (;;) {
    const uint64_t low = *std::min_element(lowest, lowest + num_blocks);
    if (low >> 32 == UINT32_MAX) break;
    const auto i = static_cast<uint32_t>(low);
    const uint32_t gone = next[i];
    tokens[i] = joined[i];
    keys[gone] = UINT64_MAX;
    next[i] = next[gone];
    previous[next[i]] = static_cast<uint16_t>(i);
    rejoin(i);
    const uint32_t before = i > 0 ? previous[i] : 0;
    if (i > 0) rejoin(before);
    refresh(i / kBlock);
    if (before / kBlock != i / kBlock) refresh(before / kBlock);
    if (gone / kBlock != i / kBlock) refresh(gone / kBlock);
  }
  for (uint32_t i = 0; i < size; i = next[i]) out.push_back({begin + i, tokens[i]});
}

void Merger::Rejoin(uint32_t index) {
  Part& part = parts_[index];
  part.joined = part.next == kNone ? Joined() : merges_.Find(part.token, parts_[part.next].token);
  if (part.joined.rank == UINT32_MAX) return;
  heap_.push_back((static_cast<uint64_t>(part.joined.rank) << 32) | index);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

void Merger::MergeByHeap(std::span<const Token> symbols, uint32_t begin,
                         std::vector<MergedPart>& out) {
  if (symbols.empty()) return;
  parts_.clear();
  heap_.clear();
  for (uint32_t i = 0; i < symbols.size(); ++i) {
    parts_.push_back({symbols[i], i - 1, i + 1, {}});  // the first has kNone before it
    if (i + 1 == symbols.size()) break;
    parts_[i].joined = merges_.Find(symbols[i], symbols[i + 1]);
    if (parts_[i].joined.rank != UINT32_MAX) {
      heap_.push_back((static_cast<uint64_t>(parts_[i].joined.rank) << 32) | i);
    }
  }
  parts_.back().next = kNone;
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  while (!heap_.empty()) {
    const uint64_t top = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    const auto index = static_cast<uint32_t>(top);
    Part& part = parts_[index];
    if (part.joined.rank != top >> 32) continue;  // its neighbours changed meanwhile
    Part& gone = parts_[part.next];
    part.token = part.joined.token;
    part.next = gone.next;
    gone.joined = Joined();
    if (part.next != kNone) parts_[part.next].previous = index;
    Rejoin(index);
    if (part.previous != kNone) Rejoin(part.previous);
  }
  for (uint32_t i = 0; i != kNone; i = parts_[i].next) out.push_back({begin + i, parts_[i].token});
}

// True when symbols [begin, end) merge into exactly two parts that meet at `middle`.
bool Merger::StandApart(std::span<const Token> symbols, uint32_t begin, uint32_t middle,
                        uint32_t end) {
  pair_.clear();
  MergeWhole(symbols.subspan(begin, end - begin), begin, pair_);
  return pair_.size() == 2 && pair_[1].begin == middle;
}

// A heap over a million symbols misses the cache at every step, so a long sequence is merged in
// windows. That is exact: merging happens in one order of (rank, place), so as long as no merge
// crosses a place, both sides go on as if the other were not there. Hence (1) the first parts of
// any result are the result of their own symbols, and (2) if the last part of the result of x and
// the first part of the result of y stay two parts when merged together, then no merge ever
// crosses between x and y, and the results side by side are the result of xy.
// Here x is what is in `out` and y is a window; where they do not stand apart, the window starts
// one part earlier. False: too many of those, the caller must merge in one go.
bool Merger::MergeByWindows(std::span<const Token> symbols, std::vector<MergedPart>& out) {
  const size_t first = out.size();
  const auto size = static_cast<uint32_t>(symbols.size());
  size_t retries_left = 16 + symbols.size() / 1024;
  uint32_t retries_here = 0;
  for (uint32_t begin = 0; begin < size;) {
    // A wider window after a retry, or the same parts would come again.
    const uint32_t wanted = kWindow * (1 + std::min(retries_here, 15u));
    const uint32_t end = begin + std::min(wanted, size - begin);
    window_.clear();
    MergeWhole(symbols.subspan(begin, end - begin), begin, window_);
    const uint32_t second = window_.size() > 1 ? window_[1].begin : end;
    if (out.size() > first && !StandApart(symbols, out.back().begin, begin, second)) {
      if (retries_left-- == 0) return false;
      ++retries_here;
      begin = out.back().begin;
      out.pop_back();
      continue;
    }
    retries_here = 0;
    // The last parts of a window suffer from its end; the next one starts before them.
    const uint32_t trusted = end == size ? size : end - kWindow / 4;
    size_t taken = 0;
    while (taken < window_.size() && (taken == 0 || window_[taken].begin < trusted)) ++taken;
    out.insert(out.end(), window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(taken));
    begin = taken < window_.size() ? window_[taken].begin : end;
  }
  return true;
}

}  // namespace hearth
