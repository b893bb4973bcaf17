// SPDX-License-Identifier: Apache-2.0
#include "cpu/matmul_input.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "cpu/pack_format.h"
#include "cpu/panels.h"

namespace hearth {

void InputNeeds::Add(const PackedMatrix& matrix) {
  if (matrix.rows == 0) return;
  const int strip = FormatOf(matrix.kind)->strip;
  (strip == 0 ? floats : (strip == kSuper ? supers : strips)) = true;
}

InputNeeds NeedsOf(std::initializer_list<const PackedMatrix*> matrices) {
  InputNeeds needs;
  for (const PackedMatrix* matrix : matrices) needs.Add(*matrix);
  return needs;
}

Activations& ActBuffer::Shape(int m, int cols, int strip) {
  const int unit = strip == kSuper ? kSuper : 64;
  view_.m = m;
  view_.cols = cols;
  view_.strip = strip;
  view_.stride = (cols + unit - 1) / unit * unit;
  view_.num_strips = (cols + strip - 1) / strip;
  view_.num_blocks = view_.stride / kQuantBlock;
  // Rows a multiple of 1024 bytes apart share few sets of L1, and a tile reads 16 rows at once.
  if (view_.stride % 1024 == 0) view_.stride += 64;
  view_.hi = hi_.Room(int64_t{m} * view_.stride);
  view_.lo = lo_.Room(int64_t{m} * view_.stride);
  view_.scale = scale_.Room(int64_t{m} * view_.num_strips);
  view_.sum_hi = sum_hi_.Room(int64_t{m} * view_.num_blocks);
  view_.sum_lo = sum_lo_.Room(int64_t{m} * view_.num_blocks);
  view_.sum16_hi = view_.sum16_lo = view_.sum32_hi = view_.sum32_lo = nullptr;
  if (strip != kSuper) return view_;
  const int64_t count = int64_t{m} * view_.num_blocks;
  view_.sum16_hi = sums_.Room(6 * count);
  view_.sum16_lo = view_.sum16_hi + 2 * count;
  view_.sum32_hi = view_.sum16_lo + 2 * count;
  view_.sum32_lo = view_.sum32_hi + count;
  return view_;
}

Activations RowsOf(const Activations& x, int first, int m) {
  Activations part = x;
  part.m = m;
  part.hi += int64_t{first} * part.stride;
  part.lo += int64_t{first} * part.stride;
  part.scale += int64_t{first} * part.num_strips;
  part.sum_hi += int64_t{first} * part.num_blocks;
  part.sum_lo += int64_t{first} * part.num_blocks;
  if (part.strip == kSuper) {
    const int64_t blocks = int64_t{first} * part.num_blocks;
    part.sum16_hi += 2 * blocks;
    part.sum16_lo += 2 * blocks;
    part.sum32_hi += blocks;
    part.sum32_lo += blocks;
  }
  return part;
}

void ActBuffer::CopyRow(int to, const ActBuffer& other, int from) {
  const Activations a = Part(to, 1), b = other.Part(from, 1);
  std::memcpy(a.hi, b.hi, static_cast<size_t>(a.stride));
  std::memcpy(a.lo, b.lo, static_cast<size_t>(a.stride));
  std::copy_n(b.scale, a.num_strips, a.scale);
  std::copy_n(b.sum_hi, a.num_blocks, a.sum_hi);
  std::copy_n(b.sum_lo, a.num_blocks, a.sum_lo);
  if (a.strip != kSuper) return;
  std::copy_n(b.sum16_hi, 2 * a.num_blocks, a.sum16_hi);
  std::copy_n(b.sum16_lo, 2 * a.num_blocks, a.sum16_lo);
  std::copy_n(b.sum32_hi, a.num_blocks, a.sum32_hi);
  std::copy_n(b.sum32_lo, a.num_blocks, a.sum32_lo);
}

MatmulInput MatmulInput::Rows(int first, int count) const {
  MatmulInput part = *this;
  part.strips = RowsOf(strips, first, count);
  part.supers = RowsOf(supers, first, count);
  part.floats += first * stride;
  part.m = count;
  return part;
}

const Activations& MatmulInput::For(const PackedMatrix& matrix) const {
  return FormatOf(matrix.kind)->strip == kSuper ? supers : strips;
}

void InputBuffer::Shape(int m, int cols, InputNeeds needs) {
  needs_ = needs;
  m_ = m;
  if (needs.strips) strips_.Shape(m, cols);
  if (needs.supers) supers_.Shape(m, cols, kSuper);
}

void InputBuffer::Quantise(const KernelTable& kernels, const float* values, int row) {
  if (needs_.strips) kernels.quantise(values, strips_.get(), row);
  if (needs_.supers) kernels.quantise(values, supers_.get(), row);
}

void InputBuffer::CopyRow(int to, const InputBuffer& other, int from) {
  if (needs_.strips) strips_.CopyRow(to, other.strips_, from);
  if (needs_.supers) supers_.CopyRow(to, other.supers_, from);
}

MatmulInput InputBuffer::With(const float* floats, int64_t stride) const {
  MatmulInput input{strips_.get(), supers_.get(), floats, stride, m_};
  // What was not needed holds an earlier shape: nothing of it may be read but the number of rows.
  if (!needs_.strips) input.strips = {};
  if (!needs_.supers) input.supers = {};
  input.strips.m = input.supers.m = m_;
  return input;
}

}  // namespace hearth
