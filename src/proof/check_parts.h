// SPDX-License-Identifier: Apache-2.0
// What the checks share: rows of activations on the device, inputs with all the corners floats
// have, comparisons.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "cpu/kernels.h"
#include "cpu/matmul_input.h"
#include "cuda/args.h"
#include "proof/checks.h"
#include "proof/inputs.h"
namespace hearth::cuda {

using proof::Rng;

// Rows as the CPU holds them, and room of the same shape on the device.
inline ActRows ActRowsLike(const Activations& x, DeviceMemory& memory, bool has_sums) {
  const auto rows = static_cast<size_t>(x.m), blocks = rows * static_cast<size_t>(x.num_blocks);
  ActRows out{};
  out.hi = memory.Make<int8_t>(rows * static_cast<size_t>(x.stride));
  out.lo = memory.Make<int8_t>(rows * static_cast<size_t>(x.stride));
  out.scale = memory.Make<float>(rows * static_cast<size_t>(x.num_strips));
  if (has_sums) out.sum_hi = memory.Make<int32_t>(blocks);
  if (has_sums) out.sum_lo = memory.Make<int32_t>(blocks);
  out.cols = x.cols;
  out.stride = x.stride;
  out.num_strips = x.num_strips;
  out.num_blocks = x.num_blocks;
  out.strip = x.strip;
  return out;
}

// All rows of `x` to the device.
inline void CopyRows(const Activations& x, const ActRows& to) {
  const auto rows = static_cast<size_t>(x.m);
  std::copy_n(x.hi, rows * static_cast<size_t>(x.stride), to.hi);
  std::copy_n(x.lo, rows * static_cast<size_t>(x.stride), to.lo);
  std::copy_n(x.scale, rows * static_cast<size_t>(x.num_strips), to.scale);
}

template <class T>
std::string BytesDiffer(const char* what, const T* want, const T* got, size_t count) {
  CountCompared(static_cast<int64_t>(count));
  for (size_t i = 0; i < count; ++i) {
    if (want[i] == got[i]) continue;
    return std::string(what) + " at " + std::to_string(i) + ": want " + std::to_string(want[i]) +
           ", got " + std::to_string(got[i]);
  }
  return "";
}
inline std::string FloatsDiffer(const char* what, const float* want, const float* got,
                                size_t count) {
  CountCompared(static_cast<int64_t>(count));
  const std::string wrong = proof::Difference(want, got, count);
  return wrong.empty() ? "" : std::string(what) + " " + wrong;
}

// The first that is not empty.
inline std::string FirstOf(std::initializer_list<std::string> texts) {
  for (const std::string& text : texts) {
    if (!text.empty()) return text;
  }
  return "";
}

inline std::string RowsDiffer(const Activations& want, const ActRows& got) {
  const auto rows = static_cast<size_t>(want.m), bytes = rows * static_cast<size_t>(want.stride);
  const auto blocks = rows * static_cast<size_t>(want.num_blocks);
  return FirstOf(
      {BytesDiffer("hi", want.hi, got.hi, bytes), BytesDiffer("lo", want.lo, got.lo, bytes),
       FloatsDiffer("scale", want.scale, got.scale, rows * static_cast<size_t>(want.num_strips)),
       got.sum_hi == nullptr ? "" : BytesDiffer("sum_hi", want.sum_hi, got.sum_hi, blocks),
       got.sum_lo == nullptr ? "" : BytesDiffer("sum_lo", want.sum_lo, got.sum_lo, blocks)});
}

constexpr int kRowKinds = 8;
// A row of one kind; `kind` beyond the last is taken modulo.
inline std::vector<float> RowOfKind(Rng& rng, int n, int kind) {
  std::vector<float> row = rng.Normals(n);
  const auto any = [&] { return static_cast<size_t>(rng.Int(0, n - 1)); };
  switch (kind % kRowKinds) {
    case 1:  // outliers
      for (int i = 0; i < n; i += 97) row[static_cast<size_t>(i)] *= 250.0f;
      break;
    case 2:  // integers at the corners of both halves
      for (float& value : row) {
        constexpr float kCorners[] = {32512, -32512, 32384, -32384, 32383, -128, 127, 128};
        value = kCorners[rng.Int(0, 7)];
      }
      row[0] = 32512.0f;
      break;
    case 3:
      for (float& value : row) value = rng.OneIn(2) ? 0.0f : -0.0f;
      break;
    case 4:  // below what has an inverse
      for (float& value : row) value *= 0x1p-110f;
      break;
    case 5:
      for (float& value : row) value = rng.AnyFinite();
      break;
    case 6:  // one that is no number
      row[any()] = rng.OneIn(2) ? std::nanf("") : -std::numeric_limits<float>::infinity();
      break;
    case 7:  // all at full scale: the largest sums there are
      for (float& value : row) value = 3.0f;
      break;
    default:
      break;
  }
  return row;
}

inline std::vector<float> RowsOfKinds(Rng& rng, int rows, int n, int first_kind) {
  std::vector<float> all;
  for (int i = 0; i < rows; ++i) {
    const std::vector<float> row = RowOfKind(rng, n, first_kind + i);
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

// Where the spilled blocks of each panel begin.
inline std::vector<int32_t> SpillBegins(const PackedMatrix& w) {
  std::vector<int32_t> begin(static_cast<size_t>((w.rows + kPanelRows - 1) / kPanelRows) + 1);
  for (int s = 0; s < w.num_spills; ++s) {
    ++begin[static_cast<size_t>(w.spills[s].row / kPanelRows) + 1];
  }
  for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  return begin;
}

template <class Args>
void RunKernel(Machine& machine, const char* kernel, const Launch& launch, const Args& args,
               const DeviceMemory& memory) {
  machine.Run(kernel, launch, &args, sizeof args, memory);
}

}  // namespace hearth::cuda
