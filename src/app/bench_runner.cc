// SPDX-License-Identifier: Apache-2.0
#include "app/bench_runner.h"

#include <algorithm>
#include <chrono>

namespace hearth {
namespace {

// How many blocks of each group a sequence of a case takes. Of a group with a window only as many
// as a step can see at once: older ones are written again.
std::vector<int> BlocksOf(const KvLayout& layout, const BenchCase& what, int chunk) {
  const int64_t all = layout.BlocksUpTo(what.depth + what.tokens);
  std::vector<int> blocks;
  for (const KvGroupLayout& group : layout.groups) {
    const int64_t seen = group.window == 0 ? all : layout.BlocksUpTo(group.window + chunk) + 1;
    blocks.push_back(static_cast<int>(std::min(all, seen)));
  }
  return blocks;
}

// The tables of one sequence whose blocks lie from `first` on.
std::vector<BlockTable> TablesAt(std::span<const int> first, std::span<const int> blocks,
                                 int num_entries) {
  std::vector<BlockTable> tables(blocks.size());
  for (size_t group = 0; group < blocks.size(); ++group) {
    for (int i = 0; i < num_entries; ++i) {
      tables[group].push_back(static_cast<BlockId>(first[group] + i % blocks[group]));
    }
  }
  return tables;
}

}  // namespace

Result<BenchRunner> BenchRunner::Make(const Model& model, BackendOptions options,
                                      std::span<const BenchCase> cases, int chunk) {
  options.max_step_tokens = chunk;
  options.max_rows = 1;
  for (const BenchCase& what : cases) {
    const int tokens = what.depth + what.tokens;
    if (tokens > model.spec.max_context) {
      return Error(Code::kInvalid, "%s needs %d positions, the model has %d", NameOf(what).c_str(),
                   tokens, model.spec.max_context);
    }
    options.max_step_tokens = std::max(options.max_step_tokens, what.sequences);
    options.max_rows = std::max(options.max_rows, what.sequences);
  }
  HEARTH_ASSIGN(BackendPlan plan, PlanBackend(model, options));
  const KvLayout& layout = plan.kv;
  // Cases without a context share the first blocks: each writes before it reads.
  std::vector<int> next(layout.groups.size());
  for (const BenchCase& what : cases) {
    if (what.depth > 0) continue;
    const std::vector<int> each = BlocksOf(layout, what, chunk);
    for (size_t i = 0; i < next.size(); ++i) {
      next[i] = std::max(next[i], what.sequences * each[i]);
    }
  }
  std::vector<Place> places;
  for (const BenchCase& what : cases) {
    Place place{what, BlocksOf(layout, what, chunk), {}};
    std::vector<int> first = what.depth > 0 ? next : std::vector<int>(next.size());
    const auto entries = static_cast<int>(layout.BlocksUpTo(what.depth + what.tokens));
    for (int s = 0; s < what.sequences; ++s) {
      place.sequences.push_back(TablesAt(first, place.blocks, entries));
      for (size_t i = 0; i < first.size(); ++i) first[i] += place.blocks[i];
    }
    if (what.depth > 0) next = first;
    places.push_back(std::move(place));
  }
  for (size_t i = 0; i < next.size(); ++i) plan.kv.groups[i].num_blocks = next[i];
  HEARTH_ASSIGN(std::unique_ptr<Backend> backend, OpenBackend(model, plan));
  return BenchRunner(std::move(backend), std::move(places), chunk);
}

Token BenchRunner::RandomToken() {
  return static_cast<Token>(random_() % static_cast<uint32_t>(backend_->vocab_size()));
}

Status BenchRunner::Prefill(const Tables& tables, int first, int count, bool wants_logits) {
  while (count > 0) {
    StepPlan plan;
    SeqSlice slice;
    slice.count = std::min(count, chunk_);
    for (int i = 0; i < slice.count; ++i) plan.tokens.push_back(RandomToken());
    slice.num_computed = first;
    slice.tables = tables;
    slice.num_rows = wants_logits && slice.count == count ? 1 : 0;
    plan.num_rows = slice.num_rows;
    plan.slices.push_back(slice);
    HEARTH_TRY(RunStep(*backend_, plan).status());
    first += slice.count;
    count -= slice.count;
  }
  return Status();
}

Status BenchRunner::DecodeStep(const Place& place, int position) {
  StepPlan plan;
  for (const Tables& tables : place.sequences) {
    SeqSlice slice;
    slice.seq = static_cast<SeqId>(plan.slices.size());
    slice.first = slice.first_row = static_cast<int>(plan.slices.size());
    slice.count = slice.num_rows = 1;
    slice.num_computed = position;
    slice.tables = tables;
    plan.slices.push_back(slice);
    plan.tokens.push_back(RandomToken());
  }
  plan.num_rows = static_cast<int>(plan.slices.size());
  return RunStep(*backend_, plan).status();
}

// A few at a time: the host memory between holds no whole context.
Status BenchRunner::CopyAll(std::span<const BlockPair> pairs) {
  constexpr size_t kAtOnce = 64;
  const KvLayout layout = backend_->kv_layout();
  for (size_t first = 0; first < pairs.size(); first += kAtOnce) {
    const auto some = pairs.subspan(first, std::min(kAtOnce, pairs.size() - first));
    std::vector<std::vector<std::byte>> bytes;
    StepPlan out, in;
    for (const BlockPair& pair : some) {
      bytes.emplace_back(static_cast<size_t>(layout.group(pair.group).block_bytes));
      out.copies.push_back({.group = pair.group, .block = pair.from, .to_host = bytes.back()});
      in.copies.push_back({.group = pair.group, .block = pair.to, .from_host = bytes.back()});
    }
    HEARTH_TRY(RunStep(*backend_, out).status());
    HEARTH_TRY(RunStep(*backend_, in).status());
  }
  return Status();
}

Result<bool> BenchRunner::Fill(int index) {
  const Place& place = places_[static_cast<size_t>(index)];
  const int depth = place.what.depth;
  if (depth == 0) return false;
  const KvLayout layout = backend_->kv_layout();
  const bool copies = depth > kMaxComputed;
  const int computed = copies ? std::min(depth, std::max(chunk_, layout.block_tokens)) : depth;
  for (const Tables& tables : place.sequences) {
    HEARTH_TRY(Prefill(tables, 0, computed, false));
    if (!copies) continue;
    const int whole = computed / layout.block_tokens;  // blocks that are filled to the end
    std::vector<BlockPair> pairs;
    for (int group = 0; group < layout.num_groups(); ++group) {
      const BlockTable& table = tables[static_cast<size_t>(group)];
      const int64_t filled =
          std::min<int64_t>(layout.BlocksUpTo(depth), place.blocks[static_cast<size_t>(group)]);
      for (int i = whole; i < filled; ++i) {
        const auto to = static_cast<size_t>(i), from = static_cast<size_t>(i % whole);
        pairs.push_back({group, table[from], table[to]});
      }
    }
    HEARTH_TRY(CopyAll(pairs));
  }
  return copies;
}

Result<double> BenchRunner::Run(int index, int most_steps) {
  const Place& place = places_[static_cast<size_t>(index)];
  const auto start = std::chrono::steady_clock::now();
  if (place.what.kind == BenchKind::kPrefill) {
    const int64_t most_tokens = int64_t{most_steps} * chunk_;
    const auto tokens = static_cast<int>(std::min<int64_t>(place.what.tokens, most_tokens));
    HEARTH_TRY(Prefill(place.sequences[0], 0, tokens, true));
  } else {
    for (int step = 0; step < std::min(place.what.tokens, most_steps); ++step) {
      HEARTH_TRY(DecodeStep(place, place.what.depth + step));
    }
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace hearth
