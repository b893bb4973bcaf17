// SPDX-License-Identifier: Apache-2.0
// A model's packed weights in the memory of a GPU, as they lie in the host's.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "cpu/packed_model.h"
#include "cuda/args.h"
#include "gpu/device.h"
namespace hearth::cuda {

// The kind that kernels can read; kUnsupported, with the name of the format, for others.
Result<WeightKind> KindFor(const MatView& matrix, const char* what);

constexpr bool ReadsFloats(WeightKind kind) { return kind >= WeightKind::kF32; }
constexpr bool ReadsSupers(WeightKind kind) {
  return kind >= WeightKind::kQ2K && kind <= WeightKind::kIq4Xs;
}

struct DeviceMatrix {
  WeightKind kind{};
  MatmulJob job{};  // weights only: y, bias and range are the reader's
  bool present() const { return job.num_panels > 0; }
};
struct DeviceFfn {
  DeviceMatrix gate, up, down;
  const float *gate_bias, *up_bias, *down_bias;
};
struct DeviceLayer {
  const float *attn_norm, *ffn_norm, *q_norm, *k_norm, *sinks;
  DeviceMatrix q, k, v, out, router;
  const float *q_bias, *k_bias, *v_bias, *out_bias, *router_bias;
  std::vector<DeviceFfn> ffn;
};

// Immutable once made. Its device outlives it.
class DeviceModel {
 public:
  using Progress = std::function<void(int64_t done, int64_t total)>;
  // Copies everything; nothing of `packed` is needed afterwards.
  static Result<std::unique_ptr<DeviceModel>> Make(Device& device, const PackedModel& packed,
                                                   const Progress& progress);
  // Memory of the device that Make takes, but for spilled blocks, which are few.
  static int64_t BytesFor(const Model& model) { return PackedModel::BytesFor(model); }

  const ModelSpec& spec() const { return spec_; }
  // Some matrix wants one scale per kSuper columns.
  bool reads_supers() const { return reads_supers_; }
  static bool ReadsSupersOf(const Model& model);
  const DeviceMatrix& embedding() const { return embedding_; }
  const DeviceMatrix& head() const { return head_; }
  const float* final_norm() const { return final_norm_; }
  const std::vector<DeviceLayer>& layers() const { return layers_; }

 private:
  explicit DeviceModel(ModelSpec spec) : spec_(std::move(spec)) {}
  void Place(const PackedModel& packed);
  DeviceMatrix Matrix(const PackedMatrix& packed);
  template <class T>
  const T* Moved(const T* host) const;

  const ModelSpec spec_;
  bool reads_supers_ = false;
  const std::byte* host_ = nullptr;  // where the weights lay, while they are placed
  DeviceBlock weights_, spills_;
  std::vector<std::byte> spill_bytes_;  // what spills_ is to hold, while they are placed
  DeviceMatrix embedding_, head_;
  const float* final_norm_ = nullptr;
  std::vector<DeviceLayer> layers_;
};

// `bytes` to the device through pinned memory, waiting for each piece.
Status Upload(Device& device, void* to, std::span<const std::byte> bytes,
              const DeviceModel::Progress& progress);

}  // namespace hearth::cuda
