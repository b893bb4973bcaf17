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
  int strip;  // columns that share a scale
  ActRows Of(int cols) const;
};

struct StepBuffers {
  float *x, *h;              // [tokens, d_model]
  float *q, *k, *v, *mixed;  // [tokens, ...]; mixed without padding
  float* out;                // [tokens, d_model padded]
  float* router;             // [tokens, n_experts padded]
  float* weights;            // [slots]: of experts
  int32_t *experts, *begin, *slot_of, *choice_of;
  float* slot_h;                  // [slots, d_model]: for experts that read floats
  float *gate, *up, *down;        // [slots, ...]: tokens when dense
  float* parts;                   // of attention
  int32_t* arrived;               // [tokens, ArrivedWords]: zero between launches
  float* logits;                  // [rows, vocabulary padded]
  Candidate* tops[2];             // [rows, candidates]: of one launch, and of the next
  ActMemory act, slot_act;        // of tokens, of slots
  ActMemory supers, slot_supers;  // the same with strips of kSuper, where something reads them
};

// Rows can be asked for so many of their largest logits. With 4,096 to a block 64 leave two
// launches for every vocabulary up to 262,144.
inline constexpr int kMaxTop = 64;
// Candidates that the blocks of a row leave, at most.
constexpr int64_t TopCandidates(int vocab_size) {
  return int64_t{kMaxTop} * ((vocab_size + kTopChunk - 1) / kTopChunk);
}

struct StepSizes {
  int tokens = 0, rows = 0;  // at most
  bool reads_supers = false;
};
// Counters that attention of one token needs, of blocks that are done.
constexpr int ArrivedWords(const ModelSpec& spec) {
  const int group = spec.n_heads / spec.n_kv_heads;
  return 1 + spec.n_kv_heads * ((group + kAttendHeads - 1) / kAttendHeads);
}
// Memory that LayStep takes.
int64_t StepBytesOf(const ModelSpec& spec, const StepSizes& sizes);
// From `base` on, which is on the device.
StepBuffers LayStep(const ModelSpec& spec, const StepSizes& sizes, uint8_t* base);

}  // namespace hearth::cuda
