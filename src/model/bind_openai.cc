// SPDX-License-Identifier: Apache-2.0
// The tensor names of OpenAI's original gpt-oss release: q, k and v fused, MXFP4 in two planes.
#include "model/bind.h"

namespace hearth {
namespace {

Status BindAttention(const Binder& binder, const ModelSpec& spec, const std::string& p,
                     LayerWeights& w) {
  const int q_rows = spec.n_heads * spec.d_head, kv_rows = spec.n_kv_heads * spec.d_head;
  const int rows = q_rows + 2 * kv_rows;
  HEARTH_ASSIGN(w.attn_norm, binder.Vector(p + "norm.scale", spec.d_model));
  HEARTH_ASSIGN(const MatView qkv, binder.Matrix(p + "qkv.weight", rows, spec.d_model));
  HEARTH_ASSIGN(const MatView bias, binder.Vector(p + "qkv.bias", rows));
  w.q = qkv.Rows(0, q_rows);
  w.k = qkv.Rows(q_rows, kv_rows);
  w.v = qkv.Rows(q_rows + kv_rows, kv_rows);
  SplitQkvBias(bias, q_rows, kv_rows, w);
  HEARTH_ASSIGN(w.sinks, binder.Vector(p + "sinks", spec.n_heads));
  HEARTH_ASSIGN(w.attn_out, binder.Matrix(p + "out.weight", spec.d_model, q_rows));
  HEARTH_ASSIGN(w.out_bias, binder.Vector(p + "out.bias", spec.d_model));
  return Status();
}

Status BindMoe(const Binder& binder, const ModelSpec& spec, const std::string& p, LayerWeights& w) {
  const int count = spec.n_experts, d = spec.d_model, d_ff = spec.d_ff_expert;
  HEARTH_ASSIGN(w.ffn_norm, binder.Vector(p + "norm.scale", d));
  HEARTH_ASSIGN(w.router, binder.Matrix(p + "gate.weight", count, d));
  HEARTH_ASSIGN(w.router_bias, binder.Vector(p + "gate.bias", count));
  HEARTH_ASSIGN(
      const auto gate_up,
      binder.PlanesStack(p + "mlp1_weight.blocks", p + "mlp1_weight.scales", count, 2 * d_ff, d));
  HEARTH_ASSIGN(const auto gate_up_bias, binder.VectorStack(p + "mlp1_bias", count, 2 * d_ff));
  HEARTH_ASSIGN(const auto down, binder.PlanesStack(p + "mlp2_weight.blocks",
                                                    p + "mlp2_weight.scales", count, d, d_ff));
  HEARTH_ASSIGN(const auto down_bias, binder.VectorStack(p + "mlp2_bias", count, d));
  SetExperts(gate_up, gate_up_bias, down, down_bias, w);
  return Status();
}

}  // namespace

Status BindOpenAi(const Binder& binder, Model& model) {
  const ModelSpec& spec = model.spec;
  HEARTH_ASSIGN(model.embedding, binder.Matrix("embedding.weight", spec.vocab_size, spec.d_model));
  HEARTH_ASSIGN(model.final_norm, binder.Vector("norm.scale", spec.d_model));
  HEARTH_ASSIGN(model.head, binder.Matrix("unembedding.weight", spec.vocab_size, spec.d_model));
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const std::string p = "block." + std::to_string(i) + ".";
    HEARTH_TRY(BindAttention(binder, spec, p + "attn.", model.layers[i]));
    HEARTH_TRY(BindMoe(binder, spec, p + "mlp.", model.layers[i]));
  }
  return Status();
}

}  // namespace hearth
