// SPDX-License-Identifier: Apache-2.0
// Which matrices are multiplied together: jobs for the kernels, prepared once and kept on the
// device.
#pragma once
#include <span>
#include <vector>

#include "cuda/args.h"
#include "gpu/device.h"
#include "gpu/device_model.h"
#include "gpu/tuning.h"
namespace hearth::cuda {

// One matrix, where its results go, and on which rows of the input.
struct Product {
  const DeviceMatrix* matrix;
  const float* bias;
  float* y;
  int64_t y_stride;
  const int32_t* range = nullptr;  // on the device; null: all rows
  int expert = -1;
};

// Matrices that read the same rows: one launch per format.
struct ProductSet {
  struct Part {
    WeightKind kind{};
    int first = 0, count = 0, max_panels = 0;  // of all jobs
  };
  std::vector<Part> parts;
  bool reads_strips = false, reads_supers = false, reads_floats = false;
};

// A kernel, and what its launch takes.
struct ProductShape {
  Kernel kernel;
  int tile_tokens, threads;
  int64_t shared_bytes;
};
// Few rows are taken in tiles of eight, which waste less; many share the weights they read.
ProductShape ShapeOf(WeightKind kind, bool is_few);

// The same rows in every form; only those are there that the set reads.
struct ProductInput {
  ActRows strips, supers;
  const float* floats = nullptr;  // [m, stride]
  int64_t stride = 0;
  int m = 0;          // rows
  int most_rows = 0;  // that one matrix gets of them
  // Experts that rows chose; MatmulArgs says more. Not for floats. Null: as the products say.
  const int32_t* choices = nullptr;
  int num_choices = 0, sharing = 1;
};

// Thread: as its device, which outlives it.
class ProductJobs {
 public:
  explicit ProductJobs(const Tuning& tuning) : tuning_(tuning) {}
  ProductSet Add(std::span<const Product> products);
  // After the last Add.
  Status Send(Device& device);
  Status Run(Device& device, const ProductSet& set, const ProductInput& input) const;

 private:
  const Tuning tuning_;
  std::vector<MatmulJob> jobs_;
  DeviceBlock sent_;
};

}  // namespace hearth::cuda
