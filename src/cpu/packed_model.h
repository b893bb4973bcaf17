// SPDX-License-Identifier: Apache-2.0
// A model's weights in private memory, packed for the kernels. The file is not needed afterwards.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "cpu/kernels.h"
#include "model/model.h"
#include "platform/memory.h"
#include "platform/thread_pool.h"
namespace hearth {

struct PackedFfn {
  PackedMatrix gate, up, down;
  const float *gate_bias, *up_bias, *down_bias;  // padded to whole panels, or null
};
struct PackedLayer {
  const float *attn_norm, *ffn_norm;  // [d_model]
  const float *q_norm, *k_norm;       // [d_head] or null
  const float* sinks;                 // [n_heads] or null
  PackedMatrix q, k, v, out, router;  // router.rows == 0 when dense
  const float *q_bias, *k_bias, *v_bias, *out_bias, *router_bias;
  std::vector<PackedFfn> ffn;  // one when dense, else one per expert
};

// Thread: immutable once made.
class PackedModel {
 public:
  // Called as packing goes on, with bytes done of all; from the calling thread.
  using Progress = std::function<void(int64_t done, int64_t total)>;
  static Result<std::unique_ptr<PackedModel>> Make(const Model& model, ThreadPool& pool,
                                                   const Progress& progress);
  // Memory that Make will take, before it does.
  static int64_t BytesFor(const Model& model);

  const ModelSpec& spec() const { return spec_; }
  const PackedMatrix& embedding() const { return embedding_; }
  const PackedMatrix& head() const { return head_; }
  const float* final_norm() const { return final_norm_; }
  const std::vector<PackedLayer>& layers() const { return layers_; }

 private:
  class Packer;
  PackedModel(ModelSpec spec, LargeBuffer arena)
      : spec_(std::move(spec)), arena_(std::move(arena)) {}

  ModelSpec spec_;
  LargeBuffer arena_;
  // Spilled blocks of each matrix that has any; a list so that addresses stay.
  std::vector<std::unique_ptr<std::vector<SpilledBlock>>> spills_;
  PackedMatrix embedding_{}, head_{};
  const float* final_norm_ = nullptr;
  std::vector<PackedLayer> layers_;
};

}  // namespace hearth
