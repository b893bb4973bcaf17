// SPDX-License-Identifier: Apache-2.0
// What matrix products read: rows quantised the way each packed format wants them, or floats.
#pragma once
#include <cstdint>
#include <initializer_list>

#include "cpu/kernels.h"
#include "cpu/scratch.h"
namespace hearth {

// Which forms of its input a set of matrices reads.
struct InputNeeds {
  bool strips = false;  // one scale per kStrip columns
  bool supers = false;  // one scale per kSuper columns
  bool floats = false;
  void Add(const PackedMatrix& matrix);  // absent matrices need nothing
};
InputNeeds NeedsOf(std::initializer_list<const PackedMatrix*> matrices);

// Rows [first, first + m) of some activations.
Activations RowsOf(const Activations& x, int first, int m);

// Owns the memory behind Activations; grows, never shrinks.
class ActBuffer {
 public:
  // Capacity for m rows of `cols` values, one scale per `strip` columns. Earlier results are
  // invalid afterwards.
  Activations& Shape(int m, int cols, int strip = kStrip);
  const Activations& get() const { return view_; }
  Activations& get() { return view_; }
  Activations Part(int first, int m) const { return RowsOf(view_, first, m); }
  // Row `to` of this becomes row `from` of `other`, which has the same shape.
  void CopyRow(int to, const ActBuffer& other, int from);

 private:
  Scratch<int8_t> hi_, lo_;
  Scratch<float> scale_;
  Scratch<int32_t> sum_hi_, sum_lo_;
  Scratch<int16_t> sums_;  // the four arrays for superblocks, one after the other
  Activations view_{};
};

// A borrowed look at m rows; only the forms that were needed are there.
struct MatmulInput {
  Activations strips, supers;
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
  void Shape(int m, int cols, InputNeeds needs);
  void Quantise(const KernelTable& kernels, const float* values, int row);
  // Row `to` of this becomes row `from` of `other`, which was shaped for the same width and needs.
  void CopyRow(int to, const InputBuffer& other, int from);
  // All rows, with the floats that they were made from.
  MatmulInput With(const float* floats, int64_t stride) const;

 private:
  InputNeeds needs_;
  int m_ = 0;
  ActBuffer strips_, supers_;
};

}  // namespace hearth
