// SPDX-License-Identifier: Apache-2.0
#include "model/reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/rope.h"
#include "tensor/quant.h"

namespace hearth {
namespace {

using Rows = std::vector<double>;

size_t Size(int a, int b) { return static_cast<size_t>(a) * static_cast<size_t>(b); }
const double* Row(const Rows& rows, int row, int width) { return rows.data() + Size(row, width); }
double* Row(Rows& rows, int row, int width) { return rows.data() + Size(row, width); }

// Sums in eight fixed lanes: the order is defined, and the compiler may use vectors.
double Dot(const double* a, const double* b, int n) {
  double lanes[8] = {};
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int j = 0; j < 8; ++j) lanes[j] += a[i + j] * b[i + j];
  }
  for (; i < n; ++i) lanes[0] += a[i] * b[i];
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
         ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

Rows Decoded(const MatView& matrix, int row) {
  std::vector<float> values(static_cast<size_t>(matrix.cols));
  DecodeRow(matrix, row, values.data());
  return Rows(values.begin(), values.end());
}

// y = W x + b for `count` rows of x; b may be absent.
Rows Linear(const MatView& w, const MatView& bias, const Rows& x, int count) {
  Rows y(Size(count, w.rows));
  const Rows b = bias.present() ? Decoded(bias, 0) : Rows(static_cast<size_t>(w.rows), 0.0);
  for (int r = 0; r < w.rows; ++r) {
    const Rows weights = Decoded(w, r);
    for (int t = 0; t < count; ++t) {
      Row(y, t, w.rows)[r] =
          Dot(weights.data(), Row(x, t, w.cols), w.cols) + b[static_cast<size_t>(r)];
    }
  }
  return y;
}

// x * rsqrt(mean(x^2) + eps) * g on every run of `width` values.
Rows RmsNorm(const Rows& x, const MatView& gain, double eps, int width) {
  const Rows g = Decoded(gain, 0);
  Rows y(x.size());
  for (size_t first = 0; first < x.size(); first += static_cast<size_t>(width)) {
    const double scale = 1 / std::sqrt(Dot(&x[first], &x[first], width) / width + eps);
    for (size_t i = 0; i < static_cast<size_t>(width); ++i)
      y[first + i] = x[first + i] * scale * g[i];
  }
  return y;
}

void AddTo(Rows& x, const Rows& y) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double Activate(const ModelSpec& spec, double gate, double up) {
  if (spec.ffn == FfnKind::kSiluGlu) return gate * Sigmoid(gate) * up;
  const double limit = spec.swiglu_limit;
  gate = std::min(gate, limit);
  up = std::clamp(up, -limit, limit);
  return gate * Sigmoid(spec.swiglu_alpha * gate) * (up + 1);
}

Rows FeedForward(const ModelSpec& spec, const FfnWeights& w, const Rows& x, int count) {
  Rows gate = Linear(w.gate, w.gate_bias, x, count);
  const Rows up = Linear(w.up, w.up_bias, x, count);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] = Activate(spec, gate[i], up[i]);
  return Linear(w.down, w.down_bias, gate, count);
}

Rows Softmax(Rows logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (double& value : logits) sum += value = std::exp(value - top);
  for (double& value : logits) value /= sum;
  return logits;
}

struct Choice {
  int expert;
  double weight;
};

// The experts of one token and their weights. Ties go to the lower index.
std::vector<Choice> Route(const ModelSpec& spec, RouterKind kind, Rows logits) {
  if (kind == RouterKind::kSoftmaxThenTopK) logits = Softmax(std::move(logits));
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(spec.n_active_experts));
  Rows weights;
  for (const int expert : order) weights.push_back(logits[static_cast<size_t>(expert)]);
  if (kind == RouterKind::kTopKThenSoftmax) {
    weights = Softmax(std::move(weights));
  } else if (spec.renormalise_experts) {
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double& weight : weights) weight /= sum;
  }
  std::vector<Choice> choices;
  for (size_t i = 0; i < order.size(); ++i) choices.push_back({order[i], weights[i]});
  return choices;
}

}  // namespace

