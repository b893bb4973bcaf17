// SPDX-License-Identifier: Apache-2.0
#include "gpu/products.h"

#include <algorithm>

#include "cuda/blocks.h"
#include "cuda/matmul.h"
#include "cuda/supers.h"

namespace hearth::cuda {
namespace {

template <WeightKind kKind>
ProductShape SuperShape(Kernel few, Kernel many, bool is_few) {
  if (is_few) return {few, kTileTokens, kMatmulThreads, SuperSharedBytes<kKind, 1>()};
  return {many, kSuperTiles<kKind> * kTileTokens, kMatmulThreads,
          SuperSharedBytes<kKind, kSuperTiles<kKind>>()};
}

template <WeightKind kKind>
ProductShape BlockShape(Kernel kernel) {
  return {kernel, kTileTokens, kMatmulThreads, BlockFormat<kKind>::kSharedBytes};
}

}  // namespace

ProductShape ShapeOf(WeightKind kind, bool is_few) {
  switch (kind) {
    case WeightKind::kMxfp4:
      if (is_few) {
        return {Kernel::kMxfp4Few, kTileTokens, kMatmulThreads, MatmulSharedBytes<Mxfp4, 1>()};
      }
      return {Kernel::kMxfp4Many, 4 * kTileTokens, kMatmulThreads, MatmulSharedBytes<Mxfp4, 4>()};
    case WeightKind::kQ8:
      if (is_few) return {Kernel::kQ8Few, kTileTokens, kMatmulThreads, MatmulSharedBytes<Q8, 1>()};
      return {Kernel::kQ8Many, 4 * kTileTokens, kMatmulThreads, MatmulSharedBytes<Q8, 4>()};
    case WeightKind::kQ4_0:
      return BlockShape<WeightKind::kQ4_0>(Kernel::kQ40);
    case WeightKind::kQ4_1:
      return BlockShape<WeightKind::kQ4_1>(Kernel::kQ41);
    case WeightKind::kQ5_0:
      return BlockShape<WeightKind::kQ5_0>(Kernel::kQ50);
    case WeightKind::kQ5_1:
      return BlockShape<WeightKind::kQ5_1>(Kernel::kQ51);
    case WeightKind::kIq4Nl:
      return BlockShape<WeightKind::kIq4Nl>(Kernel::kIq4Nl);
    case WeightKind::kQ2K:
      return SuperShape<WeightKind::kQ2K>(Kernel::kQ2K, Kernel::kQ2K, is_few);
    case WeightKind::kQ3K:
      return SuperShape<WeightKind::kQ3K>(Kernel::kQ3KFew, Kernel::kQ3KMany, is_few);
    case WeightKind::kQ4K:
      return SuperShape<WeightKind::kQ4K>(Kernel::kQ4K, Kernel::kQ4K, is_few);
    case WeightKind::kQ5K:
      return SuperShape<WeightKind::kQ5K>(Kernel::kQ5K, Kernel::kQ5K, is_few);
    case WeightKind::kQ6K:
      return SuperShape<WeightKind::kQ6K>(Kernel::kQ6KFew, Kernel::kQ6KMany, is_few);
    case WeightKind::kIq4Xs:
      return SuperShape<WeightKind::kIq4Xs>(Kernel::kIq4XsFew, Kernel::kIq4XsMany, is_few);
    case WeightKind::kF32:
      return {Kernel::kF32, kTileTokens, kFloatThreads, 0};
    case WeightKind::kF16:
      return {Kernel::kF16, kTileTokens, kFloatThreads, 0};
    case WeightKind::kBf16:
      break;
  }
  return {Kernel::kBf16, kTileTokens, kFloatThreads, 0};
}

ProductSet ProductJobs::Add(std::span<const Product> products) {
  ProductSet set;
  for (auto k = static_cast<int>(WeightKind::kMxfp4); k <= static_cast<int>(WeightKind::kBf16);
       ++k) {
    const auto kind = static_cast<WeightKind>(k);
    ProductSet::Part part{kind, static_cast<int>(jobs_.size()), 0, 0};
    for (const Product& product : products) {
      const DeviceMatrix& matrix = *product.matrix;
      if (!matrix.present() || matrix.kind != kind) continue;
      MatmulJob& job = jobs_.emplace_back(matrix.job);
      job.bias = product.bias;
      job.y = product.y;
      job.y_stride = product.y_stride;
      job.range = product.range;
      job.expert = product.expert;
      ++part.count;
      part.max_panels = std::max(part.max_panels, job.num_panels);
      (ReadsFloats(kind)   ? set.reads_floats
       : ReadsSupers(kind) ? set.reads_supers
                           : set.reads_strips) = true;
    }
    if (part.count > 0) set.parts.push_back(part);
  }
  return set;
}

Status ProductJobs::Send(Device& device) {
  const auto bytes = std::as_bytes(std::span(jobs_));
  HEARTH_ASSIGN(sent_, device.Take(static_cast<int64_t>(bytes.size()), "jobs"));
  return Upload(device, sent_.at(), bytes, {});
}

Status ProductJobs::Run(Device& device, const ProductSet& set, const ProductInput& input) const {
  for (const ProductSet::Part& part : set.parts) {
    const bool is_few = input.choices != nullptr ||
                        input.most_rows <= tuning_.few_up_to[static_cast<size_t>(part.kind)];
    const ProductShape shape = ShapeOf(part.kind, is_few);
    const int tiles = (input.most_rows + shape.tile_tokens - 1) / shape.tile_tokens;
    const Grid grid{part.max_panels, part.count, tiles, shape.threads, shape.shared_bytes};
    const auto* jobs = sent_.at<const MatmulJob>() + part.first;
    if (ReadsFloats(part.kind)) {
      const FloatMatmulArgs args{jobs, input.floats, input.stride, input.m};
      HEARTH_TRY(device.Launch(shape.kernel, grid, args));
    } else {
      const MatmulArgs args{jobs,
                            ReadsSupers(part.kind) ? input.supers : input.strips,
                            input.m,
                            input.choices,
                            input.num_choices,
                            input.sharing};
      HEARTH_TRY(device.Launch(shape.kernel, grid, args));
    }
  }
  return Status();
}

}  // namespace hearth::cuda
