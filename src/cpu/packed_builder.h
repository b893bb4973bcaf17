// SPDX-License-Identifier: Apache-2.0
// How a packed model is made, whatever it is made from: a walk over its weights. For the files that
// implement PackedModel.
#pragma once
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cpu/pack.h"
#include "cpu/packed_model.h"
#include "cpu/panels.h"
namespace hearth {

inline int64_t VectorBytes(const MatView& vector) {
  return vector.present() ? NumPanels(vector.cols) * kPanelRows * int64_t{sizeof(float)} : 0;
}

// Weights as a packed file has them.
inline const WorkerPlan& OneNode() {
  static const WorkerPlan plan{.cpus = {}, .first = {0, 1}, .memory = {}};
  return plan;
}

// Walks the weights front to back and says where each one's packed form lies. With several memory
// nodes, each has a region of the memory, and the panels of a matrix are in order inside it.
class PackedModel::Builder {
 public:
  Builder(std::span<const std::byte> weights, const WorkerPlan& plan, Regions regions)
      : plan_(plan),
        weights_(reinterpret_cast<const uint8_t*>(weights.data())),
        regions_(std::move(regions)),
        used_(static_cast<size_t>(plan.num_nodes())) {}
  virtual ~Builder() = default;
  // A vector of one row (norm, bias, sinks) is kept as floats; everything else is a matrix.
  const float* Vector(const MatView& vector) {
    if (!vector.present() || !status_.ok()) return nullptr;
    const auto* at = reinterpret_cast<const float*>(Take(VectorBytes(vector), 0));
    status_ = DoVector(vector, at);
    return at;
  }
  PackedMatrix Matrix(const MatView& matrix) {
    PackedMatrix packed{};
    if (!matrix.present() || !status_.ok()) return packed;
    packed.kind = PackKindOf(matrix);
    packed.dtype = static_cast<uint8_t>(matrix.dtype);
    packed.rows = matrix.rows;
    packed.cols = matrix.cols;
    packed.panel_bytes = PanelBytesOf(matrix);
    if (plan_.num_nodes() == 1) {
      packed.data = Take(PackedBytes(matrix), 0);
    } else {
      TakeByNode(packed);
    }
    status_ = DoMatrix(matrix, packed);
    return packed;
  }
  // What lies between these belongs to one expert.
  virtual void BeginExpert(int layer) { static_cast<void>(layer); }
  virtual void EndExpert() {}
  Status status() && { return std::move(status_); }
  // Of matrices on several nodes; the model keeps them.
  Addresses addresses() && { return std::move(addresses_); }

 protected:
  // Where node k's panels of so many begin.
  int edge(int panels, int node) const { return plan_.edge(panels, node); }
  const std::vector<int64_t>& used_by_node() const { return used_; }
  int64_t used() const { return std::accumulate(used_.begin(), used_.end(), int64_t{0}); }
  int64_t total() const { return regions_.back(); }

 protected:
  // Where so many bytes lie.
  virtual const uint8_t* Take(int64_t bytes, int node) {
    const auto k = static_cast<size_t>(node);
    const int64_t at = regions_[k] + used_[k];
    used_[k] += LineUp(bytes);
    HEARTH_CHECK(regions_[k] + used_[k] <= regions_[k + 1]);
    return weights_ != nullptr ? weights_ + at : nullptr;
  }

 private:
  virtual Status DoVector(const MatView& vector, const float* at) = 0;
  virtual Status DoMatrix(const MatView& matrix, PackedMatrix& packed) = 0;
  void TakeByNode(PackedMatrix& packed) {
    const int panels = NumPanels(packed.rows), nodes = plan_.num_nodes();
    auto& at = addresses_.emplace_back(new const uint8_t*[static_cast<size_t>(nodes)]);
    for (int k = 0; k < nodes; ++k) {
      const int64_t first = edge(panels, k);
      const uint8_t* part = Take((edge(panels, k + 1) - first) * packed.panel_bytes, k);
      // Where panel 0 would lie: an address to count from, never read.
      const auto origin =
          reinterpret_cast<uintptr_t>(part) - static_cast<uintptr_t>(first * packed.panel_bytes);
      at[static_cast<size_t>(k)] = reinterpret_cast<const uint8_t*>(origin);
    }
    packed.data = at[0];
    packed.nodes = at.get();
  }
  const WorkerPlan& plan_;
  const uint8_t* weights_;
  Regions regions_;
  std::vector<int64_t> used_;  // by node
  Addresses addresses_;
  Status status_;
};

}  // namespace hearth
