// SPDX-License-Identifier: Apache-2.0
#include "gpu/step_input.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "model/rope.h"

namespace hearth::cuda {
namespace {

// A step's tokens attend at once as long as they see so many spans on average: 35 MB for 512 tokens
// of gpt-oss-20b, whose one token at the end of its context takes 8.6 MB.
constexpr int kSpansPerToken = 4;

int FirstVisibleTo(int position, int window) {
  return window > 0 ? std::max(0, position - window + 1) : 0;
}
int SpansOf(int position, int window) {
  return position / kSpan - FirstVisibleTo(position, window) / kSpan + 1;
}
int64_t FloatsPerSpan(const ModelSpec& spec) { return int64_t{spec.n_heads} * (spec.d_head + 2); }

}  // namespace

int TopOf(const RowAsk& ask) {
  if (ask.kind == RowAsk::Kind::kLogits) return 0;
  return ask.kind == RowAsk::Kind::kToken ? 1 : ask.top;
}

StepInput::StepInput(Device& device, const ModelSpec& spec, const KvLayout& kv, int max_tokens)
    : device_(device),
      spec_(spec),
      block_tokens_(kv.block_tokens),
      part_floats_(PartFloats(spec, max_tokens)),
      frequencies_(RopeFrequencies(spec.rope)),
      groups_(kv.groups.size()) {
  for (size_t i = 0; i < groups_.size(); ++i) groups_[i].window = kv.groups[i].window;
}

int64_t StepInput::PartFloats(const ModelSpec& spec, int max_tokens) {
  const int64_t most = SpansOf(std::max(spec.max_context - 1, 0), 0);
  return FloatsPerSpan(spec) * std::max(most, int64_t{kSpansPerToken} * max_tokens);
}

// Of a table only what the slice can see: a place may count from before its first entry.
void StepInput::PlaceTokens(const StepPlan& plan, size_t index) {
  Group& group = groups_[index];
  group.places.clear();
  for (const SeqSlice& slice : plan.slices) {
    const BlockTable& table = slice.tables[index];
    const int first = FirstVisibleTo(slice.num_computed, group.window) / block_tokens_;
    const int end = (slice.num_computed + slice.count - 1) / block_tokens_ + 1;
    const int base = static_cast<int>(tables_.size()) - first;
    for (int i = first; i < end; ++i) {
      tables_.push_back(static_cast<int32_t>(table[static_cast<size_t>(i)]));
    }
    for (int i = 0; i < slice.count; ++i) group.places.push_back({slice.num_computed + i, base});
  }
  CutChunks(group);
}

void StepInput::CutChunks(Group& group) const {
  group.chunks.clear();
  const int64_t most = part_floats_ / FloatsPerSpan(spec_);  // tokens x spans
  AttendChunk chunk;
  for (size_t t = 0; t < group.places.size(); ++t) {
    const int spans = std::max(chunk.max_spans, SpansOf(group.places[t].position, group.window));
    if (chunk.count > 0 && int64_t{chunk.count + 1} * spans > most) {
      group.chunks.push_back(chunk);
      chunk = {static_cast<int>(t), 0, 0};
    }
    chunk.max_spans = std::max(chunk.max_spans, SpansOf(group.places[t].position, group.window));
    ++chunk.count;
  }
  if (chunk.count > 0) group.chunks.push_back(chunk);
  // Spans are launched for by powers of two, so that contexts can grow within a shape; those that
  // are not there end at once.
  if (!is_decode || group.chunks.size() != 1) return;
  AttendChunk& only = group.chunks.front();
  const auto rounded = static_cast<int>(std::bit_ceil(static_cast<unsigned>(only.max_spans)));
  if (int64_t{only.count} * rounded <= most) only.max_spans = rounded;
}

StepShape StepInput::shape() const {
  StepShape shape{num_tokens, most_top, {}, num_moved_};
  for (const Group& group : groups_) {
    for (const AttendChunk& chunk : group.chunks) shape.spans.push_back(chunk.max_spans);
  }
  return shape;
}

// Tables come last: where the rest lies depends on how many tokens and rows there are alone.
void StepInput::Lay(const StepPlan& plan) {
  used_ = 0;
  const auto place = [&](size_t bytes) {
    const int64_t at = used_;
    used_ += (static_cast<int64_t>(bytes) + 15) / 16 * 16;
    return at;
  };
  const size_t tokens = plan.tokens.size(), turns = tokens * frequencies_.size();
  tokens_at_ = place(tokens * sizeof(int32_t));
  rows_at_ = place(static_cast<size_t>(plan.num_rows) * sizeof(int32_t));
  tops_at_ = place(static_cast<size_t>(plan.num_rows) * sizeof(int32_t));
  cos_at_ = place(turns * sizeof(float));
  sin_at_ = place(turns * sizeof(float));
  for (Group& group : groups_) group.places_at = place(group.places.size() * sizeof(TokenPlace));
  tables_at_ = place(tables_.size() * sizeof(int32_t));
}

Status StepInput::Build(const StepPlan& plan) {
  num_tokens = static_cast<int>(plan.tokens.size());
  num_rows = plan.num_rows;
  is_decode = std::all_of(plan.slices.begin(), plan.slices.end(), [](const SeqSlice& slice) {
    return slice.count == 1 && slice.num_rows == 1;
  });
  tables_.clear();
  for (size_t i = 0; i < groups_.size(); ++i) PlaceTokens(plan, i);
  Lay(plan);
  if (static_cast<size_t>(used_) > to_.size()) {
    from_ = PinnedBlock();
    to_ = DeviceBlock();
    ++num_moved_;
    HEARTH_ASSIGN(from_, device_.TakePinned(2 * used_, "the plan of a step"));
    HEARTH_ASSIGN(to_, device_.Take(2 * used_, "the plan of a step"));
  }
  Write(plan);
  return Status();
}

void StepInput::Write(const StepPlan& plan) {
  const size_t tokens = plan.tokens.size();
  std::byte* to = from_.data();
  static_assert(sizeof(Token) == sizeof(int32_t));
  std::memcpy(to + tokens_at_, plan.tokens.data(), tokens * sizeof(int32_t));
  auto* rows = reinterpret_cast<int32_t*>(to + rows_at_);
  for (const SeqSlice& slice : plan.slices) {
    for (int i = 0; i < slice.num_rows; ++i) {
      rows[slice.first_row + i] = slice.first + slice.count - slice.num_rows + i;
    }
  }
  auto* tops = reinterpret_cast<int32_t*>(to + tops_at_);
  most_top = 0;
  for (int row = 0; row < plan.num_rows; ++row) {
    tops[row] = TopOf(plan.AskOf(row));
    most_top = std::max(most_top, tops[row]);
  }
  auto* cos = reinterpret_cast<float*>(to + cos_at_);
  auto* sin = reinterpret_cast<float*>(to + sin_at_);
  for (size_t t = 0; t < tokens && !groups_.empty(); ++t) {
    const size_t at = t * frequencies_.size();
    RopeTurns(frequencies_, spec_.rope.concentration, groups_[0].places[t].position, cos + at,
              sin + at);
  }
  for (const Group& group : groups_) {
    std::copy(group.places.begin(), group.places.end(),
              reinterpret_cast<TokenPlace*>(to + group.places_at));
  }
  std::copy(tables_.begin(), tables_.end(), reinterpret_cast<int32_t*>(to + tables_at_));
}

Status StepInput::Send() {
  return device_.CopyIn(to_.at(), from_.data(), static_cast<size_t>(used_));
}

}  // namespace hearth::cuda
