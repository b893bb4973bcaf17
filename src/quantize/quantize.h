// SPDX-License-Identifier: Apache-2.0
// A GGUF model written again with smaller weights.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "platform/thread_pool.h"
#include "quantize/choose.h"
#include "weights/weight_file.h"
namespace hearth {

struct TensorOutcome {
  std::string name;
  DType from = DType::kF32, to = DType::kF32;
  uint64_t bytes_before = 0, bytes_after = 0;
  // Root of the mean square of what was lost, over that of the values. 0: nothing was.
  double error = 0;
  std::string why;  // see Choice
};

// Writes `out`, or nothing at all: a reader sees the old file or the new one. Bits do not depend on
// the number of threads. `progress` may be empty.
Result<std::vector<TensorOutcome>> QuantizeFile(
    const WeightFile& in, const Target& target, const std::string& out, ThreadPool& pool,
    const std::function<void(uint64_t done, uint64_t total)>& progress);

// The same in memory, seen as the file would be: for who quantizes while loading. kInvalid for
// weights with fewer than 16 bits: what was quantized once is used as it is.
struct QuantizedModel {
  std::unique_ptr<WeightFile> file;
  std::vector<TensorOutcome> outcomes;
};
Result<QuantizedModel> QuantizeToMemory(
    const WeightFile& in, const Target& target, ThreadPool& pool,
    const std::function<void(uint64_t done, uint64_t total)>& progress);

}  // namespace hearth
