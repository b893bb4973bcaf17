// SPDX-License-Identifier: Apache-2.0
#include "model/bind.h"

#include "tensor/quant.h"

namespace hearth {
namespace {

TensorView Shaped(std::vector<int64_t> shape) {
  TensorView view;
  view.rank = static_cast<int>(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) view.shape[i] = shape[i];
  return view;
}

bool SameShape(const TensorView& a, const TensorView& b) {
  return a.rank == b.rank && a.shape == b.shape;
}

// A dense rows x cols matrix that starts `offset` bytes into the tensor.
MatView DenseMatrix(const TensorView& tensor, int64_t offset, int rows, int cols) {
  const BlockShape block = BlockShapeOf(tensor.dtype);
  MatView view;
  view.data = tensor.bytes.data() + offset;
  view.dtype = tensor.dtype;
  view.rows = rows;
  view.cols = cols;
  view.row_bytes = int64_t{cols} / block.elems * block.bytes;
  view.col_bytes = block.elems == 1 ? block.bytes : 0;
  return view;
}

}  // namespace

Result<TensorView> Binder::Bytes(const std::string& name, std::vector<int64_t> shape) const {
  HEARTH_ASSIGN(const TensorView tensor, file_.Find(name));
  const TensorView expected = Shaped(std::move(shape));
  if (SameShape(tensor, expected)) return tensor;
  return Error(Code::kCorrupt, "%s: expected shape %s, found %s", name.c_str(),
               ShapeText(expected).c_str(), ShapeText(tensor).c_str());
}

Result<TensorView> Binder::Weight(const std::string& name, std::vector<int64_t> shape) const {
  HEARTH_ASSIGN(const TensorView tensor, Bytes(name, std::move(shape)));
  if (CanDecode(tensor.dtype)) return tensor;
  return Error(Code::kUnsupported, "%s: weight format %s is not supported", name.c_str(),
               NameOf(tensor.dtype));
}

Result<MatView> Binder::Matrix(const std::string& name, int rows, int cols) const {
  HEARTH_ASSIGN(const TensorView tensor, Weight(name, {rows, cols}));
  return DenseMatrix(tensor, 0, rows, cols);
}

Result<MatView> Binder::Vector(const std::string& name, int size) const {
  HEARTH_ASSIGN(const TensorView tensor, Weight(name, {size}));
  return DenseMatrix(tensor, 0, 1, size);
}

Result<MatView> Binder::VectorIfAny(const std::string& name, int size) const {
  if (!Has(name)) return MatView();
  return Vector(name, size);
}

Result<std::vector<MatView>> Binder::Stack(const std::string& name, int count, int rows,
                                           int cols) const {
  HEARTH_ASSIGN(const TensorView tensor, Weight(name, {count, rows, cols}));
  const int64_t each = static_cast<int64_t>(tensor.bytes.size()) / count;
  std::vector<MatView> views;
  for (int i = 0; i < count; ++i) views.push_back(DenseMatrix(tensor, i * each, rows, cols));
  return views;
}

Result<std::vector<MatView>> Binder::VectorStack(const std::string& name, int count,
                                                 int size) const {
  HEARTH_ASSIGN(const MatView all, Matrix(name, count, size));
  std::vector<MatView> views;
  for (int i = 0; i < count; ++i) views.push_back(all.Rows(i, 1));
  return views;
}

Result<std::vector<MatView>> Binder::TransposedStack(const std::string& name, int count, int rows,
                                                     int cols) const {
  HEARTH_ASSIGN(std::vector<MatView> views, Stack(name, count, cols, rows));
  for (MatView& view : views) {
    if (view.col_bytes == 0) {
      return Error(Code::kUnsupported, "%s: %s blocks cannot be read transposed", name.c_str(),
                   NameOf(view.dtype));
    }
    std::swap(view.rows, view.cols);
    std::swap(view.row_bytes, view.col_bytes);
  }
  return views;
}

Result<std::vector<MatView>> Binder::PlanesStack(const std::string& blocks,
                                                 const std::string& scales, int count, int rows,
                                                 int cols) const {
  if (cols % 32 != 0) {
    return Error(Code::kCorrupt, "%s: rows of %d values are not a multiple of 32", blocks.c_str(),
                 cols);
  }
  const int per_row = cols / 32;
  HEARTH_ASSIGN(const TensorView nibbles, Bytes(blocks, {count, rows, per_row, 16}));
  HEARTH_ASSIGN(const TensorView exponents, Bytes(scales, {count, rows, per_row}));
  if (nibbles.dtype != DType::kU8 || exponents.dtype != DType::kU8) {
    return Error(Code::kCorrupt, "%s: expected U8 blocks and scales, found %s and %s",
                 blocks.c_str(), NameOf(nibbles.dtype), NameOf(exponents.dtype));
  }
  MatView view;
  view.dtype = DType::kMxfp4Planes;
  view.rows = rows;
  view.cols = cols;
  view.row_bytes = int64_t{per_row} * 16;
  view.scale_row_bytes = per_row;
  std::vector<MatView> views;
  for (int i = 0; i < count; ++i) {
    view.data = nibbles.bytes.data() + i * rows * view.row_bytes;
    view.scales = exponents.bytes.data() + i * rows * view.scale_row_bytes;
    views.push_back(view);
  }
  return views;
}

void SplitGateUp(const MatView& both, const MatView& both_bias, FfnWeights& ffn) {
  ffn.gate = both.EverySecondRow(0);
  ffn.up = both.EverySecondRow(1);
  ffn.gate_bias = both_bias;
  ffn.gate_bias.cols /= 2;
  ffn.gate_bias.col_bytes *= 2;
  ffn.up_bias = ffn.gate_bias;
  ffn.up_bias.data += both_bias.col_bytes;
}

void SetExperts(const std::vector<MatView>& gate_up, const std::vector<MatView>& gate_up_bias,
                const std::vector<MatView>& down, const std::vector<MatView>& down_bias,
                LayerWeights& w) {
  w.ffn.resize(gate_up.size());
  for (size_t i = 0; i < w.ffn.size(); ++i) {
    SplitGateUp(gate_up[i], gate_up_bias[i], w.ffn[i]);
    w.ffn[i].down = down[i];
    w.ffn[i].down_bias = down_bias[i];
  }
}

void SplitQkvBias(const MatView& all, int q_rows, int kv_rows, LayerWeights& w) {
  const auto part = [&all](int first, int count) {
    MatView view = all;
    view.data += first * all.col_bytes;
    view.cols = count;
    return view;
  };
  w.q_bias = part(0, q_rows);
  w.k_bias = part(q_rows, kv_rows);
  w.v_bias = part(q_rows + kv_rows, kv_rows);
}

}  // namespace hearth
