// SPDX-License-Identifier: Apache-2.0
// From what a checkpoint says about itself to a ModelSpec. No weight is looked at here.
#pragma once
#include "base/result.h"
#include "model/family.h"
#include "model/model.h"
#include "weights/weight_file.h"
namespace hearth {

// Whichever way `file` describes itself. The vocabulary size is the description's, or 0 when it
// does not say; LoadModel takes it from the embedding then.
Result<ModelSpec> Describe(const WeightFile& file, const ModelFamily& family);

// Every layer routes to experts this way, or to none.
void SetRouter(ModelSpec& spec, RouterKind router);
// Every second layer, starting with the first, looks back `window` positions: gpt-oss's pattern.
void AlternateWindows(ModelSpec& spec, int window);
// Numbers that are each in range but do not fit each other.
Status CheckSpec(const ModelSpec& spec);

// Limits far above any known model; they keep products of two within an int.
inline constexpr int kMaxLayers = 1024, kMaxWidth = 1 << 20, kMaxHeads = 4096, kMaxHead = 1 << 12;
inline constexpr int kMaxExperts = 4096, kMaxVocab = 1 << 24, kMaxContext = 1 << 27;

}  // namespace hearth
