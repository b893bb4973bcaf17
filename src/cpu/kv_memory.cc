// SPDX-License-Identifier: Apache-2.0
#include "cpu/kv_memory.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>

#include "base/check.h"
#include "cpu/kernels.h"
#include "cpu/kv_int8.h"
#include "platform/missing.h"

namespace hearth {

namespace {

int64_t LayerBytes(const ModelSpec& spec, KvCode code) {
  return spec.n_kv_heads * KvHeadBytes(spec.d_head, code == KvCode::kInt8 ? 1 : 2);
}

}  // namespace

KvLayout KvLayoutOf(const ModelSpec& spec, std::span<const int> blocks, KvCode code) {
  KvLayout layout;
  layout.block_tokens = kBlockTokens;
  layout.code = code;
  // The group that sees everything comes first.
  std::vector<int> windows;
  for (const LayerSpec& layer : spec.layers) windows.push_back(layer.window);
  std::ranges::stable_sort(windows, {}, [](int window) { return window > 0; });
  const int64_t layer_bytes = LayerBytes(spec, code);
  for (const int window : windows) {
    auto group = std::ranges::find(layout.groups, window, &KvGroupLayout::window);
    if (group == layout.groups.end()) {
      group = layout.groups.insert(group, {.window = window});
    }
    group->block_bytes += layer_bytes;
  }
  HEARTH_CHECK(blocks.size() <= 1 || blocks.size() == layout.groups.size());
  for (size_t i = 0; i < layout.groups.size() && !blocks.empty(); ++i) {
    layout.groups[i].num_blocks = blocks[blocks.size() == 1 ? 0 : i];
  }
  return layout;
}

std::vector<KvMemory::Layer> KvLayersOf(const ModelSpec& spec, const KvLayout& layout) {
  const int64_t layer_bytes = LayerBytes(spec, layout.code);
  std::vector<int64_t> offsets(layout.groups.size());
  std::vector<KvMemory::Layer> layers;
  for (const LayerSpec& layer : spec.layers) {
    const auto at = std::ranges::find(layout.groups, layer.window, &KvGroupLayout::window);
    const auto group = static_cast<int>(at - layout.groups.begin());
    int64_t& offset = offsets[static_cast<size_t>(group)];
    layers.push_back({group, offset, layer.window});
    offset += layer_bytes;
  }
  return layers;
}

Result<KvMemory> KvMemory::Make(const ModelSpec& spec, std::span<const int> blocks, KvCode code) {
  KvMemory memory(spec.n_kv_heads, spec.d_head);
  memory.layout_ = KvLayoutOf(spec, blocks, code);
  memory.layers_ = KvLayersOf(spec, memory.layout_);
  for (const KvGroupLayout& group : memory.layout_.groups) {
    const int64_t bytes = group.block_bytes * group.num_blocks;
    memory.pools_.push_back(nullptr);
    if (bytes == 0) continue;
    HEARTH_ASSIGN(LargeBuffer buffer, LargeBuffer::Make(static_cast<size_t>(bytes)));
    memory.pools_.back() = reinterpret_cast<uint8_t*>(buffer.bytes().data());
    memory.buffers_.push_back(std::move(buffer));
  }
  return memory;
}

void KvMemory::Interleave(std::span<const int> nodes) {
  if (nodes.size() < 2) return;
  for (LargeBuffer& buffer : buffers_) {
    if (!buffer.Prefer(0, buffer.bytes().size(), nodes)) NoteMissing(kNoMemoryNodes);
  }
}

Status KvMemory::Reserve(ThreadPool& pool) {
  // Pieces that a thread clears in a few milliseconds.
  constexpr size_t kPiece = size_t{64} << 20;
  std::atomic<bool> is_missing{false};
  for (LargeBuffer& buffer : buffers_) {
    const size_t size = buffer.bytes().size();
    pool.RunUneven(static_cast<int>((size + kPiece - 1) / kPiece), [&](int piece, int) {
      const size_t begin = static_cast<size_t>(piece) * kPiece;
      if (!is_missing && !buffer.Take(begin, std::min(kPiece, size - begin)).ok())
        is_missing = true;
    });
  }
  if (!is_missing) return Status();
  return Error(Code::kExhausted,
               "the system does not have the %.2f GiB for the KV cache; lower --kv-memory",
               static_cast<double>(layout_.total_bytes()) / (1 << 30));
}

std::span<std::byte> KvMemory::block(int group, int id) {
  const KvGroupLayout& layout = layout_.group(group);
  HEARTH_CHECK(id >= 0 && id < layout.num_blocks);
  return {reinterpret_cast<std::byte*>(pool(group) + id * layout.block_bytes),
          static_cast<size_t>(layout.block_bytes)};
}

namespace {

// One head to whole numbers and a scale, rounded to nearest even. A head that holds no number gets
// a NaN scale, which spoils every later token of its own sequence and nothing else. Written so that
// a compiler makes vectors of it: no call of the C library, no floating-point comparison per value.
template <class Number>
float QuantiseHead(const float* values, int n, Number* codes) {
  constexpr auto kMax = static_cast<float>(std::numeric_limits<Number>::max());
  // Adding and taking away 1.5 * 2^23 rounds a small float to the nearest integer, ties to even.
  constexpr float kRound = 12582912.0f;
  int32_t top_bits = 0;  // magnitudes compare as integers, and NaN above all
  for (int i = 0; i < n; ++i) {
    top_bits = std::max(top_bits, std::bit_cast<int32_t>(values[i]) & 0x7fffffff);
  }
  if (top_bits >= 0x7f800000) {
    std::fill_n(codes, n, Number{0});
    return std::numeric_limits<float>::quiet_NaN();
  }
  const auto top = std::bit_cast<float>(top_bits);
  // Below 2^-100 the inverse would overflow; such a head is as good as zero.
  const float inverse = top >= 0x1p-100f ? kMax / top : 0.0f;
  for (int i = 0; i < n; ++i) {
    codes[i] = static_cast<Number>(static_cast<int32_t>((values[i] * inverse + kRound) - kRound));
  }
  return top / kMax;
}

// K lies transposed, one row of 16 positions per dimension, so that a kernel loads the same
// dimension of 16 keys at once; V lies position by position.
void WriteHead(const float* k, const float* v, int n, int lane, uint8_t* at, int16_t* keys) {
  auto* codes = reinterpret_cast<int16_t*>(at);
  auto* scales = reinterpret_cast<float*>(codes + 2 * kBlockTokens * n);
  scales[lane] = QuantiseHead(k, n, keys);
  for (int d = 0; d < n; ++d) codes[d * kBlockTokens + lane] = keys[d];
  scales[kBlockTokens + lane] = QuantiseHead(v, n, codes + (kBlockTokens + lane) * n);
}

// As kv_int8.h says. Dimensions that fill up the last four are zero.
void WriteHead(const float* k, const float* v, int n, int lane, uint8_t* at, int8_t* codes) {
  const int dims = KvDims(n, 1);
  uint8_t* values = at + kBlockTokens * dims;
  auto* scales = reinterpret_cast<float*>(values + kBlockTokens * dims);
  std::fill(codes + n, codes + dims, int8_t{0});
  scales[lane] = QuantiseHead(k, n, codes);
  for (int d = 0; d < dims; ++d) {
    at[Int8KeyAt(d, lane)] = static_cast<uint8_t>(codes[d] + kInt8KeyZero);
  }
  scales[kBlockTokens + lane] = QuantiseHead(v, n, codes);
  for (int d = 0; d < dims; ++d) {
    values[Int8ValueAt(dims, d, lane)] = static_cast<uint8_t>(codes[d]);
  }
}

}  // namespace

template <class Number>
void KvMemory::WriteAs(int layer, int block, int position, Heads heads, const float* k,
                       const float* v) {
  const Layer& where = layers_[static_cast<size_t>(layer)];
  const int lane = position % kBlockTokens;
  uint8_t* at = pool(where.group) + block * layout_.group(where.group).block_bytes + where.offset;
  Number codes[kMaxHeadDim];
  for (int head = heads.begin; head < heads.end; ++head) {
    WriteHead(k + head * d_head_, v + head * d_head_, d_head_, lane,
              at + head * KvHeadBytes(d_head_, sizeof(Number)), codes);
  }
}

void KvMemory::Write(int layer, int block, int position, Heads heads, const float* k,
                     const float* v) {
  if (layout_.code == KvCode::kInt8) return WriteAs<int8_t>(layer, block, position, heads, k, v);
  WriteAs<int16_t>(layer, block, position, heads, k, v);
}

void KvMemory::Write(int layer, int block, int position, const float* k, const float* v) {
  Write(layer, block, position, {0, n_kv_heads_}, k, v);
}

}  // namespace hearth
