// SPDX-License-Identifier: Apache-2.0
// Sequences for checks of attention: their blocks placed at random in a pool of rubbish.
#pragma once
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "cpu/kernels.h"
#include "cuda/attend.h"
#include "proof/check_parts.h"
namespace hearth::cuda {

struct Sequence {
  int first_position, count;
};
struct AttendCase {
  int d_head, group, n_kv_heads, window;
  bool sinks;
  std::vector<Sequence> sequences;
  int nan_at = -1;  // a position whose key is no number
};

// Sequences with their tables, in a pool where what no token sees is rubbish.
struct Scene {
  Scene(const AttendCase& shape, Rng& rng) : c(shape) {
    layer_bytes = c.n_kv_heads * KvHeadBytes(c.d_head);
    block_bytes = 2 * layer_bytes;
    stride = c.group * c.n_kv_heads * c.d_head + 16;
    int blocks = 2;
    for (const Sequence& s : c.sequences) blocks += BlocksOf(s);
    pool.resize(static_cast<size_t>(block_bytes * blocks));
    for (uint8_t& byte : pool) byte = rng.Byte();
    for (size_t i = 0; i + 4 <= pool.size(); i += 12) std::memset(&pool[i], 0xff, 4);
    std::vector<int32_t> ids(static_cast<size_t>(blocks));
    std::iota(ids.begin(), ids.end(), 0);
    for (size_t i = ids.size() - 1; i > 0; --i) {
      std::swap(ids[i], ids[static_cast<size_t>(rng.Int(0, static_cast<int>(i)))]);
    }
    for (const Sequence& s : c.sequences) AddSequence(s, ids, rng);
    q = rng.Normals(static_cast<int>(stride) * static_cast<int>(places.size()));
    sinks = rng.Normals(c.group * c.n_kv_heads, 2.0f);
  }
  static int BlocksOf(const Sequence& s) {
    return (s.first_position + s.count + kBlockTokens - 1) / kBlockTokens;
  }

  void AddSequence(const Sequence& s, std::vector<int32_t>& ids, Rng& rng) {
    const auto table = static_cast<int32_t>(tables.size());
    const int begin = FirstVisible(s.first_position, c.window), end = s.first_position + s.count;
    for (int b = 0; b < BlocksOf(s); ++b) {
      // Blocks before the window were given back: whoever reads through the table leaves the pool.
      const bool is_kept = (b + 1) * kBlockTokens > begin;
      tables.push_back(is_kept ? ids.back() : -(1 << 24));
      ids.pop_back();
      if (is_kept) FillBlock(tables.back(), b * kBlockTokens, begin, end, rng);
    }
    for (int i = 0; i < s.count; ++i) places.push_back({s.first_position + i, table});
  }

  void FillBlock(int block, int base, int begin, int end, Rng& rng) {
    for (int h = 0; h < c.n_kv_heads; ++h) {
      auto* codes = reinterpret_cast<int16_t*>(&pool[static_cast<size_t>(
          block * block_bytes + layer_bytes + h * KvHeadBytes(c.d_head))]);
      auto* scales = reinterpret_cast<float*>(codes + 2 * kBlockTokens * c.d_head);
      for (int i = 0; i < kBlockTokens; ++i) {
        if (base + i < begin || base + i >= end) continue;
        scales[i] = std::fabs(rng.Normal()) / 32767.0f * (rng.OneIn(700) ? 30.0f : 1.0f);
        scales[kBlockTokens + i] = std::fabs(rng.Normal()) / 32767.0f;
        if (rng.OneIn(60)) scales[kBlockTokens + i] = 0x1p-149f;
        if (rng.OneIn(60)) scales[i] = 0.0f;
        if (base + i == c.nan_at) scales[i] = std::nanf("");
      }
    }
  }

  std::vector<float> OnCpu() const {
    std::vector<float> out(q.size(), -77.0f), scratch(kAttendScratch);
    size_t first = 0;
    for (const Sequence& s : c.sequences) {
      hearth::AttendArgs args{};
      args.q = q.data() + first * static_cast<size_t>(stride);
      args.out = out.data() + first * static_cast<size_t>(stride);
      args.pool = pool.data();
      args.table = tables.data() + places[first].table;
      args.sinks = c.sinks ? sinks.data() : nullptr;
      args.scratch = scratch.data();
      args.q_stride = stride;
      args.block_bytes = block_bytes;
      args.layer_offset = layer_bytes;
      args.count = s.count;
      args.first_position = s.first_position;
      args.window = c.window;
      args.n_heads = c.group * c.n_kv_heads;
      args.n_kv_heads = c.n_kv_heads;
      args.d_head = c.d_head;
      args.scale = 1.0f / std::sqrt(static_cast<float>(c.d_head));
      ScalarKernels().attend(args, 0, c.n_kv_heads);
      first += static_cast<size_t>(s.count);
    }
    return out;
  }

  AttendCase c;
  int64_t layer_bytes, block_bytes, stride;
  std::vector<uint8_t> pool;
  std::vector<int32_t> tables;
  std::vector<TokenPlace> places;
  std::vector<float> q, sinks;
};

}  // namespace hearth::cuda
