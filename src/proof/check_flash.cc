// SPDX-License-Identifier: Apache-2.0
// Attention with FP16 tensor cores has no bits to compare: it may be wrong by at most twice as much
// as a plain computation in FP16 on the CPU is, both against doubles.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/num.h"
#include "cuda/flash.h"
#include "proof/check_parts.h"
#include "proof/flash_reference.h"

namespace hearth::cuda {
namespace {

struct FlashCase {
  int d_head, n_heads, n_kv_heads;
  std::vector<int> lengths;
  int splits;
  bool is_paged;
};

std::vector<uint16_t> Halves(Rng& rng, size_t count, float scale) {
  std::vector<uint16_t> out(count);
  const std::vector<float> normals = rng.Normals(static_cast<int>(count));
  for (size_t i = 0; i < count; ++i) out[i] = F16FromF32(normals[i] * scale);
  return out;
}

// K or V of all sequences in blocks of a shuffled table, positions that nobody has as NaN.
std::vector<uint16_t> InBlocks(const FlashCase& c, const std::vector<uint16_t>& from, int positions,
                               const std::vector<int32_t>& tables) {
  const int blocks = positions / kBlockTokens;
  std::vector<uint16_t> to(tables.size() * static_cast<size_t>(c.n_kv_heads * kBlockTokens) *
                               static_cast<size_t>(c.d_head),
                           0x7e00);
  for (size_t s = 0; s < c.lengths.size(); ++s) {
    for (int head = 0; head < c.n_kv_heads; ++head) {
      for (int p = 0; p < c.lengths[s]; ++p) {
        const int32_t block =
            tables[s * static_cast<size_t>(blocks) + static_cast<size_t>(p / kBlockTokens)];
        const int row = static_cast<int>(s) * c.n_kv_heads + head;
        const auto source = static_cast<size_t>(row * positions + p);
        const auto target =
            static_cast<size_t>((block * c.n_kv_heads + head) * kBlockTokens + p % kBlockTokens);
        std::copy_n(from.begin() + static_cast<int64_t>(source) * c.d_head, c.d_head,
                    to.begin() + static_cast<int64_t>(target) * c.d_head);
      }
    }
  }
  return to;
}

std::string RunCase(Machine& machine, const FlashCase& c, Rng& rng) {
  DeviceMemory memory(machine);
  const auto sequences = static_cast<int>(c.lengths.size());
  const int longest = *std::max_element(c.lengths.begin(), c.lengths.end());
  const int positions = (longest + kBlockTokens - 1) / kBlockTokens * kBlockTokens;
  const int tiles = positions / kBlockTokens;
  const auto count = [](int a, int b, int d) {
    return static_cast<size_t>(a) * static_cast<size_t>(b) * static_cast<size_t>(d);
  };
  const std::vector<uint16_t> q = Halves(rng, count(sequences, c.n_heads, c.d_head), 1.0f);
  const size_t cache = count(sequences * c.n_kv_heads, positions, c.d_head);
  const std::vector<uint16_t> k = Halves(rng, cache, 1.0f), v = Halves(rng, cache, 1.0f);
  std::vector<int32_t> tables(count(sequences, tiles, 1));
  std::iota(tables.begin(), tables.end(), 0);
  for (size_t i = tables.size() - 1; i > 0; --i) {
    std::swap(tables[i], tables[static_cast<size_t>(rng.Int(0, static_cast<int>(i)))]);
  }
  const std::vector<int32_t> lengths(c.lengths.begin(), c.lengths.end());
  FlashArgs args{};
  args.q = memory.Copy(q);
  args.k = memory.Copy(c.is_paged ? InBlocks(c, k, positions, tables) : k);
  args.v = memory.Copy(c.is_paged ? InBlocks(c, v, positions, tables) : v);
  if (c.is_paged) args.tables = memory.Copy(tables);
  args.lengths = memory.Copy(lengths);
  args.parts = memory.Make<float>(count(sequences, c.n_heads, c.splits * (c.d_head + 2)));
  const size_t results = count(sequences, c.n_heads, c.d_head);
  args.out = memory.Make<float>(results);
  args.table_stride = tiles;
  args.max_positions = positions;
  args.n_heads = c.n_heads;
  args.n_kv_heads = c.n_kv_heads;
  args.d_head = c.d_head;
  args.splits = c.splits;
  args.split_tiles = (tiles + c.splits - 1) / c.splits;
  args.scale = 1.0f / std::sqrt(static_cast<float>(c.d_head));
  const int head_tiles = (c.n_heads / c.n_kv_heads + 15) / 16;
  RunKernel(
      machine, c.d_head == 64 ? "hearth_flash_64" : "hearth_flash_128",
      {c.splits, c.n_kv_heads * head_tiles, sequences, kFlashThreads, FlashSharedBytes(c.d_head)},
      args, memory);
  RunKernel(machine, "hearth_flash_reduce", {c.n_heads, sequences, 1, kWarp, 0}, args, memory);
  const FlashShape shape{c.n_heads, c.n_kv_heads, c.d_head, positions, args.scale};
  const FlashErrors errors = FlashErrorsOf(shape, q, k, v, lengths, args.out);
  CountCompared(static_cast<int64_t>(results));
  if (errors.got <= 2 * errors.plain) return "";
  return "dimensions " + std::to_string(c.d_head) + ", longest " + std::to_string(longest) +
         ", splits " + std::to_string(c.splits) + (c.is_paged ? ", paged" : "") + ": wrong by " +
         std::to_string(errors.got) + ", FP16 on the CPU by " + std::to_string(errors.plain);
}

}  // namespace

std::string CheckFlash(Machine& machine, CaseGrid grid) {
  std::vector<FlashCase> cases = {
      {64, 8, 2, {1, 17, 40}, 1, true},
      {128, 4, 4, {33, 16}, 2, false},
      {64, 4, 2, {150}, 1, true},   // several tiles to a warp: sums shrink as larger scores come
      {64, 20, 1, {15}, 3, false},  // more than sixteen heads to a KV head, and an empty split
  };
  if (grid != CaseGrid::kTiny) {
    for (const int longest : {1, 15, 16, 17, 127, 128, 129, 256, 257, 1023}) {
      cases.push_back({64, 16, 2, {longest, 1, 16}, longest > 256 ? 3 : 1, longest % 2 == 1});
    }
    cases.push_back({128, 16, 2, {300, 129}, 2, true});
  }
  if (grid == CaseGrid::kFull) {
    for (const int splits : {1, 4, 16}) {
      for (const bool is_paged : {false, true}) {
        cases.push_back({64, 64, 8, {1, 15, 300, 1023, 4097}, splits, is_paged});
        cases.push_back({128, 32, 8, {128, 257, 1023}, splits, is_paged});
      }
    }
  }
  Rng rng(31);
  for (const FlashCase& c : cases) {
    if (std::string wrong = RunCase(machine, c, rng); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace hearth::cuda
