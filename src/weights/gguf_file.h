// SPDX-License-Identifier: Apache-2.0
// One GGUF file, or a set that was split into several, as a WeightFile.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "weights/weight_file.h"
namespace hearth {

// The first file of a split set (PREFIX-00001-of-00003.gguf) stands for all of them.
Result<std::unique_ptr<WeightFile>> OpenGguf(const std::string& path);

// A file that is in memory already; `bytes` must outlive the result. No split sets.
Result<std::unique_ptr<WeightFile>> OpenGgufBytes(std::span<const std::byte> bytes);

// The same for all files of a set, in order.
Result<std::unique_ptr<WeightFile>> OpenGgufShards(std::span<const ShardBytes> shards);

}  // namespace hearth