Reference::Reference(const Model& model)
    : model_(model), frequencies_(RopeFrequencies(model.spec.rope)), caches_(model.layers.size()) {}

void Reference::Observe(std::string_view point, int layer, const Rows& values) const {
  if (observer_) observer_(point, layer, values);
}

Status Reference::Append(std::span<const Token> tokens, Wanted wanted, const Emit& emit) {
  const ModelSpec& spec = model_.spec;
  const auto room = static_cast<size_t>(spec.max_context - num_computed_);
  if (tokens.size() > room) {
    return Error(Code::kInvalid, "%zu tokens after %d do not fit the model's context length of %d",
                 tokens.size(), num_computed_, spec.max_context);
  }
  for (const Token token : tokens) {
    if (token >= 0 && token < spec.vocab_size) continue;
    return Error(Code::kInvalid, "token %d is outside the vocabulary of %d tokens", token,
                 spec.vocab_size);
  }
  const auto count = static_cast<int>(tokens.size());
  if (count == 0) return Status();

  Rows x;
  for (const Token token : tokens) {
    const Rows embedded = Decoded(model_.embedding, token);
    x.insert(x.end(), embedded.begin(), embedded.end());
  }
  Observe("embd", -1, x);
  for (int layer = 0; layer < static_cast<int>(model_.layers.size()); ++layer) {
    Attention(layer, x, count);
    Ffn(layer, x, count);
    Observe("l_out", layer, x);
  }
  const int first = wanted == Wanted::kLastRow ? count - 1 : 0;
  x.erase(x.begin(), x.begin() + first * spec.d_model);
  const Rows h = RmsNorm(x, model_.final_norm, spec.norm_eps, spec.d_model);
  Observe("result_norm", -1, h);
  const Rows logits = Linear(model_.head, MatView(), h, count - first);
  for (int t = first; t < count; ++t) {
    emit(num_computed_ + t,
         {Row(logits, t - first, spec.vocab_size), static_cast<size_t>(spec.vocab_size)});
  }
  num_computed_ += count;
  return Status();
}

void Reference::Attention(int layer, Rows& x, int count) {
  const ModelSpec& spec = model_.spec;
  const LayerWeights& w = model_.layers[static_cast<size_t>(layer)];
  const Rows h = RmsNorm(x, w.attn_norm, spec.norm_eps, spec.d_model);
  Observe("attn_norm", layer, h);
  Rows q = Linear(w.q, w.q_bias, h, count);
  Rows k = Linear(w.k, w.k_bias, h, count);
  const Rows v = Linear(w.v, w.v_bias, h, count);
  if (w.q_norm.present()) q = RmsNorm(q, w.q_norm, spec.norm_eps, spec.d_head);
  if (w.k_norm.present()) k = RmsNorm(k, w.k_norm, spec.norm_eps, spec.d_head);
  const auto d_head = static_cast<size_t>(spec.d_head);
  for (int t = 0; t < count; ++t) {
    for (int head = 0; head < spec.n_heads; ++head) {
      Turn({&q[Size(t * spec.n_heads + head, spec.d_head)], d_head}, num_computed_ + t);
    }
    for (int head = 0; head < spec.n_kv_heads; ++head) {
      Turn({&k[Size(t * spec.n_kv_heads + head, spec.d_head)], d_head}, num_computed_ + t);
    }
  }
  Observe("Qcur", layer, q);
  Observe("Kcur", layer, k);
  Observe("Vcur", layer, v);
  LayerCache& cache = caches_[static_cast<size_t>(layer)];
  cache.k.insert(cache.k.end(), k.begin(), k.end());
  cache.v.insert(cache.v.end(), v.begin(), v.end());
  Rows mixed(q.size());
  Attend(layer, q, count, mixed);
  Observe("kqv_out", layer, mixed);
  const Rows out = Linear(w.attn_out, w.out_bias, mixed, count);
  Observe("attn_out", layer, out);
  AddTo(x, out);
}

