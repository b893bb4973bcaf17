// SPDX-License-Identifier: Apache-2.0
#include "cpu/step_memory.h"

#include <algorithm>

#include "cpu/pack.h"

namespace hearth {
namespace {

void AddForm(const MatView& matrix, InputNeeds& needs) {
  if (matrix.present()) needs.Add(PackKindOf(matrix));
}

// The numbers of a model that widths of rows come from.
struct Widths {
  explicit Widths(const ModelSpec& spec)
      : d(spec.d_model),
        q(spec.n_heads * spec.d_head),
        kv(spec.n_kv_heads * spec.d_head),
        vocab(spec.vocab_size) {
    for (const LayerSpec& layer : spec.layers) {
      const bool is_routed = layer.router != RouterKind::kNone;
      (is_routed ? routed : dense) = true;
    }
    d_ff = std::max(dense ? spec.d_ff : 0, routed ? spec.d_ff_expert : 0);
  }
  int d, q, kv, vocab, d_ff;
  bool dense = false, routed = false;
};

}  // namespace

StepNeeds StepNeedsOf(const Model& model, Numerics numerics) {
  StepNeeds needs;
  needs.tokens.numerics = needs.slots.numerics = needs.router.numerics = numerics;
  for (const LayerWeights& layer : model.layers) {
    for (const MatView* matrix : {&layer.q, &layer.k, &layer.v, &layer.attn_out}) {
      AddForm(*matrix, needs.tokens);
    }
    AddForm(layer.router, needs.router);
    for (const FfnWeights& ffn : layer.ffn) {
      AddForm(ffn.gate, needs.tokens);
      AddForm(ffn.up, needs.tokens);
      AddForm(ffn.down, needs.slots);
      // Of experts, rows of x are copied to their slots.
      if (layer.router.present()) AddForm(ffn.gate, needs.slots);
      if (layer.router.present()) AddForm(ffn.up, needs.slots);
    }
  }
  needs.tokens.Add(needs.router);
  AddForm(model.head, needs.tokens);
  return needs;
}

StepMemory::StepMemory(const KernelTable& kernels, ThreadPool& pool, KvCode code)
    : attend_(kernels, pool, code), matmuls_(kernels, pool) {}

void StepMemory::Reserve(ScratchArena& arena, const ModelSpec& spec, const StepNeeds& needs,
                         const StepLimits& limits) {
  const Widths width(spec);
  const int64_t tokens = limits.tokens, rows = limits.rows, most = std::max(tokens, rows);
  const int64_t slots = tokens * (width.routed ? std::max(1, spec.n_active_experts) : 1);
  const int pairs = spec.rope.n_dims / 2;
  cos_.Reserve(arena, tokens * pairs);
  sin_.Reserve(arena, tokens * pairs);
  x_.Reserve(arena, tokens * width.d);
  left_x_.Reserve(arena, tokens * width.d);
  h_.Reserve(arena, most * width.d);
  q_.Reserve(arena, tokens * Padded(width.q));
  k_.Reserve(arena, tokens * Padded(width.kv));
  v_.Reserve(arena, tokens * Padded(width.kv));
  mixed_.Reserve(arena, tokens * Padded(width.q));
  // Rows of logits pass through it where they are no whole panels.
  const int64_t logits = Padded(width.vocab) != width.vocab ? rows * Padded(width.vocab) : 0;
  out_.Reserve(arena, std::max(tokens * Padded(width.d), logits));
  gate_.Reserve(arena, slots * Padded(width.d_ff));
  up_.Reserve(arena, slots * Padded(width.d_ff));
  down_.Reserve(arena, slots * Padded(width.d));
  act_.Reserve(arena, most, std::max(width.d, width.q), needs.tokens);
  slot_act_.Reserve(arena, slots, std::max(width.routed ? width.d : 0, width.d_ff), needs.slots);
  attend_.Reserve(arena, limits.workers,
                  AttendRun::PartFloatsFor(spec.n_heads, spec.n_kv_heads, spec.d_head,
                                           spec.max_context, limits.workers));
  matmuls_.Reserve(arena, limits.workers, static_cast<int>(most),
                   std::max({width.d, width.q, width.d_ff}));
  if (!width.routed) return;
  router_.Reserve(arena, tokens * Padded(spec.n_experts));
  order_.Reserve(arena, int64_t{limits.workers} * Padded(spec.n_experts));
  share_.Reserve(arena, int64_t{limits.workers} * Padded(spec.n_experts));
  if (!limits.has_pager) return;
  if (needs.slots.floats) slot_h_.Reserve(arena, slots * Padded(width.d));
  ahead_h_.Reserve(arena, int64_t{kAheadTokens} * width.d);
  ahead_act_.Reserve(arena, kAheadTokens, width.d, needs.router);
  ahead_router_.Reserve(arena, int64_t{kAheadTokens} * Padded(spec.n_experts));
}

int64_t StepMemory::BytesFor(const ModelSpec& spec, const StepNeeds& needs,
                             const StepLimits& limits) {
  // Its own twin, which has no memory and only counts.
  static constexpr KernelTable kNone{};
  ThreadPool nobody(WorkerPlan{.cpus = {}, .first = {0, 1}, .memory = {}});
  ScratchArena arena;
  StepMemory(kNone, nobody, KvCode::kInt16).Reserve(arena, spec, needs, limits);
  return arena.used_bytes();
}

}  // namespace hearth
