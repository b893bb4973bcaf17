// SPDX-License-Identifier: Apache-2.0
// What CUDA kernels are launched with: plain structs of device pointers and sizes, the same for
// nvcc and for the host. Layouts are those of the CPU backend (cpu/kernels.h, cpu/panels.h), so
// that K, V, panels and activations can be exchanged byte for byte.
#pragma once
#include <cstdint>
namespace hearth::cuda {

constexpr int kBlockTokens = 16;  // positions of a KV block
constexpr int kPanelRows = 16;
constexpr int kQuantBlock = 32;
constexpr int kStrip = 576;  // columns that share an activation's scale
constexpr int kSuper = 256;  // the same for K-quants and IQ4_XS
constexpr int kSpan = 256;   // positions that are reduced together
constexpr float kActMax = 32512.0f;

constexpr int kRowThreads = 256;     // of kernels that take one row per block
constexpr int kMatmulThreads = 128;  // 16 rows x 8 tokens: one result each
constexpr int kTileTokens = 8;       // columns of one mma tile
constexpr int kAttendThreads = 128;  // two positions of a span each
constexpr int kAttendHeads = 8;      // query heads of one KV head taken together
constexpr int kFloatThreads = 256;   // 16 rows x 16 lanes
constexpr int kTopThreads = 256;
constexpr int kFlashThreads = 128;  // a warp takes every fourth tile of sixteen positions
constexpr int kTopChunk = 4096;     // candidates of a block: sixteen a thread

// Rows of quantised activations: value = (256 hi + lo) * scale.
struct ActRows {
  int8_t *hi, *lo;           // [rows, stride], zero from `cols` on
  float* scale;              // [rows, num_strips]
  int32_t *sum_hi, *sum_lo;  // [rows, num_blocks] or null: of each block of 32
  int32_t cols, stride, num_strips, num_blocks;
  int32_t strip;  // columns that share a scale: kStrip or kSuper
};

// x += add; h = rms_norm(x) * gain; act = quantised h. One block of kRowThreads per row.
struct NormArgs {
  float* x;              // [rows, d]
  const float* add;      // [rows, add_stride] or null; with `weights`, of experts:
  const float* weights;  // [rows, active] or null: adds what a row's experts gave, in the order of
  const int32_t* slot_of;  // choice; [rows, active]: which rows of `add`; null: in that order
  const float* gain;       // [d]; null: h is x, nothing is normed
  float* h;                // [blocks, d] or null
  ActRows act, supers;     // [blocks], with strips of both kinds; hi null: not wanted
  const int32_t* rows;     // [blocks]: which rows of x and add; null: all
  int64_t add_stride;
  int32_t d, active;
  float eps;
};

// z = silu(gate) * up, clamped when limit > 0; act = quantised z. One block of kRowThreads per row.
struct GluArgs {
  const float *gate, *up;  // [rows, stride]
  ActRows act, supers;     // as above
  float* z;                // [rows, stride] or null; may be `gate`
  int64_t stride;
  int32_t d;
  float alpha, limit;
};

// Where tokens of a step stand.
struct TokenPlace {
  int32_t position;
  int32_t table;  // where its sequence's table starts in `tables`
};

// The blocks of one KV group, seen from one layer.
struct KvPlace {
  uint8_t* pool;
  const int32_t* tables;
  int64_t block_bytes, layer_offset;
};

// Norms of heads, rope, and K and V into their blocks. One warp per head: grid (n_heads +
// n_kv_heads, tokens).
struct RopeArgs {
  float* q;                      // [tokens, q_stride], in place
  const float *k, *v;            // [tokens, kv_stride]
  const float *q_norm, *k_norm;  // [d_head] or null
  const float *cos, *sin;        // [tokens, n_dims / 2]
  const TokenPlace* places;      // [tokens]
  KvPlace kv;
  int64_t q_stride, kv_stride;
  int32_t n_heads, n_kv_heads, d_head, n_dims;
  int32_t neighbours;  // 1: pairs are neighbours, 0: halves
  float eps;
};

// Attention of tokens over the spans that each sees. grid (most spans of a token, n_kv_heads *
// tiles of kAttendHeads, tokens); what a span contributes goes to `parts`, which CombineArgs reads.
struct AttendArgs {
  const float* q;            // [tokens, q_stride], rope applied
  const TokenPlace* places;  // [tokens]
  KvPlace kv;
  float* parts;  // [tokens, n_heads, max_spans, d_head + 2]: values, largest score, sum of weights
  int64_t q_stride;
  int32_t window;  // 0: all
  int32_t n_heads, n_kv_heads, d_head, max_spans;
  float scale;
};

// Spans in ascending order, from the sink or from nothing. grid (n_heads, tokens).
struct CombineArgs {
  const float* parts;
  const TokenPlace* places;
  const float* sinks;  // [n_heads] or null
  float* out;          // [tokens, out_stride]
  int64_t out_stride;
  int32_t window, n_heads, d_head, max_spans;
};

// As cpu/kernels.h has it, byte for byte.
struct SpilledBlock {
  int32_t row, block;
  float scale;
  int8_t w[kQuantBlock];
};

// y[t, r] = dot(w[r], x[t]) + bias[r] for one matrix and its rows of x.
struct MatmulJob {
  const uint8_t* panels;
  const SpilledBlock* spills;  // MXFP4, ascending by row and block
  const int32_t* spill_begin;  // [panels + 1], or null: nothing is spilled
  const float* bias;           // [rows padded to a panel] or null
  float* y;                    // [rows of x, y_stride]
  const int32_t* range;        // rows [range[0], range[1]) of x, or null: rows [0, m)
  int64_t panel_bytes, y_stride;
  int32_t num_panels, cols;
  int32_t expert;  // whose choices it takes, where a launch has choices
};
// grid (most panels of a job, jobs, tiles of tokens).
struct MatmulArgs {
  const MatmulJob* jobs;
  ActRows x;
  int32_t m;
  // Tiles of kTileTokens alone: choice i, if it is a job's expert, has row i / sharing of x and row
  // i of y. Null: rows as the jobs say.
  const int32_t* choices;
  int32_t num_choices, sharing;
};

// The same for F32, F16 and BF16, which read activations as floats. Tiles of kTileTokens.
struct FloatMatmulArgs {
  const MatmulJob* jobs;
  const float* x;  // [m, x_stride]
  int64_t x_stride;
  int32_t m;
};

// Weights that kernels can read.
enum class WeightKind : int32_t {
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
};

// Rows of a matrix as floats. One block of kRowThreads per token.
struct EmbedArgs {
  const int32_t* tokens;
  const uint8_t* panels;
  const SpilledBlock* spills;  // as in MatmulJob
  const int32_t* spill_begin;
  float* x;  // [tokens, cols]
  int64_t panel_bytes;
  int32_t cols;
  WeightKind kind;
};

// Of each row the experts with the largest logits, ties to the lower one, and their weights. One
// warp per token.
struct RouteArgs {
  float* logits;     // [tokens, stride]; overwritten when softmax comes first
  int32_t* experts;  // [tokens, active], in falling order
  float* weights;    // [tokens, active]
  int64_t stride;
  int32_t num_experts, active;
  int32_t softmax_first, renormalise;
};

// Choices by expert, each expert's in their own order. One block of kRowThreads.
struct SortArgs {
  const int32_t* experts;  // [choices]
  int32_t* begin;          // [num_experts + 1]: slots of each expert
  int32_t* slot_of;        // [choices]
  int32_t* choice_of;      // [choices]: by slot
  int32_t num_choices, num_experts;
};

// Row choice_of[s] / active to row s. One block of kRowThreads per slot.
struct GatherArgs {
  const int32_t* choice_of;
  ActRows from, to;  // of one shape; hi null: not wanted
  ActRows super_from, super_to;
  const float* from_x;  // [tokens, d] or null: not wanted
  float* to_x;          // [slots, to_stride]
  int64_t to_stride;
  int32_t active, d;
};

// NormArgs, then the router's product and the choice of experts, for routers of floats. One block
// of kRowThreads per row.
struct NormRouteArgs {
  NormArgs norm;
  RouteArgs route;  // without logits
  const uint8_t* panels;
  const float* bias;  // [num_experts padded to a panel] or null
  int64_t panel_bytes;
  WeightKind kind;
};

// From q, k and v as they come out of their products to the quantised row behind attention, for
// steps with one token of each sequence: what rope, attend, combine and the quantising do, in one
// launch. grid as of AttendArgs.
struct DecodeArgs {
  RopeArgs rope;  // q stays as it is
  AttendArgs attend;
  CombineArgs combine;
  ActRows act;        // hi null: not wanted
  int32_t* arrived;   // [tokens, 1 + blocks of a span]: zero before and after
  int32_t first_row;  // of `act`
};

// A token with its logit; -1 and NaN: none.
struct Candidate {
  int32_t token;
  float logit;
};

// The largest of each row, in falling order, equal ones by token. grid (chunks, rows).
struct TopArgs {
  const float* logits;    // [rows, stride]; null: `from`
  const Candidate* from;  // [rows, stride]: what an earlier launch left
  const int32_t* tops;    // [rows]: how many of each; 0: none, the row is not touched
  Candidate* to;          // [rows, to_stride], of each chunk `most`
  int64_t stride, to_stride;
  int32_t n, most;  // of a row; none of `tops` is larger
};

// Attention of one token each over an FP16 cache; hearth_flash_reduce merges the splits.
struct FlashArgs {
  const uint16_t* q;      // [sequences, n_heads, d_head], halves
  const uint16_t *k, *v;  // [sequences, n_kv_heads, max_positions, d_head], or in blocks:
  const int32_t*
      tables;  // [sequences, table_stride] of [n_kv_heads, kBlockTokens, d_head]; null: none
  const int32_t* lengths;  // [sequences]
  float* parts;            // [sequences, n_heads, splits, d_head + 2]
  float* out;              // [sequences, n_heads, d_head]
  int64_t table_stride, max_positions;
  int32_t n_heads, n_kv_heads, d_head;
  int32_t splits, split_tiles;  // of so many tiles of kBlockTokens positions
  float scale;
};

}  // namespace hearth::cuda
