// SPDX-License-Identifier: Apache-2.0
// The activations of a step in the memory of a GPU, for the largest step there can be.
#pragma once
#include "cuda/args.h"
#include "gpu/device.h"
#include "model/model.h"
namespace hearth::cuda {

// Width of a row whose products come panel by panel.
constexpr int PaddedTo16(int width) { return (width + kPanelRows - 1) / kPanelRows * kPanelRows; }

// Quantised rows of any width up to the one they were made for.
struct ActMemory {
  int8_t *hi, *lo;
  float* scale;
  ActRows Of(int cols) const;
};

struct StepBuffers {
  float *x, *h;              // [tokens, d_model]
  float *q, *k, *v, *mixed;  // [tokens, ...]; mixed without padding
  float* out;                // [tokens, d_model padded]
  float* router;             // [tokens, n_experts padded]
  float* weights;            // [slots]: of experts
  int32_t *experts, *begin, *slot_of, *choice_of;
  float* slot_h;            // [slots, d_model]: for experts that read floats
  float *gate, *up, *down;  // [slots, ...]: tokens when dense
  float* parts;             // of attention
  float* logits;            // [rows, vocabulary padded]
  ActMemory act, slot_act;  // of tokens, of slots
};

struct StepSizes {
  int tokens = 0, rows = 0;  // at most
};
// Memory that LayStep takes.
int64_t StepBytesOf(const ModelSpec& spec, const StepSizes& sizes);
// From `base` on, which is on the device.
StepBuffers LayStep(const ModelSpec& spec, const StepSizes& sizes, uint8_t* base);

}  // namespace hearth::cuda
