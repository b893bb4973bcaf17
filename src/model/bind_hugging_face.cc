// SPDX-License-Identifier: Apache-2.0
// Hugging Face's tensor names.
#include "base/check.h"
#include "model/bind.h"

namespace hearth {
namespace {

Status BindAttention(const Binder& binder, const ModelSpec& spec, const std::string& p,
                     LayerWeights& w) {
  const int q_rows = spec.n_heads * spec.d_head, kv_rows = spec.n_kv_heads * spec.d_head;
  const std::string a = p + "self_attn.";
  HEARTH_ASSIGN(w.attn_norm, binder.Vector(p + "input_layernorm.weight", spec.d_model));
  HEARTH_ASSIGN(w.q, binder.Matrix(a + "q_proj.weight", q_rows, spec.d_model));
  HEARTH_ASSIGN(w.k, binder.Matrix(a + "k_proj.weight", kv_rows, spec.d_model));
  HEARTH_ASSIGN(w.v, binder.Matrix(a + "v_proj.weight", kv_rows, spec.d_model));
  HEARTH_ASSIGN(w.q_bias, binder.VectorIfAny(a + "q_proj.bias", q_rows));
  HEARTH_ASSIGN(w.k_bias, binder.VectorIfAny(a + "k_proj.bias", kv_rows));
  HEARTH_ASSIGN(w.v_bias, binder.VectorIfAny(a + "v_proj.bias", kv_rows));
  HEARTH_ASSIGN(w.q_norm, binder.VectorIfAny(a + "q_norm.weight", spec.d_head));
  HEARTH_ASSIGN(w.k_norm, binder.VectorIfAny(a + "k_norm.weight", spec.d_head));
  HEARTH_ASSIGN(w.attn_out, binder.Matrix(a + "o_proj.weight", spec.d_model, q_rows));
  HEARTH_ASSIGN(w.out_bias, binder.VectorIfAny(a + "o_proj.bias", spec.d_model));
  HEARTH_ASSIGN(w.sinks, binder.VectorIfAny(a + "sinks", spec.n_heads));
  HEARTH_ASSIGN(w.ffn_norm, binder.Vector(p + "post_attention_layernorm.weight", spec.d_model));
  return Status();
}

}  // namespace

Result<FfnWeights> BindGlu(const Binder& binder, const std::string& p, int d_model, int d_ff) {
  FfnWeights ffn;
  HEARTH_ASSIGN(ffn.gate, binder.Matrix(p + "gate_proj.weight", d_ff, d_model));
  HEARTH_ASSIGN(ffn.up, binder.Matrix(p + "up_proj.weight", d_ff, d_model));
  HEARTH_ASSIGN(ffn.down, binder.Matrix(p + "down_proj.weight", d_model, d_ff));
  HEARTH_ASSIGN(ffn.gate_bias, binder.VectorIfAny(p + "gate_proj.bias", d_ff));
  HEARTH_ASSIGN(ffn.up_bias, binder.VectorIfAny(p + "up_proj.bias", d_ff));
  HEARTH_ASSIGN(ffn.down_bias, binder.VectorIfAny(p + "down_proj.bias", d_model));
  return ffn;
}

Status BindHuggingFace(const Binder& binder, ExpertBinder bind_experts, Model& model) {
  const ModelSpec& spec = model.spec;
  HEARTH_ASSIGN(model.embedding,
                binder.Matrix("model.embed_tokens.weight", spec.vocab_size, spec.d_model));
  HEARTH_ASSIGN(model.final_norm, binder.Vector("model.norm.weight", spec.d_model));
  model.head = model.embedding;
  if (!spec.tied_head) {
    HEARTH_ASSIGN(model.head, binder.Matrix("lm_head.weight", spec.vocab_size, spec.d_model));
  }
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const std::string p = "model.layers." + std::to_string(i) + ".";
    LayerWeights& w = model.layers[i];
    HEARTH_TRY(BindAttention(binder, spec, p, w));
    if (spec.layers[i].router == RouterKind::kNone) {
      HEARTH_ASSIGN(const FfnWeights ffn, BindGlu(binder, p + "mlp.", spec.d_model, spec.d_ff));
      w.ffn.push_back(ffn);
    } else {
      HEARTH_CHECK(bind_experts != nullptr);
      HEARTH_TRY(bind_experts(binder, spec, p + "mlp.", w));
    }
  }
  return Status();
}

Status BindHuggingFaceDense(const Binder& binder, Model& model) {
  return BindHuggingFace(binder, nullptr, model);
}

}  // namespace hearth