// Rotates one head's leading n_dims values to their position.
void Reference::Turn(std::span<double> head, int position) const {
  const RopeSpec& rope = model_.spec.rope;
  const size_t pairs = frequencies_.size();
  const bool halves = rope.pairing == RopePairing::kHalves;
  for (size_t i = 0; i < pairs; ++i) {
    const double angle = position * frequencies_[i];
    const double c = std::cos(angle) * rope.concentration;
    const double s = std::sin(angle) * rope.concentration;
    double& a = head[halves ? i : 2 * i];
    double& b = head[halves ? i + pairs : 2 * i + 1];
    const double turned = a * c - b * s;
    b = b * c + a * s;
    a = turned;
  }
}

// Each query head against the visible keys of its KV head: softmax with, where the model has one,
// a sink: a logit that takes weight and gives no value.
void Reference::Attend(int layer, const Rows& q, int count, Rows& out) const {
  const ModelSpec& spec = model_.spec;
  const LayerCache& cache = caches_[static_cast<size_t>(layer)];
  const MatView& sink_view = model_.layers[static_cast<size_t>(layer)].sinks;
  const Rows sinks = sink_view.present() ? Decoded(sink_view, 0) : Rows();
  const int window = spec.layers[static_cast<size_t>(layer)].window;
  const int group = spec.n_heads / spec.n_kv_heads;
  for (int t = 0; t < count; ++t) {
    const int last = num_computed_ + t;
    const int first = window > 0 ? std::max(0, last - window + 1) : 0;
    for (int head = 0; head < spec.n_heads; ++head) {
      const size_t at = Size(t * spec.n_heads + head, spec.d_head);
      Rows logits;
      for (int j = first; j <= last; ++j) {
        const size_t key = Size(j * spec.n_kv_heads + head / group, spec.d_head);
        logits.push_back(Dot(&q[at], &cache.k[key], spec.d_head) * spec.attention_scale);
      }
      if (!sinks.empty()) logits.push_back(sinks[static_cast<size_t>(head)]);
      const Rows weights = Softmax(std::move(logits));
      for (int j = first; j <= last; ++j) {
        const double weight = weights[static_cast<size_t>(j - first)];
        const double* value = &cache.v[Size(j * spec.n_kv_heads + head / group, spec.d_head)];
        for (int i = 0; i < spec.d_head; ++i) out[at + static_cast<size_t>(i)] += weight * value[i];
      }
    }
  }
}

void Reference::Ffn(int layer, Rows& x, int count) {
  const ModelSpec& spec = model_.spec;
  const LayerWeights& w = model_.layers[static_cast<size_t>(layer)];
  const RouterKind kind = spec.layers[static_cast<size_t>(layer)].router;
  const Rows h = RmsNorm(x, w.ffn_norm, spec.norm_eps, spec.d_model);
  Observe("ffn_norm", layer, h);
  if (kind == RouterKind::kNone) {
    const Rows out = FeedForward(spec, w.ffn[0], h, count);
    Observe("ffn_out", layer, out);
    return AddTo(x, out);
  }
  const Rows logits = Linear(w.router, w.router_bias, h, count);
  Observe("ffn_moe_logits", layer, logits);
  Rows out(h.size(), 0.0);
  Rows chosen;
  for (int t = 0; t < count; ++t) {
    const double* row = Row(logits, t, spec.n_experts);
    const double* input = Row(h, t, spec.d_model);
    for (const Choice& choice : Route(spec, kind, Rows(row, row + spec.n_experts))) {
      const FfnWeights& expert = w.ffn[static_cast<size_t>(choice.expert)];
      const Rows y = FeedForward(spec, expert, Rows(input, input + spec.d_model), 1);
      for (int i = 0; i < spec.d_model; ++i) {
        Row(out, t, spec.d_model)[i] += choice.weight * y[static_cast<size_t>(i)];
      }
      chosen.push_back(choice.expert);
    }
  }
  Observe("ffn_moe_topk", layer, chosen);
  Observe("ffn_moe_out", layer, out);
  AddTo(x, out);
}

}  // namespace hearth
