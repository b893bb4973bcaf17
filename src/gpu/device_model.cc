// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_model.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "cpu/pack.h"
#include "model/costs.h"

namespace hearth::cuda {
namespace {

// Long enough that a copy's start costs nothing, short enough that progress moves.
constexpr size_t kPiece = size_t{32} << 20;

// None for packed formats without a kernel.
std::optional<WeightKind> KindOf(PackKind kind) {
  switch (kind) {
    case PackKind::kMxfp4:
      return WeightKind::kMxfp4;
    case PackKind::kQ8:
      return WeightKind::kQ8;
    case PackKind::kQ4_0:
      return WeightKind::kQ4_0;
    case PackKind::kQ4_1:
      return WeightKind::kQ4_1;
    case PackKind::kQ5_0:
      return WeightKind::kQ5_0;
    case PackKind::kQ5_1:
      return WeightKind::kQ5_1;
    case PackKind::kIq4Nl:
      return WeightKind::kIq4Nl;
    case PackKind::kQ2K:
      return WeightKind::kQ2K;
    case PackKind::kQ3K:
      return WeightKind::kQ3K;
    case PackKind::kQ4K:
      return WeightKind::kQ4K;
    case PackKind::kQ5K:
      return WeightKind::kQ5K;
    case PackKind::kQ6K:
      return WeightKind::kQ6K;
    case PackKind::kIq4Xs:
      return WeightKind::kIq4Xs;
    case PackKind::kF32:
      return WeightKind::kF32;
    case PackKind::kF16:
      return WeightKind::kF16;
    case PackKind::kBf16:
      return WeightKind::kBf16;
    default:
      return std::nullopt;
  }
}

int PanelsOf(int rows) { return (rows + kPanelRows - 1) / kPanelRows; }

}  // namespace

Result<WeightKind> KindFor(const MatView& matrix, const char* what) {
  if (const std::optional<WeightKind> kind = KindOf(PackKindOf(matrix))) return *kind;
  return Error(
      Code::kUnsupported,
      "%s is %s with %d columns; GPUs can use MXFP4, Q4_0 to Q8_0, IQ4_NL, F32, F16 and BF16 with "
      "columns in multiples of %d, and K-quants and IQ4_XS in multiples of %d so far; use --device "
      "cpu",
      what, NameOf(matrix.dtype), matrix.cols, kQuantBlock, kSuper);
}

bool DeviceModel::ReadsSupersOf(const Model& model) {
  bool reads = false;
  VisitWeights(model, [&](const MatView& weight, const WeightPlace&) {
    const std::optional<WeightKind> kind = KindOf(PackKindOf(weight));
    reads |= kind.has_value() && ReadsSupers(*kind);
  });
  return reads;
}

Status Upload(Device& device, void* to, std::span<const std::byte> bytes,
              const DeviceModel::Progress& progress) {
  if (bytes.empty()) return Status();
  HEARTH_ASSIGN(
      const PinnedBlock staging,
      device.TakePinned(static_cast<int64_t>(std::min(bytes.size(), kPiece)), "copying weights"));
  for (size_t done = 0; done < bytes.size(); done += kPiece) {
    const size_t count = std::min(kPiece, bytes.size() - done);
    std::memcpy(staging.data(), bytes.data() + done, count);
    HEARTH_TRY(device.CopyIn(static_cast<uint8_t*>(to) + done, staging.data(), count));
    HEARTH_TRY(device.Mark());
    HEARTH_TRY(device.Wait());
    if (progress) {
      progress(static_cast<int64_t>(done + count), static_cast<int64_t>(bytes.size()));
    }
  }
  return Status();
}

template <class T>
const T* DeviceModel::Moved(const T* host) const {
  if (host == nullptr) return nullptr;
  return weights_.at<const T>(reinterpret_cast<const std::byte*>(host) - host_);
}

// Spilled blocks and where each panel's begin lie in spills_, one matrix after the other; until
// that is there, pointers into it are offsets.
DeviceMatrix DeviceModel::Matrix(const PackedMatrix& packed) {
  DeviceMatrix matrix;
  if (packed.rows == 0) return matrix;
  matrix.kind = *KindOf(packed.kind);
  reads_supers_ |= ReadsSupers(matrix.kind);
  matrix.job.panels = Moved(packed.data);
  matrix.job.panel_bytes = packed.panel_bytes;
  matrix.job.num_panels = PanelsOf(packed.rows);
  matrix.job.cols = packed.cols;
  if (packed.num_spills == 0) return matrix;
  std::vector<int32_t> begin(static_cast<size_t>(matrix.job.num_panels) + 1);
  for (int s = 0; s < packed.num_spills; ++s) {
    ++begin[static_cast<size_t>(packed.spills[s].row / kPanelRows) + 1];
  }
  for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  const auto append = [&](const void* from, size_t size) {
    const size_t at = spill_bytes_.size();
    spill_bytes_.resize((at + size + 15) / 16 * 16);
    std::memcpy(spill_bytes_.data() + at, from, size);
    return spills_.at<const uint8_t>(static_cast<int64_t>(at));
  };
  static_assert(sizeof(SpilledBlock) == sizeof(hearth::SpilledBlock));
  matrix.job.spills = reinterpret_cast<const SpilledBlock*>(
      append(packed.spills, sizeof(SpilledBlock) * static_cast<size_t>(packed.num_spills)));
  matrix.job.spill_begin =
      reinterpret_cast<const int32_t*>(append(begin.data(), sizeof(int32_t) * begin.size()));
  return matrix;
}

void DeviceModel::Place(const PackedModel& packed) {
  spill_bytes_.clear();
  layers_.clear();
  embedding_ = Matrix(packed.embedding());
  head_ = spec_.tied_head ? embedding_ : Matrix(packed.head());
  final_norm_ = Moved(packed.final_norm());
  for (const PackedLayer& from : packed.layers()) {
    DeviceLayer& to = layers_.emplace_back();
    to.attn_norm = Moved(from.attn_norm);
    to.ffn_norm = Moved(from.ffn_norm);
    to.q_norm = Moved(from.q_norm);
    to.k_norm = Moved(from.k_norm);
    to.sinks = Moved(from.sinks);
    to.q = Matrix(from.q);
    to.k = Matrix(from.k);
    to.v = Matrix(from.v);
    to.out = Matrix(from.out);
    to.router = Matrix(from.router);
    to.q_bias = Moved(from.q_bias);
    to.k_bias = Moved(from.k_bias);
    to.v_bias = Moved(from.v_bias);
    to.out_bias = Moved(from.out_bias);
    to.router_bias = Moved(from.router_bias);
    for (const PackedFfn& ffn : from.ffn) {
      to.ffn.push_back({Matrix(ffn.gate), Matrix(ffn.up), Matrix(ffn.down), Moved(ffn.gate_bias),
                        Moved(ffn.up_bias), Moved(ffn.down_bias)});
    }
  }
}

Result<std::unique_ptr<DeviceModel>> DeviceModel::Make(Device& device, const PackedModel& packed,
                                                       const Progress& progress) {
  std::unique_ptr<DeviceModel> model(new DeviceModel(packed.spec()));
  model->host_ = packed.weights().data();
  HEARTH_ASSIGN(model->weights_,
                device.Take(static_cast<int64_t>(packed.weights().size()), "weights"));
  model->Place(packed);  // how many bytes of spilled blocks there are
  if (!model->spill_bytes_.empty()) {
    HEARTH_ASSIGN(model->spills_,
                  device.Take(static_cast<int64_t>(model->spill_bytes_.size()), "spilled blocks"));
    model->Place(packed);
    HEARTH_TRY(Upload(device, model->spills_.at(), model->spill_bytes_, {}));
    model->spill_bytes_ = {};
  }
  HEARTH_TRY(Upload(device, model->weights_.at(), packed.weights(), progress));
  model->host_ = nullptr;
  return model;
}

}  // namespace hearth::cuda
