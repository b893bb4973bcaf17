// SPDX-License-Identifier: Apache-2.0
#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

namespace hearth {
namespace {

// As in vocab_table.cc: a file made to collide is refused.
constexpr int kMaxRun = 1024;
// Up to here a scan for the lowest rank beats the heap; measured with bench/tokenizer_bench.
constexpr size_t kShortPiece = 64;

}  // namespace

void MergeTable::Reserve(size_t count) {
  const size_t size = std::bit_ceil(2 * count + 2);
  slots_.assign(size, Slot());
  shift_ = 64 - std::countr_zero(size);
}

Status MergeTable::Insert(Token left, Token right, Joined joined) {
  const uint64_t key = KeyOf(left, right);
  size_t i = Home(key);
  for (int steps = 0; steps < kMaxRun; ++steps, i = (i + 1) & (slots_.size() - 1)) {
    if (slots_[i].key == key) {
      return Error(Code::kInvalid, "the merge of tokens %d and %d stands twice", left, right);
    }
    if (slots_[i].key == kFree) {
      slots_[i] = {key, joined};
      return Status();
    }
  }
  return Error(Code::kInvalid, "the merges collide: not a natural vocabulary");
}

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

Result<MergeTable> MergeTable::FromRanks(const VocabTable& vocab) {
  std::vector<Merge> merges;
  AppendCuts(vocab, merges);
  MergeTable table;
  table.Reserve(merges.size());
  for (const Merge& merge : merges) {
    const Joined joined{static_cast<uint32_t>(merge.merged), merge.merged};
    HEARTH_TRY(table.Insert(merge.left, merge.right, joined));
  }
  return table;
}

Result<MergeTable> MergeTable::FromMerges(std::span<const Merge> merges) {
  std::vector<uint32_t> ranks(merges.size());
  std::iota(ranks.begin(), ranks.end(), 0u);
  return FromMerges(merges, ranks);
}

Result<MergeTable> MergeTable::FromMerges(std::span<const Merge> merges,
                                          std::span<const uint32_t> ranks) {
  HEARTH_CHECK(merges.size() == ranks.size());
  MergeTable table;
  table.Reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    HEARTH_TRY(table.Insert(merges[i].left, merges[i].right, {ranks[i], merges[i].merged}));
  }
  return table;
}

void BpeMerger::Append(std::string_view piece, std::vector<Token>& out) {
  if (piece.size() <= kShortPiece) return AppendShort(piece, out);
  AppendLong(piece, out);
}

void BpeMerger::AppendShort(std::string_view piece, std::vector<Token>& out) {
  Token tokens[kShortPiece];
  Joined joined[kShortPiece];  // of tokens[i] and tokens[i + 1]
  size_t count = 0;
  for (const char c : piece) {
    const Token token = byte_tokens_[static_cast<uint8_t>(c)];
    if (token == kNoToken) [[unlikely]]
      return AppendLong(piece, out);
    tokens[count++] = token;
  }
  for (size_t i = 0; i + 1 < count; ++i) {
    joined[i] = byte_pairs_[static_cast<size_t>(static_cast<uint8_t>(piece[i])) * 256 +
                            static_cast<uint8_t>(piece[i + 1])];
  }
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (joined[i].rank < joined[best].rank) best = i;
    }
    if (joined[best].rank == UINT32_MAX) break;
    tokens[best] = joined[best].token;
    --count;
    for (size_t i = best + 1; i < count; ++i) tokens[i] = tokens[i + 1];
    for (size_t i = best; i + 1 < count; ++i) joined[i] = joined[i + 1];
    if (best + 1 < count) joined[best] = merges_.Find(tokens[best], tokens[best + 1]);
    if (best > 0) joined[best - 1] = merges_.Find(tokens[best - 1], tokens[best]);
  }
  out.insert(out.end(), tokens, tokens + count);
}

void BpeMerger::AppendLong(std::string_view piece, std::vector<Token>& out) {
  heap_.Start();
  for (const char c : piece) {
    const Token token = byte_tokens_[static_cast<uint8_t>(c)];
    if (token != kNoToken) heap_.Add(token);
  }
  heap_.Run();
  for (uint32_t i = heap_.first(); i != MergeHeap::kNone; i = heap_.next(i)) {
    out.push_back(heap_.token(i));
  }
}

void MergeHeap::Start() {
  parts_.clear();
  heap_.clear();
}

void MergeHeap::Add(Token token) {
  HEARTH_CHECK(parts_.size() < kNone - 1);
  const auto index = static_cast<uint32_t>(parts_.size());
  parts_.push_back({token, index - 1, index + 1, {}});  // the first has kNone before it
}

void MergeHeap::Rejoin(uint32_t index) {
  Part& part = parts_[index];
  part.joined = part.next == kNone ? Joined() : merges_.Find(part.token, parts_[part.next].token);
  if (part.joined.rank == UINT32_MAX) return;
  heap_.push_back((static_cast<uint64_t>(part.joined.rank) << 32) | index);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

void MergeHeap::Run() {
  if (parts_.empty()) return;
  parts_.back().next = kNone;
  for (uint32_t i = 0; i + 1 < parts_.size(); ++i) {
    parts_[i].joined = merges_.Find(parts_[i].token, parts_[i + 1].token);
    if (parts_[i].joined.rank != UINT32_MAX) {
      heap_.push_back((static_cast<uint64_t>(parts_[i].joined.rank) << 32) | i);
    }
  }
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
}

}  // namespace hearth
