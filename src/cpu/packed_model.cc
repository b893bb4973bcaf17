// SPDX-License-Identifier: Apache-2.0
#include "cpu/packed_model.h"

#include <algorithm>

#include "cpu/pack.h"
#include "cpu/panels.h"
#include "model/costs.h"
#include "tensor/quant.h"

namespace hearth {
namespace {

int64_t VectorBytes(const MatView& vector) {
  return vector.present() ? NumPanels(vector.cols) * kPanelRows * int64_t{sizeof(float)} : 0;
}

// A vector of one row (norm, bias, sinks) is kept as floats; everything else is a matrix.
int64_t RoomFor(const MatView& weight, bool is_vector) {
  if (!weight.present()) return 0;
  return is_vector ? VectorBytes(weight) : PackedBytes(weight);
}

struct Slot {
  const MatView* weight;
  bool is_vector;
};

// Every weight in the order it is packed.
std::vector<Slot> SlotsOf(const Model& model) {
  std::vector<Slot> slots = {{&model.embedding, false}, {&model.final_norm, true}};
  if (!model.spec.tied_head) slots.push_back({&model.head, false});
  for (const LayerWeights& w : model.layers) {
    for (const MatView* m : {&w.q, &w.k, &w.v, &w.attn_out, &w.router}) slots.push_back({m, false});
    for (const MatView* v : {&w.attn_norm, &w.q_bias, &w.k_bias, &w.v_bias, &w.q_norm, &w.k_norm,
                             &w.sinks, &w.out_bias, &w.ffn_norm, &w.router_bias}) {
      slots.push_back({v, true});
    }
    for (const FfnWeights& ffn : w.ffn) {
      for (const MatView* m : {&ffn.gate, &ffn.up, &ffn.down}) slots.push_back({m, false});
      for (const MatView* v : {&ffn.gate_bias, &ffn.up_bias, &ffn.down_bias}) {
        slots.push_back({v, true});
      }
    }
  }
  return slots;
}

}  // namespace

int64_t PackedModel::BytesFor(const Model& model) {
  int64_t bytes = 0;
  for (const Slot& slot : SlotsOf(model)) bytes += LineUp(RoomFor(*slot.weight, slot.is_vector));
  return bytes;
}

// Hands out the arena front to back.
class PackedModel::Packer {
 public:
  Packer(PackedModel& model, ThreadPool& pool, const Progress& progress)
      : model_(model), pool_(pool), progress_(progress) {}

  const float* Vector(const MatView& vector) {
    if (!vector.present()) return nullptr;
    auto* values = reinterpret_cast<float*>(Take(VectorBytes(vector)));
    DecodeRow(vector, 0, values);
    return values;
  }

  PackedMatrix Matrix(const MatView& matrix) {
    PackedMatrix packed{};
    if (!matrix.present()) return packed;
    packed.kind = PackKindOf(matrix);
    packed.dtype = static_cast<uint8_t>(matrix.dtype);
    packed.rows = matrix.rows;
    packed.cols = matrix.cols;
    const int64_t bytes = PackedBytes(matrix);
    uint8_t* dst = Take(bytes);
    packed.data = dst;
    packed.panel_bytes = PanelBytesOf(matrix);
    std::vector<std::vector<SpilledBlock>> spills(static_cast<size_t>(pool_.size()));
    pool_.Run(NumPanels(matrix.rows), 1, [&](Range range, int worker) {
      PackPanels(matrix, range.begin, range.end, dst, spills[static_cast<size_t>(worker)]);
    });
    auto all = std::make_unique<std::vector<SpilledBlock>>();
    for (const auto& part : spills) all->insert(all->end(), part.begin(), part.end());
    packed.num_spills = static_cast<int>(all->size());
    packed.spills = all->data();
    if (!all->empty()) model_.spills_.push_back(std::move(all));
    if (progress_) progress_(used_, static_cast<int64_t>(model_.arena_.bytes().size()));
    return packed;
  }

 private:
  uint8_t* Take(int64_t bytes) {
    const auto arena = model_.arena_.bytes();
    uint8_t* at = reinterpret_cast<uint8_t*>(arena.data()) + used_;
    used_ += LineUp(bytes);
    HEARTH_CHECK(used_ <= static_cast<int64_t>(arena.size()));
    return at;
  }

  PackedModel& model_;
  ThreadPool& pool_;
  const Progress& progress_;
  int64_t used_ = 0;
};

Result<std::unique_ptr<PackedModel>> PackedModel::Make(const Model& model, ThreadPool& pool,
                                                       const Progress& progress) {
  HEARTH_ASSIGN(LargeBuffer arena, LargeBuffer::Make(static_cast<size_t>(BytesFor(model))));
  std::unique_ptr<PackedModel> packed(new PackedModel(model.spec, std::move(arena)));
  Packer packer(*packed, pool, progress);
  packed->embedding_ = packer.Matrix(model.embedding);
  packed->final_norm_ = packer.Vector(model.final_norm);
  packed->head_ = model.spec.tied_head ? packed->embedding_ : packer.Matrix(model.head);
  for (const LayerWeights& w : model.layers) {
    PackedLayer& layer = packed->layers_.emplace_back();
    layer.q = packer.Matrix(w.q);
    layer.k = packer.Matrix(w.k);
    layer.v = packer.Matrix(w.v);
    layer.out = packer.Matrix(w.attn_out);
    layer.router = packer.Matrix(w.router);
    layer.attn_norm = packer.Vector(w.attn_norm);
    layer.q_bias = packer.Vector(w.q_bias);
    layer.k_bias = packer.Vector(w.k_bias);
    layer.v_bias = packer.Vector(w.v_bias);
    layer.q_norm = packer.Vector(w.q_norm);
    layer.k_norm = packer.Vector(w.k_norm);
    layer.sinks = packer.Vector(w.sinks);
    layer.out_bias = packer.Vector(w.out_bias);
    layer.ffn_norm = packer.Vector(w.ffn_norm);
    layer.router_bias = packer.Vector(w.router_bias);
    for (const FfnWeights& ffn : w.ffn) {
      PackedFfn& out = layer.ffn.emplace_back();
      out.gate = packer.Matrix(ffn.gate);
      out.up = packer.Matrix(ffn.up);
      out.down = packer.Matrix(ffn.down);
      out.gate_bias = packer.Vector(ffn.gate_bias);
      out.up_bias = packer.Vector(ffn.up_bias);
      out.down_bias = packer.Vector(ffn.down_bias);
    }
  }
  return packed;
}

}  // namespace hearth
