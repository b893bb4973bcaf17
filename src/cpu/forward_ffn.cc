// SPDX-License-Identifier: Apache-2.0
// The feed-forward half of a layer, dense or routed to experts.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "cpu/forward.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

// The places of the `count` largest of n values to the front of order[n].
void FindLargest(const float* row, int n, int count, int* order) {
  std::iota(order, order + n, 0);
  // Ties to the lower index. NaN compares false both ways, which a sort must never see.
  const auto key = [row](int e) { return row[e] == row[e] ? row[e] : -INFINITY; };
  std::partial_sort(order, order + count, order + n,
                    [&](int a, int b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
}

}  // namespace

// Once for all steps: a layer has dozens of experts.
void Forward::FindNeeds() {
  for (const PackedLayer& layer : model_.layers()) {
    FfnNeeds& needs = ffn_needs_.emplace_back();
    needs.gate.numerics = needs.down.numerics = numerics_;
    for (const PackedFfn& ffn : layer.ffn) {
      needs.gate.Add(ffn.gate);
      needs.gate.Add(ffn.up);
      needs.down.Add(ffn.down);
    }
  }
}

Status Forward::Ffn(int index) {
  const PackedLayer& layer = model_.layers()[static_cast<size_t>(index)];
  const RouterKind router = spec_.layers[static_cast<size_t>(index)].router;
  InputNeeds needs = ffn_needs_[static_cast<size_t>(index)].gate;
  needs.Add(layer.router);
  NormAndQuantise(layer.ffn_norm, needs);
  if (router == RouterKind::kNone) {
    DenseFfn(layer.ffn[0]);
  } else {
    HEARTH_TRY(MoeFfn(index, router));
  }
  if (clock_.on()) CountExperts(index);
  return Status();
}

void Forward::CountExperts(int index) {
  int distinct = 0;
  if (spec_.layers[static_cast<size_t>(index)].router == RouterKind::kNone) {
    distinct = 1;
  } else {
    for (size_t e = 0; e + 1 < expert_begin_.size(); ++e) {
      distinct += expert_begin_[e + 1] > expert_begin_[e] ? 1 : 0;
    }
  }
  clock_.CountExperts(index, distinct);
}

void Forward::GluAndQuantise(int rows, int d_ff, InputNeeds needs) {
  const float alpha =
      spec_.ffn == FfnKind::kSiluGlu ? 1.0f : static_cast<float>(spec_.swiglu_alpha);
  const float limit =
      spec_.ffn == FfnKind::kSiluGlu ? 0.0f : static_cast<float>(spec_.swiglu_limit);
  slot_act_.Shape(rows, d_ff, needs);
  pool_.Run(rows, 1, [&](Range range, int) {
    for (int i = range.begin; i < range.end; ++i) {
      float* gate = gate_.data() + int64_t{i} * Padded(d_ff);
      kernels_.glu(gate, up_.data() + int64_t{i} * Padded(d_ff), alpha, limit, d_ff, gate);
      slot_act_.Quantise(kernels_, gate, i);
    }
  });
}

void Forward::DenseFfn(const PackedFfn& ffn) {
  const int d = spec_.d_model, d_ff = spec_.d_ff;
  float* gate = Shaped(gate_, num_tokens_, Padded(d_ff));
  float* up = Shaped(up_, num_tokens_, Padded(d_ff));
  const MatmulInput input = act_.With(h_.data(), d);
  matmuls_.Clear();
  matmuls_.Add({&ffn.gate, input, ffn.gate_bias, gate, Padded(d_ff)});
  matmuls_.Add({&ffn.up, input, ffn.up_bias, up, Padded(d_ff)});
  clock_.Enter(StepPhase::kFeedForward);
  matmuls_.Run();
  clock_.Enter(StepPhase::kSmall);
  GluAndQuantise(num_tokens_, d_ff, NeedsOf(numerics_, {&ffn.down}));
  float* down = Shaped(down_, num_tokens_, Padded(d));
  clock_.Enter(StepPhase::kFeedForward);
  matmuls_.RunOne({&ffn.down, slot_act_.With(gate, Padded(d_ff)), ffn.down_bias, down, Padded(d)});
  clock_.Enter(StepPhase::kSmall);
  EachToken([&](int t, int) {
    kernels_.add_scaled(down + int64_t{t} * Padded(d), 1.0f, d,
                        &x_[static_cast<size_t>(t) * static_cast<size_t>(d)]);
  });
}

// The router is never quantised: a rounding there would send a token to another expert.
void Forward::Route(const PackedLayer& layer, RouterKind kind) {
  const int n = spec_.n_experts, active = spec_.n_active_experts, padded = Padded(n);
  float* logits = Shaped(router_, num_tokens_, padded);
  clock_.Enter(StepPhase::kRouter);
  matmuls_.RunOne(
      {&layer.router, act_.With(h_.data(), spec_.d_model), layer.router_bias, logits, padded});
  const bool softmax_first = kind == RouterKind::kSoftmaxThenTopK;
  choices_.resize(static_cast<size_t>(num_tokens_) * static_cast<size_t>(active));
  int* orders = order_.Room(int64_t{pool_.size()} * padded);
  float* shares = share_.Room(int64_t{pool_.size()} * padded);
  EachToken([&](int t, int worker) {
    float* row = logits + int64_t{t} * padded;
    if (softmax_first) kernels_.softmax(row, n);
    int* order = orders + int64_t{worker} * padded;
    float* weights = shares + int64_t{worker} * padded;
    FindLargest(row, n, active, order);
    for (int i = 0; i < active; ++i) weights[i] = row[order[i]];
    if (!softmax_first) {
      kernels_.softmax(weights, active);
    } else if (spec_.renormalise_experts) {
      float sum = 0.0f;
      for (int i = 0; i < active; ++i) sum += weights[i];
      for (int i = 0; i < active; ++i) weights[i] /= sum;
    }
    for (int i = 0; i < active; ++i) {
      choices_[static_cast<size_t>(t * active + i)] = {order[i], 0, weights[i]};
    }
  });
  SortByExpert(n);
  clock_.Enter(StepPhase::kSmall);
}

// Counting sort: an expert's rows become neighbours, in token order.
void Forward::SortByExpert(int num_experts) {
  expert_begin_.assign(static_cast<size_t>(num_experts) + 1, 0);
  for (const Choice& choice : choices_) ++expert_begin_[static_cast<size_t>(choice.expert) + 1];
  std::partial_sum(expert_begin_.begin(), expert_begin_.end(), expert_begin_.begin());
  std::vector<int> next(expert_begin_.begin(), expert_begin_.end() - 1);
  for (Choice& choice : choices_) choice.slot = next[static_cast<size_t>(choice.expert)]++;
}

// Inputs in the order of their experts: quantised rows, and floats for experts that read those.
MatmulInput Forward::ExpertInputs(int index, int rows) {
  const int d = spec_.d_model, active = spec_.n_active_experts;
  const InputNeeds needs = ffn_needs_[static_cast<size_t>(index)].gate;
  slot_act_.Shape(rows, d, needs);
  // Where all experts run together their inputs lie where their results will.
  float* slot_h = model_.pager() == nullptr ? down_.data()
                  : needs.floats            ? Shaped(slot_h_, rows, Padded(d))
                                            : nullptr;
  const auto slots = static_cast<int>(choices_.size());
  pool_.Run(slots, active, [&](Range range, int) {
    for (int i = range.begin; i < range.end; ++i) {
      const Choice& choice = choices_[static_cast<size_t>(i)];
      const auto e = static_cast<size_t>(choice.expert);
      if (batch_begin_[e] < 0) continue;
      const int row = batch_begin_[e] + choice.slot - expert_begin_[e], token = i / active;
      slot_act_.CopyRow(row, act_, token);
      if (needs.floats) {
        std::copy_n(&h_[static_cast<size_t>(token) * static_cast<size_t>(d)], d,
                    slot_h + int64_t{row} * Padded(d));
      }
    }
  });
  return slot_act_.With(slot_h, Padded(d));
}

// Rows of results do not depend on what else runs with them, so experts may come in parts.
void Forward::RunExperts(int index, std::span<const ExpertPager::Loaded> experts) {
  const int d = spec_.d_model, d_ff = spec_.d_ff_expert;
  const auto count_of = [this](int expert) {
    const auto e = static_cast<size_t>(expert);
    return expert_begin_[e + 1] - expert_begin_[e];
  };
  int rows = 0;
  batch_begin_.assign(static_cast<size_t>(spec_.n_experts), -1);
  for (const auto& [expert, ffn] : experts) {
    batch_begin_[static_cast<size_t>(expert)] = rows;
    rows += count_of(expert);
  }
  float* gate = Shaped(gate_, rows, Padded(d_ff));
  float* up = Shaped(up_, rows, Padded(d_ff));
  // All experts of a lone token read the same row: it needs no copies.
  const bool is_alone = num_tokens_ == 1;
  const MatmulInput inputs = is_alone ? act_.With(h_.data(), d) : ExpertInputs(index, rows);
  matmuls_.Clear();
  for (const auto& [expert, ffn] : experts) {
    const int begin = batch_begin_[static_cast<size_t>(expert)];
    const MatmulInput x = is_alone ? inputs : inputs.Rows(begin, count_of(expert));
    const int64_t at = int64_t{begin} * Padded(d_ff);
    matmuls_.Add({&ffn->gate, x, ffn->gate_bias, gate + at, Padded(d_ff)});
    matmuls_.Add({&ffn->up, x, ffn->up_bias, up + at, Padded(d_ff)});
  }
  clock_.Enter(StepPhase::kFeedForward);
  matmuls_.Run();
  clock_.Enter(StepPhase::kSmall);
  GluAndQuantise(rows, d_ff, ffn_needs_[static_cast<size_t>(index)].down);
  const MatmulInput hidden = slot_act_.With(gate, Padded(d_ff));
  matmuls_.Clear();
  for (const auto& [expert, ffn] : experts) {
    const auto e = static_cast<size_t>(expert);
    matmuls_.Add({&ffn->down, hidden.Rows(batch_begin_[e], count_of(expert)), ffn->down_bias,
                  down_.data() + int64_t{expert_begin_[e]} * Padded(d), Padded(d)});
  }
  clock_.Enter(StepPhase::kFeedForward);
  matmuls_.Run();
  clock_.Enter(StepPhase::kSmall);
}

// Those that are in memory first, the others as they come.
Status Forward::RunPagedExperts(int index, std::span<const ExpertPager::Loaded> experts) {
  ExpertPager& pager = *model_.pager();
  std::vector<int> needed;
  for (const auto& [expert, ffn] : experts) needed.push_back(expert);
  pager.Begin(index, needed);
  ExpectExperts(index + 1);
  while (true) {
    HEARTH_ASSIGN(const std::span<const ExpertPager::Loaded> loaded, pager.Next());
    if (loaded.empty()) return Status();
    RunExperts(index, loaded);
  }
}

// What a layer adds to a token's state is small, so later layers' routers already say from here
// mostly what they will say (docs/evidence/machines.md). Further ones are asked only when the next
// leave the disk nothing to do.
void Forward::ExpectExperts(int first) {
  constexpr int kLayers = 3;
  const int end = std::min(first + kLayers, static_cast<int>(spec_.layers.size()));
  for (int index = first; index < end; ++index) {
    if (index > first && model_.pager()->HasExpected()) return;
    ExpectExpertsOf(index);
  }
}

// A few tokens stand for all.
void Forward::ExpectExpertsOf(int index) {
  const PackedLayer& layer = model_.layers()[static_cast<size_t>(index)];
  if (layer.router.rows == 0 || !model_.pager()->IsWorthExpecting(index)) return;
  const int d = spec_.d_model, n = spec_.n_experts, padded = Padded(n);
  const int tokens = std::min(num_tokens_, kAheadTokens);
  float* h = Shaped(ahead_h_, tokens, d);
  ahead_act_.Shape(tokens, d, NeedsOf(numerics_, {&layer.router}));
  for (int i = 0; i < tokens; ++i) {
    const int64_t token = int64_t{num_tokens_} * (i + 1) / tokens - 1;
    kernels_.rms_norm(x_.data() + token * d, layer.ffn_norm, static_cast<float>(spec_.norm_eps), d,
                      h + int64_t{i} * d);
    ahead_act_.Quantise(kernels_, h + int64_t{i} * d, i);
  }
  float* logits = Shaped(ahead_router_, tokens, padded);
  matmuls_.RunOne({&layer.router, ahead_act_.With(h, d), layer.router_bias, logits, padded});
  int* order = order_.Room(int64_t{pool_.size()} * padded);
  std::vector<int> expected;
  for (int rank = 0; rank < spec_.n_active_experts; ++rank) {
    for (int i = 0; i < tokens; ++i) {
      const float* row = logits + int64_t{i} * padded;
      FindLargest(row, n, rank + 1, order);
      const int expert = order[rank];
      if (std::ranges::find(expected, expert) == expected.end()) expected.push_back(expert);
    }
  }
  model_.pager()->Expect(index, expected);
}

// Experts add up in the order they were chosen, then join the residual at once. Other cores wrote
// most of what is read here, and waiting for it is the whole cost: with few tokens, columns are
// shared out.
void Forward::AddExperts() {
  const int d = spec_.d_model, active = spec_.n_active_experts;
  const float* down = down_.data();
  float* sum = Shaped(out_, num_tokens_, Padded(d));
  const auto add = [&](int t, Range columns) {
    const int count = columns.end - columns.begin;
    float* total = sum + int64_t{t} * Padded(d) + columns.begin;
    std::fill_n(total, count, 0.0f);
    for (int i = 0; i < active; ++i) {
      const Choice& choice = choices_[static_cast<size_t>(t * active + i)];
      kernels_.add_scaled(down + int64_t{choice.slot} * Padded(d) + columns.begin, choice.weight,
                          count, total);
    }
    kernels_.add_scaled(total, 1.0f, count, x_.data() + int64_t{t} * d + columns.begin);
  };
  if (num_tokens_ >= pool_.size()) {
    EachToken([&](int t, int) { add(t, {0, d}); });
    return;
  }
  pool_.Run(d, kPanelRows, [&](Range columns, int) {
    for (int t = 0; t < num_tokens_; ++t) add(t, columns);
  });
}

Status Forward::MoeFfn(int index, RouterKind kind) {
  const PackedLayer& layer = model_.layers()[static_cast<size_t>(index)];
  Route(layer, kind);
  used_experts_.clear();
  for (size_t e = 0; e < layer.ffn.size(); ++e) {
    if (expert_begin_[e + 1] > expert_begin_[e]) {
      used_experts_.push_back({static_cast<int>(e), &layer.ffn[e]});
    }
  }
  Shaped(down_, static_cast<int>(choices_.size()), Padded(spec_.d_model));
  if (model_.pager() == nullptr) {
    RunExperts(index, used_experts_);
  } else {
    HEARTH_TRY(RunPagedExperts(index, used_experts_));
  }
  AddExperts();
  return Status();
}

}  // namespace hearth
