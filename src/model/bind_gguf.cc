// SPDX-License-Identifier: Apache-2.0
// GGUF's tensor names, with the variants that Ollama's own files use.
#include "model/bind.h"

namespace hearth {
namespace {

struct Layer {
  const Binder& binder;
  const ModelSpec& spec;
  const std::string prefix;

  // The first of the names that exists, else the first, so that errors name the usual one.
  std::string Either(const std::string& usual, const std::string& other) const {
    return !binder.Has(prefix + usual) && binder.Has(prefix + other) ? prefix + other
                                                                     : prefix + usual;
  }
};

Status BindQkv(const Layer& layer, LayerWeights& w) {
  const ModelSpec& spec = layer.spec;
  const Binder& binder = layer.binder;
  const int q_rows = spec.n_heads * spec.d_head, kv_rows = spec.n_kv_heads * spec.d_head;
  if (layer.binder.Has(layer.prefix + "attn_qkv.weight")) {
    const int rows = q_rows + 2 * kv_rows;
    HEARTH_ASSIGN(const MatView all,
                  binder.Matrix(layer.prefix + "attn_qkv.weight", rows, spec.d_model));
    w.q = all.Rows(0, q_rows);
    w.k = all.Rows(q_rows, kv_rows);
    w.v = all.Rows(q_rows + kv_rows, kv_rows);
    HEARTH_ASSIGN(MatView bias, binder.VectorIfAny(layer.prefix + "attn_qkv.bias", rows));
    if (bias.present()) SplitQkvBias(bias, q_rows, kv_rows, w);
    return Status();
  }
  HEARTH_ASSIGN(w.q, binder.Matrix(layer.prefix + "attn_q.weight", q_rows, spec.d_model));
  HEARTH_ASSIGN(w.k, binder.Matrix(layer.prefix + "attn_k.weight", kv_rows, spec.d_model));
  HEARTH_ASSIGN(w.v, binder.Matrix(layer.prefix + "attn_v.weight", kv_rows, spec.d_model));
  HEARTH_ASSIGN(w.q_bias, binder.VectorIfAny(layer.prefix + "attn_q.bias", q_rows));
  HEARTH_ASSIGN(w.k_bias, binder.VectorIfAny(layer.prefix + "attn_k.bias", kv_rows));
  HEARTH_ASSIGN(w.v_bias, binder.VectorIfAny(layer.prefix + "attn_v.bias", kv_rows));
  return Status();
}

Status BindAttention(const Layer& layer, LayerWeights& w) {
  const ModelSpec& spec = layer.spec;
  const Binder& binder = layer.binder;
  const std::string& p = layer.prefix;
  HEARTH_ASSIGN(w.attn_norm, binder.Vector(p + "attn_norm.weight", spec.d_model));
  HEARTH_TRY(BindQkv(layer, w));
  HEARTH_ASSIGN(w.q_norm, binder.VectorIfAny(p + "attn_q_norm.weight", spec.d_head));
  HEARTH_ASSIGN(w.k_norm, binder.VectorIfAny(p + "attn_k_norm.weight", spec.d_head));
  HEARTH_ASSIGN(w.attn_out, binder.Matrix(layer.Either("attn_output.weight", "attn_out.weight"),
                                          spec.d_model, spec.n_heads * spec.d_head));
  HEARTH_ASSIGN(w.out_bias, binder.VectorIfAny(layer.Either("attn_output.bias", "attn_out.bias"),
                                               spec.d_model));
  HEARTH_ASSIGN(w.sinks,
                binder.VectorIfAny(layer.Either("attn_sinks.weight", "attn_sinks"), spec.n_heads));
  return Status();
}

Status BindDense(const Layer& layer, LayerWeights& w) {
  const ModelSpec& spec = layer.spec;
  FfnWeights ffn;
  HEARTH_ASSIGN(ffn.gate,
                layer.binder.Matrix(layer.prefix + "ffn_gate.weight", spec.d_ff, spec.d_model));
  HEARTH_ASSIGN(ffn.up,
                layer.binder.Matrix(layer.prefix + "ffn_up.weight", spec.d_ff, spec.d_model));
  HEARTH_ASSIGN(ffn.down,
                layer.binder.Matrix(layer.prefix + "ffn_down.weight", spec.d_model, spec.d_ff));
  w.ffn.push_back(ffn);
  return Status();
}

// One of the three projections of every expert, with its bias where the family has one.
Status BindExperts(const Layer& layer, const char* name, int rows, int cols,
                   MatView FfnWeights::* weight, MatView FfnWeights::* bias, LayerWeights& w) {
  const int count = layer.spec.n_experts;
  const std::string stem = layer.prefix + name;
  HEARTH_ASSIGN(const auto matrices, layer.binder.Stack(stem + ".weight", count, rows, cols));
  std::vector<MatView> biases(matrices.size());
  if (layer.binder.Has(stem + ".bias")) {
    HEARTH_ASSIGN(biases, layer.binder.VectorStack(stem + ".bias", count, rows));
  }
  for (size_t i = 0; i < matrices.size(); ++i) {
    w.ffn[i].*weight = matrices[i];
    w.ffn[i].*bias = biases[i];
  }
  return Status();
}

Status BindInterleaved(const Layer& layer, LayerWeights& w) {
  const int count = layer.spec.n_experts, rows = 2 * layer.spec.d_ff_expert;
  const std::string stem = layer.prefix + "ffn_gate_up_exps";
  HEARTH_ASSIGN(const auto both,
                layer.binder.Stack(stem + ".weight", count, rows, layer.spec.d_model));
  HEARTH_ASSIGN(const auto biases, layer.binder.VectorStack(stem + ".bias", count, rows));
  for (size_t i = 0; i < both.size(); ++i) SplitGateUp(both[i], biases[i], w.ffn[i]);
  return Status();
}

Status BindMoe(const Layer& layer, bool interleaved, LayerWeights& w) {
  const ModelSpec& spec = layer.spec;
  const int d_ff = spec.d_ff_expert, d = spec.d_model;
  const std::string& p = layer.prefix;
  HEARTH_ASSIGN(w.router, layer.binder.Matrix(p + "ffn_gate_inp.weight", spec.n_experts, d));
  HEARTH_ASSIGN(w.router_bias, layer.binder.VectorIfAny(p + "ffn_gate_inp.bias", spec.n_experts));
  w.ffn.resize(static_cast<size_t>(spec.n_experts));
  if (interleaved) {
    HEARTH_TRY(BindInterleaved(layer, w));
  } else {
    HEARTH_TRY(
        BindExperts(layer, "ffn_gate_exps", d_ff, d, &FfnWeights::gate, &FfnWeights::gate_bias, w));
    HEARTH_TRY(
        BindExperts(layer, "ffn_up_exps", d_ff, d, &FfnWeights::up, &FfnWeights::up_bias, w));
  }
  return BindExperts(layer, "ffn_down_exps", d, d_ff, &FfnWeights::down, &FfnWeights::down_bias, w);
}

}  // namespace

Status BindGguf(const Binder& binder, const GgufNaming& naming, Model& model) {
  const ModelSpec& spec = model.spec;
  HEARTH_ASSIGN(model.embedding, binder.Matrix("token_embd.weight", spec.vocab_size, spec.d_model));
  HEARTH_ASSIGN(model.final_norm, binder.Vector("output_norm.weight", spec.d_model));
  model.head = model.embedding;
  if (!spec.tied_head) {
    HEARTH_ASSIGN(model.head, binder.Matrix("output.weight", spec.vocab_size, spec.d_model));
  }
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const Layer layer{binder, spec, "blk." + std::to_string(i) + "."};
    LayerWeights& w = model.layers[i];
    HEARTH_TRY(BindAttention(layer, w));
    HEARTH_ASSIGN(w.ffn_norm, binder.Vector(layer.Either(naming.ffn_norm, naming.other_ffn_norm),
                                            spec.d_model));
    if (spec.layers[i].router == RouterKind::kNone) {
      HEARTH_TRY(BindDense(layer, w));
    } else {
      const bool interleaved =
          naming.interleaves_gate_up && binder.Has(layer.prefix + "ffn_gate_up_exps.weight");
      HEARTH_TRY(BindMoe(layer, interleaved, w));
    }
  }
  return Status();
}

Status BindGgufUsual(const Binder& binder, Model& model) {
  return BindGguf(binder, GgufNaming(), model);
}

}  // namespace hearth
