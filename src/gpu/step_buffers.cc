// SPDX-License-Identifier: Apache-2.0
#include "gpu/step_buffers.h"

#include <algorithm>

#include "gpu/step_input.h"

namespace hearth::cuda {
namespace {

constexpr int ActStride(int cols) { return (cols + 63) / 64 * 64; }
constexpr int ActStrips(int cols, int strip) { return (cols + strip - 1) / strip; }

// Hands out memory front to back.
class Places {
 public:
  explicit Places(uint8_t* base) : base_(base) {}
  template <class T>
  T* Take(int64_t count) {
    auto* at =
        reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(base_) + static_cast<uintptr_t>(used_));
    used_ += (count * static_cast<int64_t>(sizeof(T)) + 255) / 256 * 256;
    return at;
  }
  ActMemory Act(int64_t rows, int cols, int strip) {
    ActMemory act{};
    act.strip = strip;
    act.hi = Take<int8_t>(rows * ActStride(cols));
    act.lo = Take<int8_t>(rows * ActStride(cols));
    act.scale = Take<float>(rows * ActStrips(cols, strip));
    return act;
  }
  int64_t used() const { return used_; }

 private:
  uint8_t* base_;
  int64_t used_ = 0;
};

StepBuffers Lay(const ModelSpec& spec, const StepSizes& sizes, Places& places) {
  const int64_t tokens = sizes.tokens;
  const int64_t slots = tokens * std::max(1, spec.n_active_experts);
  const int d = spec.d_model, q = spec.n_heads * spec.d_head, kv = spec.n_kv_heads * spec.d_head;
  const int d_ff = std::max(spec.d_ff, spec.n_experts > 0 ? spec.d_ff_expert : 0);
  StepBuffers b{};
  b.x = places.Take<float>(tokens * d);
  b.h = places.Take<float>(tokens * d);
  b.q = places.Take<float>(tokens * PaddedTo16(q));
  b.k = places.Take<float>(tokens * PaddedTo16(kv));
  b.v = places.Take<float>(tokens * PaddedTo16(kv));
  b.mixed = places.Take<float>(tokens * q);
  b.out = places.Take<float>(tokens * PaddedTo16(d));
  b.router = places.Take<float>(tokens * PaddedTo16(spec.n_experts));
  b.weights = places.Take<float>(slots);
  b.experts = places.Take<int32_t>(slots);
  b.begin = places.Take<int32_t>(spec.n_experts + 1);
  b.slot_of = places.Take<int32_t>(slots);
  b.choice_of = places.Take<int32_t>(slots);
  b.slot_h = places.Take<float>(slots * d);
  b.gate = places.Take<float>(slots * PaddedTo16(d_ff));
  b.up = places.Take<float>(slots * PaddedTo16(d_ff));
  b.down = places.Take<float>(slots * PaddedTo16(d));
  b.parts = places.Take<float>(StepInput::PartFloats(spec, sizes.tokens));
  b.arrived = places.Take<int32_t>(tokens * ArrivedWords(spec));
  b.logits = places.Take<float>(int64_t{sizes.rows} * PaddedTo16(spec.vocab_size));
  for (Candidate*& tops : b.tops) {
    tops = places.Take<Candidate>(int64_t{sizes.rows} * TopCandidates(spec.vocab_size));
  }
  b.act = places.Act(tokens, std::max(d, q), kStrip);
  b.slot_act = places.Act(slots, std::max(d, d_ff), kStrip);
  if (!sizes.reads_supers) return b;
  b.supers = places.Act(tokens, std::max(d, q), kSuper);
  b.slot_supers = places.Act(slots, std::max(d, d_ff), kSuper);
  return b;
}

}  // namespace

ActRows ActMemory::Of(int cols) const {
  ActRows rows{};
  rows.hi = hi;
  rows.lo = lo;
  rows.scale = scale;
  rows.cols = cols;
  rows.stride = ActStride(cols);
  rows.num_strips = ActStrips(cols, std::max(1, strip));
  rows.strip = strip;
  rows.num_blocks = rows.stride / kQuantBlock;
  return rows;
}

int64_t StepBytesOf(const ModelSpec& spec, const StepSizes& sizes) {
  Places places(nullptr);
  Lay(spec, sizes, places);
  return places.used();
}

StepBuffers LayStep(const ModelSpec& spec, const StepSizes& sizes, uint8_t* base) {
  Places places(base);
  return Lay(spec, sizes, places);
}

}  // namespace hearth::cuda
