// SPDX-License-Identifier: Apache-2.0
#include "gpu/products.h"

#include <algorithm>

#include "cuda/matmul.h"

namespace hearth::cuda {
namespace {

struct Shape {
  Kernel kernel;
  int tile_tokens, threads;
  int64_t shared_bytes;
};
// Few rows are taken in tiles of eight, which waste less; many share the weights they read.
Shape ShapeOf(WeightKind kind, int rows) {
  const bool is_few = rows <= kTileTokens;
  switch (kind) {
    case WeightKind::kMxfp4:
      if (is_few) {
        return {Kernel::kMxfp4Few, kTileTokens, kMatmulThreads, MatmulSharedBytes<Mxfp4, 1>()};
      }
      return {Kernel::kMxfp4Many, 4 * kTileTokens, kMatmulThreads, MatmulSharedBytes<Mxfp4, 4>()};
    case WeightKind::kQ8:
      if (is_few) return {Kernel::kQ8Few, kTileTokens, kMatmulThreads, MatmulSharedBytes<Q8, 1>()};
      return {Kernel::kQ8Many, 4 * kTileTokens, kMatmulThreads, MatmulSharedBytes<Q8, 4>()};
    case WeightKind::kF32:
      return {Kernel::kF32, kTileTokens, kFloatThreads, 0};
    case WeightKind::kF16:
      return {Kernel::kF16, kTileTokens, kFloatThreads, 0};
    case WeightKind::kBf16:
      break;
  }
  return {Kernel::kBf16, kTileTokens, kFloatThreads, 0};
}

}  // namespace

ProductSet ProductJobs::Add(std::span<const Product> products) {
  ProductSet set;
  for (const WeightKind kind : {WeightKind::kMxfp4, WeightKind::kQ8, WeightKind::kF32,
                                WeightKind::kF16, WeightKind::kBf16}) {
    ProductSet::Part part{kind, static_cast<int>(jobs_.size()), 0, 0};
    for (const Product& product : products) {
      const DeviceMatrix& matrix = *product.matrix;
      if (!matrix.present() || matrix.kind != kind) continue;
      MatmulJob& job = jobs_.emplace_back(matrix.job);
      job.bias = product.bias;
      job.y = product.y;
      job.y_stride = product.y_stride;
      job.range = product.range;
      ++part.count;
      part.max_panels = std::max(part.max_panels, job.num_panels);
      (matrix.reads_floats() ? set.reads_floats : set.reads_strips) = true;
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
    const Shape shape = ShapeOf(part.kind, input.most_rows);
    const int tiles = (input.most_rows + shape.tile_tokens - 1) / shape.tile_tokens;
    const Grid grid{part.max_panels, part.count, tiles, shape.threads, shape.shared_bytes};
    const auto* jobs = sent_.at<const MatmulJob>() + part.first;
    if (part.kind >= WeightKind::kF32) {
      const FloatMatmulArgs args{jobs, input.floats, input.stride, input.m};
      HEARTH_TRY(device.Launch(shape.kernel, grid, args));
    } else {
      const MatmulArgs args{jobs, input.strips, input.m};
      HEARTH_TRY(device.Launch(shape.kernel, grid, args));
    }
  }
  return Status();
}

}  // namespace hearth::cuda
