// SPDX-License-Identifier: Apache-2.0
// The parts of a config.json that families share. A family's file says which of them it has.
#pragma once
#include "base/json.h"
#include "base/result.h"
#include "model/facts.h"
#include "model/model.h"
namespace hearth {

// Layers, widths, heads, vocabulary: keys that Hugging Face and OpenAI's own release share.
Status ReadConfigShape(const Facts& facts, ModelSpec& spec);
// The shape, and what only Hugging Face's files state: context, epsilon, whether the head is tied.
Status ReadHuggingFaceShape(const Facts& facts, ModelSpec& spec);
// `truncate` is whether yarn's bounds are rounded where the file does not say.
Status ReadConfigRope(const Json& config, bool truncate, ModelSpec& spec);
// The width of a dense network, and that its activation is the one we have.
Status ReadConfigDense(const Facts& facts, ModelSpec& spec);

// Sliding windows. `layer_types` says it layer by layer; returns whether the file has it.
Result<bool> ReadLayerTypes(const Facts& facts, ModelSpec& spec);
// The same, or what older qwen2 files state: that windows are used, and the first layer with one.
Status ReadConfigWindows(const Facts& facts, ModelSpec& spec);

// A model of the plainest kind, as transformers saves llama, qwen2 and qwen3.
Status ReadConfigPlain(const Json& config, ModelSpec& spec);

}  // namespace hearth
