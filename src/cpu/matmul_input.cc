// SPDX-License-Identifier: Apache-2.0
#include "cpu/matmul_input.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "cpu/pack_format.h"
#include "cpu/panels.h"

namespace hearth {

// A format that was added has one kernel, for two planes.
int FormFor(PackKind kind, Numerics numerics) {
  const int strip = FormatOf(kind)->strip;
  if (strip == 0) return -1;
  const bool is_fast = numerics == Numerics::kFast && static_cast<int>(kind) < kNumPackKinds;
  return (is_fast ? 2 : 0) + (strip == kSuper ? 1 : 0);
}

void InputNeeds::Add(const PackedMatrix& matrix) {
  if (matrix.rows > 0) Add(matrix.kind);
}

void InputNeeds::Add(const InputNeeds& other) {
  for (int form = 0; form < kNumForms; ++form) forms[form] = forms[form] || other.forms[form];
  floats = floats || other.floats;
}

void InputNeeds::Add(PackKind kind) {
  const int form = FormFor(kind, numerics);
  (form < 0 ? floats : forms[form]) = true;
}

InputNeeds NeedsOf(Numerics numerics, std::initializer_list<const PackedMatrix*> matrices) {
  InputNeeds needs{.numerics = numerics};
  for (const PackedMatrix* matrix : matrices) needs.Add(*matrix);
  return needs;
}

namespace {

// The numbers of a shape, without memory.
Activations ShapeOf(int m, int cols, ActForm form) {
  const int unit = form.strip == kSuper ? kSuper : 64;
  Activations shape{};
  shape.m = m;
  shape.cols = cols;
  shape.strip = form.strip;
  shape.planes = form.planes;
  shape.stride = (cols + unit - 1) / unit * unit;
  shape.num_strips = (cols + form.strip - 1) / form.strip;
  shape.num_blocks = shape.stride / kQuantBlock;
  // Rows a multiple of 1024 bytes apart share few sets of L1, and a tile reads 16 rows at once.
  if (shape.stride % 1024 == 0) shape.stride += 64;
  return shape;
}

// Sums of 16 and of 32 neighbours, of each plane.
constexpr int64_t SumsPerBlock(int planes) { return 3 * planes; }

}  // namespace

// None of the numbers of a shape falls when there are more columns.
void ActBuffer::Reserve(ScratchArena& arena, int64_t m, int cols, ActForm form) {
  const Activations most = ShapeOf(0, cols, form);
  const bool two = form.planes == 2;
  if (two) hi_.Reserve(arena, m * most.stride);
  lo_.Reserve(arena, m * most.stride);
  scale_.Reserve(arena, m * most.num_strips);
  if (two) sum_hi_.Reserve(arena, m * most.num_blocks);
  sum_lo_.Reserve(arena, m * most.num_blocks);
  if (form.strip == kStrip) whole_.Reserve(arena, m * most.stride);
  if (form.strip == kSuper) {
    sums_.Reserve(arena, SumsPerBlock(form.planes) * m * most.num_blocks);
  }
}

Activations& ActBuffer::Shape(int m, int cols, ActForm form) {
  const bool two = form.planes == 2;
  view_ = ShapeOf(m, cols, form);
  view_.hi = two ? hi_.Room(int64_t{m} * view_.stride) : nullptr;
  view_.lo = lo_.Room(int64_t{m} * view_.stride);
  view_.scale = scale_.Room(int64_t{m} * view_.num_strips);
  view_.sum_hi = two ? sum_hi_.Room(int64_t{m} * view_.num_blocks) : nullptr;
  view_.sum_lo = sum_lo_.Room(int64_t{m} * view_.num_blocks);
  if (form.strip == kStrip) view_.whole = whole_.Room(int64_t{m} * view_.stride);
  if (form.strip != kSuper) return view_;
  const int64_t count = int64_t{m} * view_.num_blocks;
  view_.sum16_lo = sums_.Room(SumsPerBlock(form.planes) * count);
  view_.sum32_lo = view_.sum16_lo + 2 * count;
  if (!two) return view_;
  view_.sum16_hi = view_.sum32_lo + count;
  view_.sum32_hi = view_.sum16_hi + 2 * count;
  return view_;
}

Activations RowsOf(const Activations& x, int first, int m) {
  Activations part = x;
  part.m = m;
  const int64_t blocks = int64_t{first} * part.num_blocks;
  const bool is_super = part.strip == kSuper;
  part.lo += int64_t{first} * part.stride;
  part.scale += int64_t{first} * part.num_strips;
  part.sum_lo += blocks;
  if (is_super) {
    part.sum16_lo += 2 * blocks;
    part.sum32_lo += blocks;
  }
  if (part.planes != 2) return part;
  part.hi += int64_t{first} * part.stride;
  part.sum_hi += blocks;
  if (is_super) {
    part.sum16_hi += 2 * blocks;
    part.sum32_hi += blocks;
  } else {
    part.whole += int64_t{first} * part.stride;
  }
  return part;
}

void ActBuffer::CopyRow(int to, const ActBuffer& other, int from) {
  const Activations a = Part(to, 1), b = other.Part(from, 1);
  const bool is_super = a.strip == kSuper;
  std::memcpy(a.lo, b.lo, static_cast<size_t>(a.stride));
  std::copy_n(b.scale, a.num_strips, a.scale);
  std::copy_n(b.sum_lo, a.num_blocks, a.sum_lo);
  if (is_super) {
    std::copy_n(b.sum16_lo, 2 * a.num_blocks, a.sum16_lo);
    std::copy_n(b.sum32_lo, a.num_blocks, a.sum32_lo);
  }
  if (a.planes != 2) return;
  std::memcpy(a.hi, b.hi, static_cast<size_t>(a.stride));
  std::copy_n(b.sum_hi, a.num_blocks, a.sum_hi);
  if (is_super) {
    std::copy_n(b.sum16_hi, 2 * a.num_blocks, a.sum16_hi);
    std::copy_n(b.sum32_hi, a.num_blocks, a.sum32_hi);
  } else {
    std::copy_n(b.whole, a.stride, a.whole);
  }
}

MatmulInput MatmulInput::Rows(int first, int count) const {
  MatmulInput part = *this;
  for (Activations& form : part.forms) form = RowsOf(form, first, count);
  part.floats += first * stride;
  part.m = count;
  return part;
}

const Activations& MatmulInput::For(const PackedMatrix& matrix) const {
  const int form = FormFor(matrix.kind, numerics);
  if (form >= 0) return forms[form];
  // Only the number of rows is read: of a form that is not there, or of any.
  return forms[0];
}

void InputBuffer::Reserve(ScratchArena& arena, int64_t m, int cols, InputNeeds needs) {
  for (int form = 0; form < kNumForms; ++form) {
    if (needs.forms[form]) forms_[form].Reserve(arena, m, cols, kForms[form]);
  }
}

void InputBuffer::Shape(int m, int cols, InputNeeds needs) {
  needs_ = needs;
  m_ = m;
  for (int i = 0; i < kNumForms; ++i) {
    if (needs.forms[i]) forms_[i].Shape(m, cols, kForms[i]);
  }
}

void InputBuffer::Quantise(const KernelTable& kernels, const float* values, int row) {
  for (int i = 0; i < kNumForms; ++i) {
    if (needs_.forms[i]) kernels.quantise(values, forms_[i].get(), row);
  }
}

void InputBuffer::CopyRow(int to, const InputBuffer& other, int from) {
  for (int i = 0; i < kNumForms; ++i) {
    if (needs_.forms[i]) forms_[i].CopyRow(to, other.forms_[i], from);
  }
}

MatmulInput InputBuffer::With(const float* floats, int64_t stride) const {
  MatmulInput input{needs_.numerics, {}, floats, stride, m_};
  // What was not needed holds an earlier shape: nothing of it may be read but the number of rows.
  for (int i = 0; i < kNumForms; ++i) {
    if (needs_.forms[i]) input.forms[i] = forms_[i].get();
    input.forms[i].m = m_;
  }
  return input;
}

}  // namespace hearth
