// SPDX-License-Identifier: Apache-2.0
// The arithmetic, one table of plain functions per instruction set. Plain data in, plain data out:
// kernels do not allocate, lock, log, throw or start threads. kernels_scalar.cc is the definition;
// every other table gives the same bits (docs/numerics.md).
#pragma once
#include <cstddef>
#include <cstdint>
namespace hearth {

// Tokens per KV block. The same dimension of 16 keys, 16 bits each, widens to one AVX-512 vector: a
// block is exactly one vector of positions.
inline constexpr int kBlockTokens = 16;
inline constexpr int kPanelRows = 16;   // rows of a packed panel: one AVX-512 vector of outputs
inline constexpr int kQuantBlock = 32;  // columns of an MXFP4 or Q8_0 block
// Columns that share one activation scale. 18 blocks: 96 * 128 * 576 < 2^23, so a strip's integer
// sum is exact in int32 even after the two halves are joined, and 576 = 9 AMX steps of 64.
inline constexpr int kStrip = 576;

// Columns of a K-quant superblock, whose sub-blocks have integer scales. With activations that
// share one scale over the same columns, everything inside a superblock is exact in int32.
inline constexpr int kSuper = 256;

// m rows of activations in one or two planes of signed bytes. Two, of numerics `exact`, are halves
// of 16 bits: value = (256 hi + lo) * scale. One, of `fast`, is lo alone; every pointer to
// something of hi is null then. Columns beyond `cols` are zero up to `stride`, a multiple of 64 (of
// 256 when strip is kSuper).
struct Activations {
  int8_t* hi;       // [m, stride]
  int8_t* lo;       // [m, stride]
  float* scale;     // [m, num_strips]
  int32_t* sum_hi;  // [m, num_blocks]: of each block of 32, for kernels with unsigned weights
  int32_t* sum_lo;  // [m, num_blocks]
  // Only when strip is kStrip, else null: whole values, 256 hi + lo.
  int16_t* whole;  // [m, stride]
  // Only when strip is kSuper, else null: sums of 16 and of 32 neighbours. Two of them side by side
  // are what a 16-bit dot product takes.
  int16_t *sum16_hi, *sum16_lo;  // [m, 2 * num_blocks]
  int16_t *sum32_hi, *sum32_lo;  // [m, num_blocks]
  int m, cols, stride, num_strips, num_blocks;
  int strip;   // columns that share a scale: kStrip, kSuper or kQuantBlock
  int planes;  // 1 or 2; 0: there are only floats
};

// One MXFP4 block whose exponent lies too far from its strip's to be folded into int8.
struct SpilledBlock {
  int32_t row, block;
  float scale;
  int8_t w[kQuantBlock];  // twice the E2M1 values
};

// The packed formats; pack_format.h has a row for each.
enum class PackKind : uint8_t {
  kMxfp4,
  kQ8,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kIq4Nl,
  kQ2K,
  kQ3K,
  kQ4K,
  kQ5K,
  kQ6K,
  kIq4Xs,
  kF32,
  kF16,
  kBf16,
  kRaw,  // rows as the file has them, decoded to float one by one: for formats without a kernel
};
inline constexpr int kNumPackKinds = static_cast<int>(PackKind::kRaw) + 1;

struct PackedMatrix {
  PackKind kind;
  uint8_t dtype;  // the DType it was packed from
  int rows, cols;
  const uint8_t* data;
  int64_t panel_bytes;         // from one panel of 16 rows to the next
  const SpilledBlock* spills;  // kMxfp4: ascending by (row, block)
  int num_spills;
  // By memory node, for the panels that lie on it: where panel 0 would lie. Null: all are at data.
  // Kernels read data; PartOn of panels.h makes one node's part a matrix of its own for them.
  const uint8_t* const* nodes = nullptr;
};

// y[t, r] = dot(w[r], x[t]) + bias[r] for panels [panel_begin, panel_end) and all m rows of x.
// y rows have room for whole panels.
struct MatmulArgs {
  const PackedMatrix* w;
  const Activations* x;  // m is set even when only floats are read
  const float* bias;     // [rows padded to a panel] or null
  float* y;              // [m, y_stride]
  int64_t y_stride;
  const float* xf = nullptr;  // [m, xf_stride]: as floats, for formats that read those
  int64_t xf_stride = 0;
};
using MatmulKernel = void (*)(const MatmulArgs& args, int panel_begin, int panel_end);

// Attention of `count` consecutive tokens of one sequence for KV heads [kv_begin, kv_end).
// In a block, each layer holds for each KV head (KvHeadBytes in all): K as codes [d_head, 16], V as
// codes [16, d_head], then the float scales of the 16 keys and of the 16 values. A code is an
// int16; for attend_int8 it is a byte, and they lie as kv_int8.h says.
struct AttendArgs {
  const float* q;        // [count, q_stride], n_heads * d_head used, rope applied
  float* out;            // like q
  const uint8_t* pool;   // the group's blocks
  const int32_t* table;  // the sequence's blocks in this group
  const float* sinks;    // [n_heads] or null
  float* scratch;        // kAttendScratch floats, the caller's own
  int64_t q_stride, block_bytes, layer_offset;
  int count, first_position, window;  // window 0 = all
  int n_heads, n_kv_heads, d_head;
  float scale;
  // Null, or the call takes spans [span_begin, span_end) only and leaves here what each of them
  // contributes, for merge_spans: AttendPartFloats per span that any of the tokens sees.
  float* parts;
  int span_begin, span_end;
};
// Positions that are reduced together before they meet the rest: fixed by absolute position, so
// that a result does not depend on how a sequence was cut.
inline constexpr int kSpan = 256;
inline constexpr int kMaxHeadDim = 256;
inline constexpr int kMaxGroup = 64;  // query heads per KV head
constexpr int64_t AttendPartFloats(int count, int n_heads, int d_head) {
  return int64_t{count} * n_heads * ((d_head + 15) / 16 * 16 + 2);
}
// Dimensions a head has in a block: bytes come in fours.
constexpr int KvDims(int d_head, int code_bytes) {
  return code_bytes == 1 ? (d_head + 3) / 4 * 4 : d_head;
}
constexpr int64_t KvHeadBytes(int d_head, int code_bytes = 2) {
  return 16 * (int64_t{2} * code_bytes * KvDims(d_head, code_bytes) + 8);
}
inline constexpr int kAttendRows = 128;  // query heads, of several tokens, taken together at most
// Eight blocks widened, a span's scales, and per row scores, values twice and a few sums.
inline constexpr size_t kAttendScratch =
    8 * 16 * kMaxHeadDim + 2 * kSpan + size_t{kAttendRows} * (kSpan + 16 + 2 * kMaxHeadDim + 4);

using AttendKernel = void (*)(const AttendArgs& args, int kv_begin, int kv_end);

// A product for many tokens, whose tiles hold rows and tokens in registers (tile.inl). Null: the
// table's one kernel is for any number.
struct TileProduct {
  MatmulKernel kernel = nullptr;
  int fewest = 0;  // tokens from which it is the faster one
};

// What a table has beside the products of `exact`: those with one plane of activations, numerics
// `fast`, for every format that is multiplied as integers. Others have one product for both.
struct FastProducts {
  MatmulKernel matmul[kNumPackKinds] = {};
  TileProduct tiles[kNumPackKinds] = {};
};

struct KernelTable {
  const char* isa;
  // One row of floats to row `row` of `x`.
  void (*quantise)(const float* values, const Activations& x, int row);
  // y[t] = dot(w, x[t]) for m rows: floats in, sixteen lanes of fused multiply-adds.
  void (*dot_rows)(const float* w, const float* x, int64_t x_stride, int cols, int m, float* y);
  AttendKernel attend;  // int16
  AttendKernel attend_int8;
  void (*rms_norm)(const float* x, const float* gain, float eps, int n, float* y);
  // z = silu(gate) * up, or gpt-oss's clamped form when limit > 0.
  void (*glu)(const float* gate, const float* up, float alpha, float limit, int n, float* z);
  // Turns one head in place; cos and sin are [n_dims / 2].
  void (*rope)(float* head, const float* cos, const float* sin, int n_dims, bool neighbours);
  void (*add_scaled)(const float* x, float factor, int n, float* y);  // y = fma(factor, x, y)
  // softmax of n values in place; returns false when a value is no number.
  bool (*softmax)(float* values, int n);
  // Ends an attention whose spans were taken by several calls: `parts` to `out`.
  AttendKernel merge_spans;
  MatmulKernel matmul[kNumPackKinds];  // by PackKind; null for kRaw
  TileProduct tiles[kNumPackKinds] = {};
  FastProducts fast = {};
};

const KernelTable& ScalarKernels();
const KernelTable& Avx2Kernels();
const KernelTable& AvxVnniKernels();
const KernelTable& Avx512VnniKernels();
const KernelTable& Avx512Kernels();
const KernelTable& AmxKernels();

}  // namespace hearth
