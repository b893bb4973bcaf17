// SPDX-License-Identifier: Apache-2.0
// The buffers of a step through the layers, and how large the largest step makes them.
#pragma once
#include <cstdint>

#include "cpu/attend_run.h"
#include "cpu/kernels.h"
#include "cpu/matmul.h"
#include "cpu/matmul_input.h"
#include "cpu/panels.h"
#include "cpu/scratch.h"
#include "model/model.h"
#include "platform/thread_pool.h"
namespace hearth {

// Width of a buffer row whose products come panel by panel.
inline int Padded(int width) { return NumPanels(width) * kPanelRows; }
// Room for `count` rows.
inline float* Shaped(Scratch<float>& rows, int count, int width) {
  return rows.Room(int64_t{count} * width);
}

// The largest step that a backend is opened for.
struct StepLimits {
  int tokens = 0, rows = 0;  // of results
  int workers = 1;
  bool has_pager = false;  // experts come from disk
};

// What of a model, beside its numbers, decides how large the buffers of a step are: the forms in
// which its matrices read what they multiply.
struct StepNeeds {
  InputNeeds tokens, slots;  // read by row of x, and by row of an expert's or the hidden layer
  InputNeeds router;
};
StepNeeds StepNeedsOf(const Model& model, Numerics numerics);

// Thread: one at a time, but for the rows that workers share out.
class StepMemory {
 public:
  StepMemory(const KernelTable& kernels, ThreadPool& pool, KvCode code);
  // Room for every step within the limits; what is beyond them grows when it comes.
  void Reserve(ScratchArena& arena, const ModelSpec& spec, const StepNeeds& needs,
               const StepLimits& limits);
  // What Reserve cuts.
  static int64_t BytesFor(const ModelSpec& spec, const StepNeeds& needs, const StepLimits& limits);

 protected:
  using Rows = Scratch<float>;            // [tokens, width]
  Rows cos_, sin_;                        // [tokens, n_dims / 2]
  Rows x_, h_, q_, k_, v_, mixed_, out_;  // [tokens, ...]
  Rows left_x_;                           // x_ of a step that was left
  Rows gate_, up_, down_;                 // [slots, ...]: tokens when dense
  Rows router_;                           // [tokens, n_experts padded to a panel]
  Scratch<int> order_;                    // [workers, n_experts padded], as the next
  Rows share_;
  Rows slot_h_;                  // [slots, d_model], where experts that read floats come in parts
  Rows ahead_h_, ahead_router_;  // of kAheadTokens, for the layer that comes next
  InputBuffer ahead_act_;
  InputBuffer act_, slot_act_;
  AttendRun attend_;
  Matmuls matmuls_;

  static constexpr int kAheadTokens = 8;
};

}  // namespace hearth
