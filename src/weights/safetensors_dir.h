// SPDX-License-Identifier: Apache-2.0
// A directory of safetensors files as one checkpoint: Hugging Face's layout or OpenAI's original.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "weights/weight_file.h"
namespace hearth {

// `path` is the directory, or one of its .safetensors files. The directory holds config.json and
// either model.safetensors, or model.safetensors.index.json and the shards it names, or a whole
// set of shards numbered `x-00001-of-0000N.safetensors`. When it holds none of these its
// subdirectory `original` is opened instead.
Result<std::unique_ptr<WeightFile>> OpenSafetensors(const std::string& path);

// A checkpoint that is in memory already: config.json as text, and the shards, whose bytes must
// outlive the result. `name` is for messages.
Result<std::unique_ptr<WeightFile>> OpenSafetensorsShards(const std::string& name,
                                                          std::string_view config,
                                                          std::span<const ShardBytes> shards);

}  // namespace hearth
