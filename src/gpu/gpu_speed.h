// SPDX-License-Identifier: Apache-2.0
// How fast a GPU runs the kernels: each alone, on matrices larger than its caches, timed by the
// driver's events.
#pragma once
#include <functional>
#include <string>

#include "gpu/device.h"
#include "gpu/tuning.h"
namespace hearth::cuda {

struct BenchSizes {
  int rows = 4096, cols = 4096;  // of a matrix
  int matrices = 16;             // of one launch: 130 to 270 MB, which no cache holds
  int repeats = 20;
  int context = 8192;  // of attention
};
inline constexpr BenchSizes kQuickSizes = {64, 256, 1, 1, 64};

struct BenchRow {
  std::string what;
  int rows = 0;  // of activations, or sequences; 0: a copy
  double seconds = 0;
  int64_t bytes = 0;     // that must be read or written
  int64_t products = 0;  // multiplications and additions of integers, each counted
};
using BenchTold = std::function<void(const BenchRow&)>;

// Copies to, from and on the device first, then products of every kind, then attention.
Status RunGpuBench(Device& device, const BenchSizes& sizes, const BenchTold& told);

// Rows of activations that TuneGpu tries.
inline constexpr int kTunedRows[] = {16, 24, 32, 48, 64, 128};
struct TuneRow {
  WeightKind kind{};
  int rows = 0;
  double few_seconds = 0, many_seconds = 0;
};
// From which number of rows on tiles of 32 are faster, for each kind that has both.
Result<Tuning> TuneGpu(Device& device, const BenchSizes& sizes,
                       const std::function<void(const TuneRow&)>& told);

}  // namespace hearth::cuda
