// SPDX-License-Identifier: Apache-2.0
// A model's weights, packed for the kernels: in private memory, or in a packed file that is mapped.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cpu/expert_pager.h"
#include "cpu/kernels.h"
#include "cpu/packed_ffn.h"
#include "model/model.h"
#include "platform/memory.h"
#include "platform/thread_pool.h"
namespace hearth {

// Which arrangement a packed file holds: the panels of panels.h, in the order of
// PackedModel::Build. Another arrangement takes another number, and old files are refused.
inline constexpr uint32_t kPackedLayout = 3;

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
  // Packs a checkpoint into memory of its own, giving each weight's pages back as it goes, so that
  // the model is never held twice; or checks a packed file and uses it where it is mapped. With a
  // pool on several memory nodes, each node's workers place their part of every matrix on it.
  // kCorrupt for values that are no numbers. With `expert_bytes`, which needs a packed file,
  // experts take at most so much memory and come from the file when they are needed; everything
  // else is copied, so that nothing is mapped afterwards.
  static Result<std::unique_ptr<PackedModel>> Make(const Model& model, ThreadPool& pool,
                                                   const Progress& progress,
                                                   int64_t expert_bytes = 0);
  // Memory that Make will take, before it does: on one node, and where the parts of several begin,
  // with the end of the last.
  static int64_t BytesFor(const Model& model);
  using Regions = std::vector<int64_t>;
  static Regions RegionsFor(const Model& model, const WorkerPlan& plan);

  // What a model with experts takes when they come from disk.
  struct PagedSizes {
    int64_t resident = 0;  // everything but experts
    int64_t frame = 0;     // room for any of them
    int layers = 0, experts = 0;
    int64_t expert = 0;                      // the largest's bytes
    int frames(int64_t expert_bytes) const;  // in so much memory
  };
  static PagedSizes PagedSizesOf(const Model& model);
  // kUnsupported when the experts of this model cannot come from disk, kInvalid when so much memory
  // does not hold one for each layer.
  static Status CheckPaging(const Model& model, int64_t expert_bytes);

  // What a packed file keeps: the memory as it is, and the spilled blocks as WriteSpills gives
  // them.
  std::span<const std::byte> weights() const { return weights_; }
  std::string WriteSpills() const;

  const ModelSpec& spec() const { return spec_; }
  const PackedMatrix& embedding() const { return embedding_; }
  const PackedMatrix& head() const { return head_; }
  const float* final_norm() const { return final_norm_; }
  // With a pager the experts in here have shapes and no weights.
  const std::vector<PackedLayer>& layers() const { return layers_; }
  ExpertPager* pager() const { return pager_.get(); }

 private:
  class Builder;
  class Counter;
  class Packer;
  class Finder;
  class Copier;
  class PagedCounter;
  class PagedFinder;
  using Addresses = std::vector<std::unique_ptr<const uint8_t*[]>>;
  static Result<LargeBuffer> MakeArena(const Regions& regions, const WorkerPlan& plan);
  static Result<std::unique_ptr<PackedModel>> Pack(const Model& model, ThreadPool& pool,
                                                   const Progress& progress);
  static Result<std::unique_ptr<PackedModel>> Adopt(const Model& model, ThreadPool& pool,
                                                    const Progress& progress);
  static Result<std::unique_ptr<PackedModel>> Spread(const Model& model, const PackedModel& mapped,
                                                     ThreadPool& pool);
  static Status CheckLayout(const Model& model);
  static Result<std::unique_ptr<PackedModel>> MakePaged(const Model& model, ThreadPool& pool,
                                                        const Progress& progress,
                                                        int64_t expert_bytes);
  PackedModel(ModelSpec spec, std::span<const std::byte> weights)
      : spec_(std::move(spec)), weights_(weights) {}
  Status Build(const Model& model, Builder& builder);

  ModelSpec spec_;
  std::span<const std::byte> weights_;  // in arena_ or in file_
  std::optional<LargeBuffer> arena_;
  std::shared_ptr<const WeightFile> file_;
  // Of each MXFP4 matrix, in the order of building; a list so that addresses stay.
  std::vector<std::unique_ptr<std::vector<SpilledBlock>>> spills_;
  std::vector<std::span<const SpilledBlock>> spans_;  // the same in a mapped file
  Addresses addresses_;                               // what PackedMatrix::nodes points to
  PackedMatrix embedding_{}, head_{};
  const float* final_norm_ = nullptr;
  std::vector<PackedLayer> layers_;
  std::vector<std::byte> extra_;  // a copy of what a file kept besides, when experts come from it
  std::unique_ptr<ExpertPager> pager_;
};

}  // namespace hearth
