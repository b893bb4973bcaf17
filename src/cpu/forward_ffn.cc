// SPDX-License-Identifier: Apache-2.0
// The feed-forward half of a layer, dense or routed to experts.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "cpu/forward.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

InputNeeds GateNeeds(const std::vector<PackedFfn>& ffns) {
  InputNeeds needs;
  for (const PackedFfn& ffn : ffns) {
    needs.Add(ffn.gate);
    needs.Add(ffn.up);
  }
  return needs;
}

InputNeeds DownNeeds(const std::vector<PackedFfn>& ffns) {
  InputNeeds needs;
  for (const PackedFfn& ffn : ffns) needs.Add(ffn.down);
  return needs;
}

}  // namespace

void Forward::Ffn(int index) {
  const PackedLayer& layer = model_.layers()[static_cast<size_t>(index)];
  const RouterKind router = spec_.layers[static_cast<size_t>(index)].router;
  InputNeeds needs = GateNeeds(layer.ffn);
  needs.Add(layer.router);
  NormAndQuantise(layer.ffn_norm, needs);
  if (router == RouterKind::kNone) {
    DenseFfn(layer.ffn[0]);
  } else {
    MoeFfn(layer, router);
  }
  if (clock_.on()) CountExperts(index);
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
  GluAndQuantise(num_tokens_, d_ff, NeedsOf({&ffn.down}));
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
  EachToken([&](int t, int) {
    float* row = logits + int64_t{t} * padded;
    if (softmax_first) kernels_.softmax(row, n);
    std::vector<int> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    // Ties to the lower index. NaN compares false both ways, which a sort must never see.
    const auto key = [row](int e) { return row[e] == row[e] ? row[e] : -INFINITY; };
    std::partial_sort(order.begin(), order.begin() + active, order.end(),
                      [&](int a, int b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
    std::vector<float> weights;
    for (int i = 0; i < active; ++i) weights.push_back(row[order[static_cast<size_t>(i)]]);
    if (!softmax_first) {
      kernels_.softmax(weights.data(), active);
    } else if (spec_.renormalise_experts) {
      float sum = 0.0f;
      for (const float weight : weights) sum += weight;
      for (float& weight : weights) weight /= sum;
    }
    for (int i = 0; i < active; ++i) {
      choices_[static_cast<size_t>(t * active + i)] = {order[static_cast<size_t>(i)], 0,
                                                       weights[static_cast<size_t>(i)]};
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

void Forward::MoeFfn(const PackedLayer& layer, RouterKind kind) {
  const int d = spec_.d_model, d_ff = spec_.d_ff_expert, active = spec_.n_active_experts;
  Route(layer, kind);
  const auto slots = static_cast<int>(choices_.size());
  // Inputs in slot order: quantised rows, and floats for experts that read those.
  const InputNeeds needs = GateNeeds(layer.ffn);
  slot_act_.Shape(slots, d, needs);
  float* slot_h = Shaped(down_, slots, Padded(d));
  pool_.Run(slots, active, [&](Range range, int) {
    for (int i = range.begin; i < range.end; ++i) {
      const Choice& choice = choices_[static_cast<size_t>(i)];
      const int token = i / active;
      slot_act_.CopyRow(choice.slot, act_, token);
      if (needs.floats) {
        std::copy_n(&h_[static_cast<size_t>(token) * static_cast<size_t>(d)], d,
                    slot_h + int64_t{choice.slot} * Padded(d));
      }
    }
  });
  float* gate = Shaped(gate_, slots, Padded(d_ff));
  float* up = Shaped(up_, slots, Padded(d_ff));
  const MatmulInput inputs = slot_act_.With(slot_h, Padded(d));
  matmuls_.Clear();
  for (size_t e = 0; e < layer.ffn.size(); ++e) {
    const int begin = expert_begin_[e], count = expert_begin_[e + 1] - begin;
    if (count == 0) continue;
    const PackedFfn& ffn = layer.ffn[e];
    const MatmulInput x = inputs.Rows(begin, count);
    const int64_t at = int64_t{begin} * Padded(d_ff);
    matmuls_.Add({&ffn.gate, x, ffn.gate_bias, gate + at, Padded(d_ff)});
    matmuls_.Add({&ffn.up, x, ffn.up_bias, up + at, Padded(d_ff)});
  }
  clock_.Enter(StepPhase::kFeedForward);
  matmuls_.Run();
  clock_.Enter(StepPhase::kSmall);
  GluAndQuantise(slots, d_ff, DownNeeds(layer.ffn));
  float* down = Shaped(down_, slots, Padded(d));
  const MatmulInput hidden = slot_act_.With(gate, Padded(d_ff));
  matmuls_.Clear();
  for (size_t e = 0; e < layer.ffn.size(); ++e) {
    const int begin = expert_begin_[e], count = expert_begin_[e + 1] - begin;
    if (count == 0) continue;
    matmuls_.Add({&layer.ffn[e].down, hidden.Rows(begin, count), layer.ffn[e].down_bias,
                  down + int64_t{begin} * Padded(d), Padded(d)});
  }
  clock_.Enter(StepPhase::kFeedForward);
  matmuls_.Run();
  clock_.Enter(StepPhase::kSmall);
  // Experts add up in the order they were chosen, then join the residual at once.
  float* sum = Shaped(out_, num_tokens_, Padded(d));
  EachToken([&](int t, int) {
    float* total = sum + int64_t{t} * Padded(d);
    std::fill_n(total, d, 0.0f);
    for (int i = 0; i < active; ++i) {
      const Choice& choice = choices_[static_cast<size_t>(t * active + i)];
      kernels_.add_scaled(down + int64_t{choice.slot} * Padded(d), choice.weight, d, total);
    }
    kernels_.add_scaled(total, 1.0f, d, &x_[static_cast<size_t>(t) * static_cast<size_t>(d)]);
  });
}

}  // namespace hearth
