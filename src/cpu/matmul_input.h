// SPDX-License-Identifier: Apache-2.0
// What matrix products read: rows quantised the way each packed format wants them, or floats.
#pragma once
#include <cstdint>
#include <initializer_list>

#include "backend/numerics.h"
#include "cpu/kernels.h"
#include "cpu/scratch.h"
namespace hearth {

// How many columns share a scale, and how many planes of bytes a value takes.
struct ActForm {
  int strip, planes;
  bool operator==(const ActForm&) const = default;
};
inline constexpr ActForm kForms[] = {{kStrip, 2}, {kSuper, 2}, {kQuantBlock, 1}, {kSuper, 1}};
inline constexpr int kNumForms = 4;
// What the products of a format read under these numerics: an index into kForms, or -1 for floats.
int FormFor(PackKind kind, Numerics numerics);

// Which forms of its input a set of matrices reads.
struct InputNeeds {
  Numerics numerics = Numerics::kExact;
  bool forms[kNumForms] = {};
  bool floats = false;
  void Add(const PackedMatrix& matrix);  // absent matrices need nothing
  void Add(PackKind kind);
  void Add(const InputNeeds& other);
};
InputNeeds NeedsOf(Numerics numerics, std::initializer_list<const PackedMatrix*> matrices);

// Rows [first, first + m) of some activations.
Activations RowsOf(const Activations& x, int first, int m);

// Owns the memory behind Activations; grows, never shrinks.
class ActBuffer {
 public:
  // Lasting room for shapes of at most m rows and `cols` columns.
  void Reserve(ScratchArena& arena, int64_t m, int cols, ActForm form);
  // Capacity for m rows of `cols` values. Earlier results are invalid afterwards.
  Activations& Shape(int m, int cols, ActForm form);
  Activations& Shape(int m, int cols, int strip = kStrip) { return Shape(m, cols, {strip, 2}); }
  const Activations& get() const { return view_; }
  Activations& get() { return view_; }
  Activations Part(int first, int m) const { return RowsOf(view_, first, m); }
  // Row `to` of this becomes row `from` of `other`, which has the same shape.
  void CopyRow(int to, const ActBuffer& other, int from);

 private:
  Scratch<int8_t> hi_, lo_;
  Scratch<float> scale_;
  Scratch<int32_t> sum_hi_, sum_lo_;
  Scratch<int16_t> whole_;
  Scratch<int16_t> sums_;  // the four arrays for superblocks, one after the other
  Activations view_{};
};

// A borrowed look at m rows; only the forms that were needed are there.
struct MatmulInput {
  Numerics numerics;
  Activations forms[kNumForms];
  const float* floats;  // [m, stride]
  int64_t stride;
  int m;
  MatmulInput Rows(int first, int count) const;
  // What the kernel of this matrix's format reads.
  const Activations& For(const PackedMatrix& matrix) const;
};

// The quantised forms of one set of rows.
class InputBuffer {
 public:
  void Reserve(ScratchArena& arena, int64_t m, int cols, InputNeeds needs);
  void Shape(int m, int cols, InputNeeds needs);
  void Quantise(const KernelTable& kernels, const float* values, int row);
  // Row `to` of this becomes row `from` of `other`, which was shaped for the same width and needs.
  void CopyRow(int to, const InputBuffer& other, int from);
  // All rows, with the floats that they were made from.
  MatmulInput With(const float* floats, int64_t stride) const;

 private:
  InputNeeds needs_;
  int m_ = 0;
  ActBuffer forms_[kNumForms];
};

}  // namespace hearth
