// SPDX-License-Identifier: Apache-2.0
#include "cpu/forward.h"

#include <algorithm>
#include <chrono>

#include "cpu/pack.h"
#include "cpu/panels.h"
#include "model/rope.h"

namespace hearth {
namespace {

int64_t Nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

Forward::Forward(const PackedModel& model, const KernelTable& kernels, ThreadPool& pool,
                 KvMemory& kv, Numerics numerics, PhaseTotals* phases)
    : StepMemory(kernels, pool, kv.layout().code),
      model_(model),
      spec_(model.spec()),
      kernels_(kernels),
      pool_(pool),
      kv_(kv),
      numerics_(numerics),
      frequencies_(RopeFrequencies(model.spec().rope)),
      clock_(phases, pool.size(), [&pool] {
        const ThreadPool::LoopTime time = pool.loop_time();
        return PhaseReading{Nanoseconds(), time.loops, time.busy};
      }) {
  if (phases != nullptr) pool.CountTime();
  FindNeeds();
}

// Between two halves of layers a step is its plan and x_: everything else is made anew in each.
Result<bool> Forward::Layers(const StepPlan& plan, const WantsBreak& wants_break) {
  clock_.Enter(StepPhase::kSmall);
  int half = 0;
  PlaceTokens(plan);
  if (left_.plan == &plan) {
    std::swap(x_, left_x_);
    half = left_.half;
    left_.plan = nullptr;
  } else {
    Embed(plan);
    if (model_.pager() != nullptr) ExpectExperts(0);
  }
  for (const auto end = 2 * static_cast<int>(spec_.layers.size()); half < end;) {
    if (half % 2 == 0) {
      Attention(plan, half / 2);
    } else {
      HEARTH_TRY(Ffn(half / 2));
    }
    if (++half == end || left_.plan != nullptr || !wants_break()) continue;
    std::swap(x_, left_x_);
    left_.plan = &plan;
    left_.half = half;
    clock_.EndStep();
    return false;
  }
  Pool(plan);
  return true;
}

void Forward::PlaceTokens(const StepPlan& plan) {
  num_tokens_ = static_cast<int>(plan.tokens.size());
  position_.resize(plan.tokens.size());
  slice_of_.resize(plan.tokens.size());
  for (size_t s = 0; s < plan.slices.size(); ++s) {
    const SeqSlice& slice = plan.slices[s];
    for (int i = 0; i < slice.count; ++i) {
      position_[static_cast<size_t>(slice.first + i)] = slice.num_computed + i;
      slice_of_[static_cast<size_t>(slice.first + i)] = static_cast<int>(s);
    }
  }
  const auto pairs = static_cast<int>(frequencies_.size());
  float* cos = Shaped(cos_, num_tokens_, pairs);
  float* sin = Shaped(sin_, num_tokens_, pairs);
  EachToken([&](int t, int) {
    RopeTurns(frequencies_, spec_.rope.concentration, position_[static_cast<size_t>(t)],
              cos + int64_t{t} * pairs, sin + int64_t{t} * pairs);
  });
}

void Forward::Embed(const StepPlan& plan) {
  float* x = Shaped(x_, num_tokens_, spec_.d_model);
  const WorkerPlan& workers = pool_.plan();
  const int panels = NumPanels(model_.embedding().rows);
  EachToken([&](int t, int) {
    const Token token = plan.tokens[static_cast<size_t>(t)];
    int node = 0;
    while (workers.edge(panels, node + 1) <= token / kPanelRows) ++node;
    UnpackRow(PartOn(model_.embedding(), node), token, x + int64_t{t} * spec_.d_model);
  });
}

void Forward::NormAndQuantise(const float* gain, InputNeeds needs) {
  const int d = spec_.d_model;
  float* h = Shaped(h_, num_tokens_, d);
  act_.Shape(num_tokens_, d, needs);
  EachToken([&](int t, int) {
    kernels_.rms_norm(&x_[static_cast<size_t>(t) * static_cast<size_t>(d)], gain,
                      static_cast<float>(spec_.norm_eps), d, h + int64_t{t} * d);
    act_.Quantise(kernels_, h + int64_t{t} * d, t);
  });
}

void Forward::Attention(const StepPlan& plan, int index) {
  const PackedLayer& layer = model_.layers()[static_cast<size_t>(index)];
  const int d = spec_.d_model, q_width = spec_.n_heads * spec_.d_head;
  const int kv_width = spec_.n_kv_heads * spec_.d_head;
  NormAndQuantise(layer.attn_norm, NeedsOf(numerics_, {&layer.q, &layer.k, &layer.v}));
  float* q = Shaped(q_, num_tokens_, Padded(q_width));
  float* k = Shaped(k_, num_tokens_, Padded(kv_width));
  float* v = Shaped(v_, num_tokens_, Padded(kv_width));
  const MatmulInput input = act_.With(h_.data(), d);
  matmuls_.Clear();
  matmuls_.Add({&layer.q, input, layer.q_bias, q, Padded(q_width)});
  matmuls_.Add({&layer.k, input, layer.k_bias, k, Padded(kv_width)});
  matmuls_.Add({&layer.v, input, layer.v_bias, v, Padded(kv_width)});
  clock_.Enter(StepPhase::kProjections);
  matmuls_.Run();
  clock_.Enter(StepPhase::kSmall);
  TurnAndStore(plan, index);
  clock_.Enter(StepPhase::kAttention);
  Attend(plan, index);
  clock_.Enter(StepPhase::kSmall);
  act_.Shape(num_tokens_, q_width, NeedsOf(numerics_, {&layer.out}));
  EachToken([&](int t, int) {
    act_.Quantise(kernels_, mixed_.data() + int64_t{t} * Padded(q_width), t);
  });
  float* out = Shaped(out_, num_tokens_, Padded(d));
  clock_.Enter(StepPhase::kProjections);
  matmuls_.RunOne(
      {&layer.out, act_.With(mixed_.data(), Padded(q_width)), layer.out_bias, out, Padded(d)});
  clock_.Enter(StepPhase::kSmall);
  EachToken([&](int t, int) {
    kernels_.add_scaled(out + int64_t{t} * Padded(d), 1.0f, d,
                        &x_[static_cast<size_t>(t) * static_cast<size_t>(d)]);
  });
}

// Few tokens are shared out by head: where K and V are written nothing is in a cache.
void Forward::TurnAndStore(const StepPlan& plan, int index) {
  const int heads = spec_.n_kv_heads;
  pool_.Run(num_tokens_ * heads, num_tokens_ < pool_.size() ? 1 : heads, [&](Range range, int) {
    for (int i = range.begin; i < range.end;) {
      const int token = i / heads, end = std::min(range.end, (token + 1) * heads);
      TurnAndStoreHeads(plan, index, token, {i - token * heads, end - token * heads});
      i = end;
    }
  });
}

// KV heads, and the query heads that read them.
void Forward::TurnAndStoreHeads(const StepPlan& plan, int index, int t, KvMemory::Heads heads) {
  const PackedLayer& layer = model_.layers()[static_cast<size_t>(index)];
  const auto pairs = static_cast<int>(frequencies_.size());
  const bool neighbours = spec_.rope.pairing == RopePairing::kNeighbours;
  const auto eps = static_cast<float>(spec_.norm_eps);
  const float* cos = cos_.data() + int64_t{t} * pairs;
  const float* sin = sin_.data() + int64_t{t} * pairs;
  const auto turn = [&](float* first, int begin, int end, const float* norm) {
    for (int i = begin; i < end; ++i) {
      float* head = first + i * spec_.d_head;
      if (norm != nullptr) kernels_.rms_norm(head, norm, eps, spec_.d_head, head);
      kernels_.rope(head, cos, sin, spec_.rope.n_dims, neighbours);
    }
  };
  const int group = spec_.n_heads / spec_.n_kv_heads;
  const int kv_stride = Padded(spec_.n_kv_heads * spec_.d_head);
  float* k = k_.data() + int64_t{t} * kv_stride;
  turn(q_.data() + int64_t{t} * Padded(spec_.n_heads * spec_.d_head), heads.begin * group,
       heads.end * group, layer.q_norm);
  turn(k, heads.begin, heads.end, layer.k_norm);
  const SeqSlice& slice = plan.slices[static_cast<size_t>(slice_of_[static_cast<size_t>(t)])];
  const BlockTable& table = slice.tables[static_cast<size_t>(kv_.layer(index).group)];
  const int position = position_[static_cast<size_t>(t)];
  const auto block = static_cast<int>(table[static_cast<size_t>(position / kBlockTokens)]);
  kv_.Write(index, block, position, heads, k, v_.data() + int64_t{t} * kv_stride);
}

void Forward::Attend(const StepPlan& plan, int index) {
  const PackedLayer& layer = model_.layers()[static_cast<size_t>(index)];
  const KvMemory::Layer& where = kv_.layer(index);
  const int stride = Padded(spec_.n_heads * spec_.d_head);
  float* mixed = Shaped(mixed_, num_tokens_, stride);
  attend_slices_.clear();
  for (const SeqSlice& slice : plan.slices) {
    const BlockTable& table = slice.tables[static_cast<size_t>(where.group)];
    attend_slices_.push_back({slice.first, slice.count, slice.num_computed,
                              reinterpret_cast<const int32_t*>(table.data())});
  }
  AttendArgs common{};
  common.q = q_.data();
  common.out = mixed;
  common.pool = kv_.pool(where.group);
  common.sinks = layer.sinks;
  common.q_stride = stride;
  common.block_bytes = kv_.layout().group(where.group).block_bytes;
  common.layer_offset = where.offset;
  common.window = where.window;
  common.n_heads = spec_.n_heads;
  common.n_kv_heads = spec_.n_kv_heads;
  common.d_head = spec_.d_head;
  common.scale = static_cast<float>(spec_.attention_scale);
  attend_.Run(common, attend_slices_);
}

// Columns are shared out, never the tokens of a column: each sum is taken in the order of its
// tokens, whoever takes it.
void Forward::Pool(const StepPlan& plan) {
  const int d = spec_.d_model;
  for (const SeqSlice& slice : plan.slices) {
    if (slice.num_pooled == 0) continue;
    const int64_t first = slice.first + slice.count - slice.num_pooled;
    float* h = Shaped(h_, slice.num_pooled, d);
    pool_.Run(slice.num_pooled, 1, [&](Range range, int) {
      for (int i = range.begin; i < range.end; ++i) {
        kernels_.rms_norm(&x_[static_cast<size_t>((first + i) * d)], model_.final_norm(),
                          static_cast<float>(spec_.norm_eps), d, h + int64_t{i} * d);
      }
    });
    pool_.Run(d, kPanelRows, [&](Range range, int) {
      for (int i = 0; i < slice.num_pooled; ++i) {
        for (int c = range.begin; c < range.end; ++c) {
          slice.pool[static_cast<size_t>(c)] += static_cast<double>(h[int64_t{i} * d + c]);
        }
      }
    });
  }
}

void Forward::Logits(const StepPlan& plan, std::span<float> logits) {
  const int d = spec_.d_model, padded = Padded(spec_.vocab_size);
  std::vector<int> rows(static_cast<size_t>(plan.num_rows), -1);
  for (const SeqSlice& slice : plan.slices) {
    for (int i = 0; i < slice.num_rows; ++i) {
      rows[static_cast<size_t>(slice.first_row + i)] =
          slice.first + slice.count - slice.num_rows + i;
    }
  }
  const auto count = static_cast<int>(rows.size());
  if (count == 0) return clock_.EndStep();
  float* h = Shaped(h_, count, d);
  act_.Shape(count, d, NeedsOf(numerics_, {&model_.head()}));
  pool_.Run(count, 1, [&](Range range, int) {
    for (int i = range.begin; i < range.end; ++i) {
      const int64_t token = rows[static_cast<size_t>(i)];
      kernels_.rms_norm(&x_[static_cast<size_t>(token * d)], model_.final_norm(),
                        static_cast<float>(spec_.norm_eps), d, h + int64_t{i} * d);
      act_.Quantise(kernels_, h + int64_t{i} * d, i);
    }
  });
  clock_.Enter(StepPhase::kHead);
  if (padded == spec_.vocab_size) {
    matmuls_.RunOne({&model_.head(), act_.With(h, d), nullptr, logits.data(), padded});
    return clock_.EndStep();
  }
  float* out = Shaped(out_, count, padded);
  matmuls_.RunOne({&model_.head(), act_.With(h, d), nullptr, out, padded});
  for (int i = 0; i < count; ++i) {
    std::copy_n(out + int64_t{i} * padded, spec_.vocab_size,
                logits.begin() + int64_t{i} * spec_.vocab_size);
  }
  clock_.EndStep();
}

}  // namespace hearth
