// SPDX-License-Identifier: Apache-2.0
#include "app/bench_runner.h"

#include <algorithm>
#include <chrono>

namespace hearth {
namespace {

int BlocksFor(int tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }

int WindowOf(const Model& model) {
  int window = 0;
  for (const LayerSpec& layer : model.spec.layers) window = std::max(window, layer.window);
  return window;
}

// How many blocks of each group a case takes.
struct Blocks {
  int full = 0, window = 0;
};

// Per sequence. Of window blocks only as many as a step can see at once: older ones are written
// again.
Blocks BlocksOf(const BenchCase& what, int window, int chunk) {
  const int full = BlocksFor(what.depth + what.tokens);
  return {full, std::min(full, BlocksFor(window + chunk) + 1)};
}

}  // namespace

BenchRunner::Place BenchRunner::PlaceAt(const BenchCase& what, int full, int window, int first_full,
                                        int first_window) {
  Place place{what, {}, window};
  for (int s = 0; s < what.sequences; ++s) {
    Tables tables;
    for (int i = 0; i < full; ++i) {
      tables.full.push_back(static_cast<BlockId>(first_full + s * full + i));
      tables.window.push_back(static_cast<BlockId>(first_window + s * window + i % window));
    }
    place.sequences.push_back(std::move(tables));
  }
  return place;
}

Result<BenchRunner> BenchRunner::Make(const Model& model, CpuOptions options,
                                      std::span<const BenchCase> cases, int chunk) {
  const int window = WindowOf(model);
  options.max_step_tokens = chunk;
  // Cases without a context share the first blocks: each writes before it reads.
  Blocks shared;
  for (const BenchCase& what : cases) {
    const int tokens = what.depth + what.tokens;
    if (tokens > model.spec.max_context) {
      return Error(Code::kInvalid, "%s needs %d positions, the model has %d", NameOf(what).c_str(),
                   tokens, model.spec.max_context);
    }
    options.max_step_tokens = std::max(options.max_step_tokens, what.sequences);
    if (what.depth > 0) continue;
    const Blocks each = BlocksOf(what, window, chunk);
    shared.full = std::max(shared.full, what.sequences * each.full);
    shared.window = std::max(shared.window, what.sequences * each.window);
  }
  Blocks next = shared;
  std::vector<Place> places;
  for (const BenchCase& what : cases) {
    const Blocks each = BlocksOf(what, window, chunk);
    const Blocks first = what.depth > 0 ? next : Blocks();
    places.push_back(PlaceAt(what, each.full, each.window, first.full, first.window));
    if (what.depth == 0) continue;
    next.full += what.sequences * each.full;
    next.window += what.sequences * each.window;
  }
  options.full_blocks = next.full;
  options.window_blocks = next.window;
  HEARTH_ASSIGN(std::unique_ptr<Backend> backend, OpenCpuBackend(model, options));
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
    slice.full = tables.full;
    slice.window = tables.window;
    slice.num_logits = wants_logits && slice.count == count ? 1 : 0;
    plan.num_logits_rows = slice.num_logits;
    plan.slices.push_back(slice);
    logits_.resize(static_cast<size_t>(slice.num_logits) *
                   static_cast<size_t>(backend_->vocab_size()));
    HEARTH_TRY(backend_->Run(plan, logits_));
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
    slice.first = slice.logits_row = static_cast<int>(plan.slices.size());
    slice.count = slice.num_logits = 1;
    slice.num_computed = position;
    slice.full = tables.full;
    slice.window = tables.window;
    plan.slices.push_back(slice);
    plan.tokens.push_back(RandomToken());
  }
  plan.num_logits_rows = static_cast<int>(plan.slices.size());
  logits_.resize(plan.slices.size() * static_cast<size_t>(backend_->vocab_size()));
  return backend_->Run(plan, logits_);
}

Status BenchRunner::Copy(KvGroup group, BlockId from, BlockId to) {
  const KvLayout layout = backend_->kv_layout();
  const int64_t size =
      group == KvGroup::kFull ? layout.full.block_bytes : layout.window.block_bytes;
  if (size == 0) return Status();
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  HEARTH_TRY(backend_->ReadBlock(group, from, bytes));
  return backend_->WriteBlock(group, to, bytes);
}

Result<bool> BenchRunner::Fill(int index) {
  const Place& place = places_[static_cast<size_t>(index)];
  const int depth = place.what.depth;
  if (depth == 0) return false;
  const bool copies = depth > kMaxComputed;
  const int computed = copies ? std::min(depth, std::max(chunk_, kBlockTokens)) : depth;
  for (const Tables& tables : place.sequences) {
    HEARTH_TRY(Prefill(tables, 0, computed, false));
    if (!copies) continue;
    const int whole = computed / kBlockTokens;  // blocks that are filled to the end
    for (int i = whole; i < BlocksFor(depth); ++i) {
      const auto to = static_cast<size_t>(i), from = static_cast<size_t>(i % whole);
      HEARTH_TRY(Copy(KvGroup::kFull, tables.full[from], tables.full[to]));
    }
    for (int i = std::min(whole, place.window_blocks); i < place.window_blocks; ++i) {
      const auto to = static_cast<size_t>(i), from = static_cast<size_t>(i % whole);
      HEARTH_TRY(Copy(KvGroup::kWindow, tables.window[from], tables.window[to]));
    }
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
