// SPDX-License-Identifier: Apache-2.0
// One step through the layers as launches of kernels. No arithmetic happens here, and nothing
// waits.
#pragma once
#include <memory>
#include <vector>

#include "cpu/kv_memory.h"
#include "gpu/device.h"
#include "gpu/device_model.h"
#include "gpu/products.h"
#include "gpu/step_buffers.h"
#include "gpu/step_input.h"
namespace hearth::cuda {

// Why a model cannot run on a device with these limits, or ok.
Status CheckShapes(const Model& model, const DeviceFacts& facts);

// Thread: as its device. What it is made from outlives it.
class DeviceForward {
 public:
  // `pools`: the blocks of each group.
  static Result<std::unique_ptr<DeviceForward>> Make(Device& device, const DeviceModel& model,
                                                     const KvLayout& kv,
                                                     std::vector<uint8_t*> pools,
                                                     const StepSizes& sizes, const Tuning& tuning);
  // Asks for everything up to the last layer.
  Status Layers(const StepInput& input);
  // Then for the logits of rows [first, first + count), at most sizes.rows, and, of those that ask
  // for it, for the largest of them; they are good until the next call's.
  Status Rows(const StepInput& input, int first, int count);
  const float* logits() const { return buffers_.logits; }
  int64_t logits_stride() const { return PaddedTo16(spec_.vocab_size); }
  const Candidate* tops(int most_top) const;  // [count, most_top]

 private:
  Status Logits(const StepInput& input, int first, int count);
  Status Tops(const StepInput& input, int first, int count);
  struct LayerWork {
    ProductSet qkv, out, router, gate_up, down;
  };
  DeviceForward(Device& device, const DeviceModel& model, const KvLayout& kv,
                std::vector<uint8_t*> pools, const Tuning& tuning)
      : device_(device),
        model_(model),
        spec_(model.spec()),
        kv_(kv),
        kv_layers_(KvLayersOf(model.spec(), kv)),
        pools_(std::move(pools)),
        jobs_(tuning) {}
  void Prepare();
  KvPlace PlaceOf(const StepInput& input, size_t layer) const;
  NormArgs NormOf(const float* gain, const ProductSet& first, const ProductSet& second);
  Status Norm(const float* gain, const ProductSet& first, const ProductSet& second);
  RopeArgs RopeOf(const StepInput& input, size_t layer) const;
  AttendArgs AttendOf(const StepInput& input, size_t layer, const AttendChunk& chunk) const;
  CombineArgs CombineOf(const AttendArgs& attend, size_t layer, const AttendChunk& chunk) const;
  Grid SpansOf(const AttendChunk& chunk, int64_t shared_bytes) const;
  Status Attention(const StepInput& input, size_t layer);
  Status Attend(const StepInput& input, size_t layer);
  Status Decode(const StepInput& input, size_t layer);
  Status Ffn(const StepInput& input, size_t layer);
  Status Glu(int rows, int d_ff, const ProductSet& down);
  // Experts by lists of choices, and, for prompts and float weights, by sorted copies of rows.
  bool TakesChoices(const StepInput& input, size_t layer) const;
  Status NormRoute(size_t layer);
  Status ChosenExperts(size_t layer);
  Status Route(size_t layer);
  Status SortedExperts(size_t layer);
  RouteArgs RouteOf(size_t layer) const;

  Device& device_;
  const DeviceModel& model_;
  const ModelSpec& spec_;
  const KvLayout& kv_;
  const std::vector<KvMemory::Layer> kv_layers_;
  const std::vector<uint8_t*> pools_;
  DeviceBlock memory_;
  StepBuffers buffers_{};
  ProductJobs jobs_;
  std::vector<LayerWork> work_;
  ProductSet head_;
  int num_tokens_ = 0;
  // A result that the next norm adds to x; null: none. Of experts it is several rows, in the order
  // of choice or in slots.
  const float* pending_ = nullptr;
  bool is_pending_of_experts_ = false, is_pending_in_slots_ = false;
};

}  // namespace hearth::cuda
