// SPDX-License-Identifier: Apache-2.0
#include "cpu/self_check.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "base/num.h"
#include "base/result.h"
#include "cpu/matmul_input.h"
#include "cpu/pack.h"
#include "cpu/pack_format.h"
#include "cpu/panels.h"
#include "tensor/quant.h"

namespace hearth {
namespace {

constexpr int kTokens = 5, kRows = 3 * kPanelRows + 5;  // full panels, and one that is not
constexpr int kCols = 2304;  // whole strips and whole superblocks, several of each

class Numbers {
 public:
  float Next() { return std::ldexp(static_cast<float>(static_cast<int>(engine_()) >> 8), -23); }
  std::vector<float> Many(int64_t n) {
    std::vector<float> values(static_cast<size_t>(n));
    for (float& value : values) value = Next();
    return values;
  }
  uint32_t Bits() { return static_cast<uint32_t>(engine_()); }

 private:
  std::mt19937 engine_{1};  // the same numbers on every machine
};

bool Differ(const std::vector<float>& want, const std::vector<float>& got) {
  return std::memcmp(want.data(), got.data(), want.size() * sizeof(float)) != 0;
}

// Rows as a file holds them.
std::vector<std::byte> FileBytes(DType dtype, Numbers& numbers) {
  const BlockShape shape = BlockShapeOf(dtype);
  const auto each = static_cast<size_t>(shape.bytes);
  std::vector<std::byte> file(size_t{kRows} * kCols / static_cast<size_t>(shape.elems) * each);
  for (size_t at = 0; at < file.size(); at += each) {
    std::byte* block = &file[at];
    if (shape.elems == 1) {
      const float value = numbers.Next();
      const uint16_t half = dtype == DType::kF16 ? F16FromF32(value) : Bf16FromF32(value);
      std::memcpy(block, each == 4 ? static_cast<const void*>(&value) : &half, each);
      continue;
    }
    do {  // random codes and factors, until the factors are numbers
      for (size_t i = 0; i < each; ++i) block[i] = static_cast<std::byte>(numbers.Bits());
    } while (!CheckBlocks(dtype, std::span(block, each)).ok());
  }
  return file;
}

struct Packed {
  std::vector<uint8_t> bytes;
  std::vector<SpilledBlock> spills;
  PackedMatrix matrix{};
};

Packed Pack(DType dtype, const std::vector<std::byte>& file) {
  const BlockShape shape = BlockShapeOf(dtype);
  MatView view;
  view.data = file.data();
  view.dtype = dtype;
  view.rows = kRows;
  view.cols = kCols;
  view.row_bytes = int64_t{kCols} / shape.elems * shape.bytes;
  view.col_bytes = shape.elems == 1 ? shape.bytes : 0;
  Packed packed;
  packed.bytes.resize(static_cast<size_t>(PackedBytes(view)) + 64);
  uint8_t* line = packed.bytes.data();
  line += (64 - reinterpret_cast<uintptr_t>(line) % 64) % 64;
  PackPanels(view, 0, NumPanels(kRows), line, packed.spills);
  packed.matrix = {PackKindOf(view),
                   static_cast<uint8_t>(dtype),
                   kRows,
                   kCols,
                   line,
                   PanelBytesOf(view),
                   packed.spills.data(),
                   static_cast<int>(packed.spills.size())};
  return packed;
}

// `form` is -1 for a product that reads floats.
std::string CheckProduct(const KernelTable& table, DType dtype, const PackedMatrix& matrix,
                         const std::vector<float>& rows, int form) {
  ActBuffer wanted, given;
  const ActForm shape = kForms[form < 0 ? 0 : form];
  const Activations& x = wanted.Shape(kTokens, kCols, shape);
  const Activations& y = given.Shape(kTokens, kCols, shape);
  for (int t = 0; t < kTokens && form >= 0; ++t) {
    ScalarKernels().quantise(&rows[static_cast<size_t>(t) * kCols], x, t);
    table.quantise(&rows[static_cast<size_t>(t) * kCols], y, t);
  }
  const int64_t stride = int64_t{NumPanels(kRows)} * kPanelRows;
  for (const int m : {1, kTokens}) {
    std::vector<float> want(static_cast<size_t>(stride * m)), got = want;
    const Activations first = RowsOf(x, 0, m), second = RowsOf(y, 0, m);
    const auto kind = static_cast<size_t>(matrix.kind);
    const bool is_fast = shape.planes == 1;
    const auto few = [&](const KernelTable& of) {
      return is_fast ? of.fast.matmul[kind] : of.matmul[kind];
    };
    few(ScalarKernels())({&matrix, &first, nullptr, want.data(), stride, rows.data(), kCols}, 0,
                         NumPanels(kRows));
    const TileProduct& tiles = is_fast ? table.fast.tiles[kind] : table.tiles[kind];
    for (const MatmulKernel kernel : {few(table), tiles.kernel}) {
      if (kernel == nullptr) continue;
      kernel({&matrix, &second, nullptr, got.data(), stride, rows.data(), kCols}, 0,
             NumPanels(kRows));
      if (Differ(want, got)) {
        return Printf("the %sproduct of %s with %d rows", is_fast ? "fast " : "", NameOf(dtype), m);
      }
    }
  }
  return "";
}

std::string CheckProducts(const KernelTable& table, DType dtype, Numbers& numbers) {
  const std::vector<std::byte> file = FileBytes(dtype, numbers);
  const Packed packed = Pack(dtype, file);
  const std::vector<float> rows = numbers.Many(int64_t{kTokens} * kCols);
  const int exact = FormFor(packed.matrix.kind, Numerics::kExact);
  const int fast = FormFor(packed.matrix.kind, Numerics::kFast);
  std::string wrong = CheckProduct(table, dtype, packed.matrix, rows, exact);
  if (!wrong.empty() || fast == exact) return wrong;
  return CheckProduct(table, dtype, packed.matrix, rows, fast);
}

std::string CheckRows(const KernelTable& table, Numbers& numbers) {
  const KernelTable& scalar = ScalarKernels();
  constexpr int kN = 640;
  const std::vector<float> x = numbers.Many(kN), gain = numbers.Many(kN);
  // Runs one kernel of both tables on the same start.
  const auto differ = [&](auto&& run) {
    std::vector<float> want = x, got = x;
    run(scalar, want);
    run(table, got);
    return Differ(want, got);
  };
  using Row = std::vector<float>;
  if (differ([&](const KernelTable& k, Row& y) {
        k.rms_norm(x.data(), gain.data(), 1e-5f, kN, y.data());
      })) {
    return "the norm";
  }
  for (const float limit : {0.0f, 7.0f}) {
    if (differ([&](const KernelTable& k, Row& y) {
          k.glu(x.data(), gain.data(), 1.702f, limit, kN, y.data());
        })) {
      return "the activation";
    }
  }
  for (const bool neighbours : {false, true}) {
    if (differ([&](const KernelTable& k, Row& y) {
          k.rope(y.data(), x.data(), gain.data(), 128, neighbours);
        })) {
      return "the rotation";
    }
  }
  if (differ(
          [&](const KernelTable& k, Row& y) { k.add_scaled(gain.data(), 0.3f, kN, y.data()); })) {
    return "the sum";
  }
  if (differ([&](const KernelTable& k, Row& y) { k.softmax(y.data(), kN); })) return "the softmax";
  if (differ([&](const KernelTable& k, Row& y) {
        k.dot_rows(gain.data(), x.data(), kN, kN, 1, y.data());
      })) {
    return "the dot product";
  }
  return "";
}

// Two tokens at position 300, so that a span ends in between, with and without a window.
template <class Number>
std::string CheckAttention(const KernelTable& table, Numbers& numbers) {
  constexpr auto kLargest = static_cast<float>(std::numeric_limits<Number>::max());
  const auto kernel_of = [](const KernelTable& k) {
    return sizeof(Number) == 1 ? k.attend_int8 : k.attend;
  };
  constexpr int kHeads = 8, kKvHeads = 2, kHeadDim = 64, kCount = 2, kFirst = 300;
  constexpr int kBlocks = (kFirst + kCount + kBlockTokens - 1) / kBlockTokens;
  constexpr int64_t kBytes = KvHeadBytes(kHeadDim, sizeof(Number)) * kKvHeads;
  std::vector<uint8_t> pool(static_cast<size_t>(kBytes * kBlocks) + 64);
  uint8_t* line = pool.data();
  line += (64 - reinterpret_cast<uintptr_t>(line) % 64) % 64;
  for (int64_t head = 0; head < int64_t{kBlocks} * kKvHeads; ++head) {
    auto* codes = reinterpret_cast<Number*>(line + head * KvHeadBytes(kHeadDim, sizeof(Number)));
    for (int i = 0; i < 2 * kBlockTokens * kHeadDim; ++i) {
      codes[i] = static_cast<Number>(numbers.Bits());
    }
    auto* scales = reinterpret_cast<float*>(codes + 2 * kBlockTokens * kHeadDim);
    for (int i = 0; i < 2 * kBlockTokens; ++i) scales[i] = std::fabs(numbers.Next()) / kLargest;
  }
  std::vector<int32_t> blocks(kBlocks);
  std::iota(blocks.rbegin(), blocks.rend(), 0);
  constexpr int64_t kStride = int64_t{kHeads} * kHeadDim;
  const std::vector<float> q = numbers.Many(kCount * kStride), sinks = numbers.Many(kHeads);
  for (const int window : {0, 128}) {
    std::vector<float> want(q.size()), got(q.size()), scratch(kAttendScratch);
    AttendArgs args{q.data(), want.data(), line,     blocks.data(), sinks.data(), scratch.data(),
                    kStride,  kBytes,      0,        kCount,        kFirst,       window,
                    kHeads,   kKvHeads,    kHeadDim, 0.125f,        nullptr,      0,
                    0};
    kernel_of(ScalarKernels())(args, 0, kKvHeads);
    args.out = got.data();
    kernel_of(table)(args, 0, kKvHeads);
    if (Differ(want, got)) return "attention";
  }
  return "";
}

}  // namespace

std::string FirstDifference(const KernelTable& table) {
  Numbers numbers;
  if (std::string wrong = CheckRows(table, numbers); !wrong.empty()) return wrong;
  if (std::string wrong = CheckAttention<int16_t>(table, numbers); !wrong.empty()) return wrong;
  if (std::string wrong = CheckAttention<int8_t>(table, numbers); !wrong.empty()) {
    return wrong + " over int8";
  }
  for (const DType dtype :
       {DType::kMxfp4, DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1,
        DType::kIq4Nl, DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K,
        DType::kIq4Xs, DType::kF32, DType::kF16, DType::kBf16}) {
    if (std::string wrong = CheckProducts(table, dtype, numbers); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace hearth
