// SPDX-License-Identifier: Apache-2.0
// What a model is, as data: its numbers, its kinds and its weights. Families (family_*.cc) only
// fill this in; no code below branches on a family's name.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/tensor.h"
#include "weights/weight_file.h"
namespace hearth {

// Which two values of a head one angle turns.
enum class RopePairing : uint8_t {
  kHalves,      // i and i + n/2 ("NEOX")
  kNeighbours,  // 2i and 2i + 1 (GGUF's llama, whose q and k rows the converter permuted)
};
enum class RopeScaling : uint8_t {
  kNone,
  kLinear,   // every frequency divided by `factor`
  kYarn,     // NTK by parts: high frequencies kept, low ones divided, a ramp between
  kLlama3,   // the same idea with other bounds, no concentration
  kDivisors  // a frequency divisor per pair, from the file (GGUF's rope_freqs.weight)
};
struct RopeSpec {
  RopePairing pairing = RopePairing::kHalves;
  RopeScaling scaling = RopeScaling::kNone;
  int n_dims = 0;  // leading values of a head that turn; the rest pass through
  double theta = 10000.0;
  double factor = 1.0;
  int original_context = 0;                              // kYarn, kLlama3
  double beta_fast = 32.0, beta_slow = 1.0;              // kYarn: rotations that bound the ramp
  bool yarn_truncate = true;                             // kYarn: bounds rounded to whole pairs
  double concentration = 1.0;                            // multiplies cos and sin, of q and k alike
  double low_freq_factor = 1.0, high_freq_factor = 4.0;  // kLlama3
  std::vector<float> divisors;                           // kDivisors, [n_dims / 2]
};

enum class FfnKind : uint8_t {
  kSiluGlu,       // silu(gate) * up
  kClampedSwiglu  // gpt-oss: gate and up clamped at `swiglu_limit`, gate*sigmoid(alpha*gate)*(up+1)
};
enum class RouterKind : uint8_t {
  kNone,             // dense
  kTopKThenSoftmax,  // gpt-oss: weights are the softmax over the chosen logits
  kSoftmaxThenTopK   // qwen3moe: softmax over all, then the chosen are kept
};

struct LayerSpec {
  int window = 0;  // positions this layer may look back on, itself included; 0 = all of them
  RouterKind router = RouterKind::kNone;
};
struct ModelSpec {
  std::string family;  // for people to read, never to branch on
  std::string name;
  int d_model = 0, d_head = 0, n_heads = 0, n_kv_heads = 0;
  int d_ff = 0;         // of a dense layer
  int d_ff_expert = 0;  // of one expert
  int n_experts = 0, n_active_experts = 0;
  int vocab_size = 0, max_context = 0;
  double norm_eps = 1e-5;
  double attention_scale = 0;  // multiplies q.k
  RopeSpec rope;
  FfnKind ffn = FfnKind::kSiluGlu;
  double swiglu_alpha = 1.702, swiglu_limit = 7.0;  // kClampedSwiglu
  bool renormalise_experts = false;                 // kSoftmaxThenTopK: chosen weights sum to 1
  bool tied_head = false;
  std::vector<LayerSpec> layers;
};

// Absent weights (a bias a family does not have) are views that are not present().
struct FfnWeights {
  MatView gate, gate_bias;  // [d_ff, d_model], [1, d_ff]
  MatView up, up_bias;      // [d_ff, d_model], [1, d_ff]
  MatView down, down_bias;  // [d_model, d_ff], [1, d_model]
};
struct LayerWeights {
  MatView attn_norm;            // [1, d_model]
  MatView q, q_bias;            // [n_heads d_head, d_model], [1, n_heads d_head]
  MatView k, k_bias;            // [n_kv_heads d_head, d_model]
  MatView v, v_bias;            // [n_kv_heads d_head, d_model]
  MatView q_norm, k_norm;       // [1, d_head]: RMS norm of each head before rope
  MatView sinks;                // [1, n_heads]: a learned extra logit in each softmax
  MatView attn_out, out_bias;   // [d_model, n_heads d_head], [1, d_model]
  MatView ffn_norm;             // [1, d_model]
  MatView router, router_bias;  // [n_experts, d_model], [1, n_experts]
  std::vector<FfnWeights> ffn;  // one when dense, else one per expert
};
struct Model {
  ModelSpec spec;
  MatView embedding, final_norm, head;  // [vocab, d_model], [1, d_model], [vocab, d_model]
  std::vector<LayerWeights> layers;
  std::shared_ptr<const WeightFile> file;  // keeps the views alive
};

// The families a program knows (family.h). A program may hand over a list of its own, with rows
// that src/ has never heard of; the pointers must stay valid while LoadModel runs.
struct ModelFamily;
using FamilyList = std::span<const ModelFamily* const>;
FamilyList BuiltInFamilies();  // families.cc

// Reads the description, finds every weight and checks every shape against it. A file that passes
// can be run without further checks. Errors: which tensor, what was expected, what was found.
Result<Model> LoadModel(std::shared_ptr<const WeightFile> file,
                        FamilyList families = BuiltInFamilies());

}  // namespace hearth
