// SPDX-License-Identifier: Apache-2.0
// From what a checkpoint says about itself to a ModelSpec. No weight is looked at here.
#pragma once
#include "base/result.h"
#include "model/facts.h"
#include "model/model.h"
#include "weights/weight_file.h"
namespace hearth {

// Whichever way `file` describes itself. The vocabulary size is the description's, or 0 when it
// does not say; LoadModel takes it from the embedding then.
Result<ModelSpec> Describe(const WeightFile& file);

Result<ModelSpec> DescribeGguf(const WeightFile& file);     // describe_gguf.cc
Result<ModelSpec> DescribeHuggingFace(const Json& config);  // describe_config.cc
Result<ModelSpec> DescribeOpenAi(const Json& config);       // describe_config.cc

// What follows from the family alone: kinds, constants and defaults no file states.
void ApplyFamily(ModelSpec& spec);
// Every second layer, starting with the first, looks back `window` positions: gpt-oss's pattern.
void AlternateWindows(ModelSpec& spec, int window);
// Numbers that are each in range but do not fit each other.
Status CheckSpec(const ModelSpec& spec);

// Limits far above any known model; they keep products of two within an int.
inline constexpr int kMaxLayers = 1024, kMaxWidth = 1 << 20, kMaxHeads = 4096, kMaxHead = 1 << 12;
inline constexpr int kMaxExperts = 4096, kMaxVocab = 1 << 24, kMaxContext = 1 << 27;

}  // namespace hearth
