// SPDX-License-Identifier: Apache-2.0
// What is written against the plain words of docs/numerics.md, by way of the C library's rounding.
#include "cpu/kv_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "cpu/kernels.h"
#include "testing/kernels.h"
#include "testing/rounds.h"

namespace hearth {
namespace {

using testing::Rng;
using testing::SameFloat;

struct Head {
  std::vector<int> codes;
  float scale;
};
Head Expected(const float* values, int n, float largest) {
  Head head{std::vector<int>(static_cast<size_t>(n), 0), 0.0f};
  float top = 0.0f;
  for (int i = 0; i < n; ++i) {
    if (!std::isfinite(values[i])) {
      head.scale = std::numeric_limits<float>::quiet_NaN();
      return head;
    }
    top = std::max(top, std::fabs(values[i]));
  }
  head.scale = top / largest;
  if (top < 0x1p-100f) return head;
  for (int i = 0; i < n; ++i) {
    head.codes[static_cast<size_t>(i)] =
        static_cast<int>(std::nearbyint(values[i] * (largest / top)));
  }
  return head;
}

std::vector<float> Values(int n, Rng& rng) {
  std::vector<float> values = rng.Normals(n);
  const int kind = rng.Int(0, 7);
  const float size = std::ldexp(1.0f, rng.Int(-148, 120));
  for (float& value : values) {
    if (kind == 0) value = rng.AnyFinite();
    if (kind == 1) value *= size;
    // Ties: halves of what the scale 1 rounds to.
    if (kind == 2) value = static_cast<float>(rng.Int(-65534, 65534)) * 0.5f;
    if (kind == 3) value = rng.OneIn(2) ? 0.0f : -0.0f;
  }
  if (kind == 2) values[0] = 32767.0f;
  if (kind == 4) values[static_cast<size_t>(rng.Int(0, n - 1))] = std::nanf("");
  if (kind == 5)
    values[static_cast<size_t>(rng.Int(0, n - 1))] = -std::numeric_limits<float>::infinity();
  return values;
}

TEST(KvMemory, LayersThatLookBackEquallyFarShareAGroup) {
  ModelSpec spec;
  spec.n_kv_heads = 2;
  spec.d_head = 64;
  for (const int window : {128, 0, 32, 128, 0, 0}) spec.layers.push_back({.window = window});
  auto memory = KvMemory::Make(spec, std::vector<int>{5, 3, 4});
  ASSERT_TRUE(memory.ok());
  const int64_t one = 2 * KvHeadBytes(64);
  const KvLayout& layout = memory->layout();
  ASSERT_TRUE(CheckLayout(layout).ok());
  ASSERT_EQ(layout.num_groups(), 3);
  EXPECT_EQ(layout.group(0).window, 0);
  EXPECT_EQ(layout.group(0).block_bytes, 3 * one);
  EXPECT_EQ(layout.group(1).window, 128);
  EXPECT_EQ(layout.group(1).block_bytes, 2 * one);
  EXPECT_EQ(layout.group(2).window, 32);
  EXPECT_EQ(layout.group(2).num_blocks, 4);
  EXPECT_EQ(memory->layer(3).group, 1);
  EXPECT_EQ(memory->layer(3).offset, one);
  EXPECT_EQ(memory->layer(5).group, 0);
  EXPECT_EQ(memory->layer(5).offset, 2 * one);
  EXPECT_EQ(memory->block(2, 3).size(), static_cast<size_t>(one));
}

template <class Number>
void CheckWriting(KvCode code) {
  constexpr auto kLargest = static_cast<float>(std::numeric_limits<Number>::max());
  Rng rng(41);
  for (int round = 0; round < Rounds(300); ++round) {
    ModelSpec spec;
    spec.n_kv_heads = rng.Int(1, 3);
    spec.d_head = rng.OneIn(3) ? rng.Int(1, kMaxHeadDim) : 64;
    spec.layers.resize(2);
    auto memory = KvMemory::Make(spec, std::vector<int>{3}, code);
    ASSERT_TRUE(memory.ok());
    const int n = spec.d_head, position = rng.Int(0, 100), lane = position % kBlockTokens;
    std::vector<float> k, v;
    for (int head = 0; head < spec.n_kv_heads; ++head) {
      for (const float value : Values(n, rng)) k.push_back(value);
      for (const float value : Values(n, rng)) v.push_back(value);
    }
    const std::span<std::byte> block = memory->block(0, 2);
    std::fill(block.begin(), block.end(), std::byte{0x5a});
    memory->Write(1, 2, position, k.data(), v.data());
    const std::byte* at = block.data() + memory->layer(1).offset;
    for (int head = 0; head < spec.n_kv_heads; ++head, at += KvHeadBytes(n, sizeof(Number))) {
      const Head keys = Expected(&k[static_cast<size_t>(head * n)], n, kLargest);
      const Head values = Expected(&v[static_cast<size_t>(head * n)], n, kLargest);
      const bool bytes = sizeof(Number) == 1;
      const int dims = bytes ? (n + 3) / 4 * 4 : n;
      std::vector<Number> codes(static_cast<size_t>(2 * kBlockTokens * dims));
      std::memcpy(codes.data(), at, codes.size() * sizeof(Number));
      float scales[2 * kBlockTokens];
      std::memcpy(scales, at + codes.size() * sizeof(Number), sizeof scales);
      for (int d = 0; d < dims; ++d) {
        const int key = bytes ? d / 4 * 64 + lane * 4 + d % 4 : d * kBlockTokens + lane;
        const int value = bytes ? lane / 4 * dims * 4 + d * 4 + lane % 4 : lane * dims + d;
        const int k_code = d < n ? keys.codes[static_cast<size_t>(d)] : 0;
        const int v_code = d < n ? values.codes[static_cast<size_t>(d)] : 0;
        ASSERT_EQ(codes[static_cast<size_t>(key)],
                  static_cast<Number>(bytes ? k_code + 128 : k_code));
        ASSERT_EQ(codes[static_cast<size_t>(kBlockTokens * dims + value)], v_code);
      }
      ASSERT_TRUE(SameFloat(scales[lane], keys.scale));
      ASSERT_TRUE(SameFloat(scales[kBlockTokens + lane], values.scale));
      // A neighbour's codes are left alone.
      const int neighbour = (lane + 1) % kBlockTokens * (bytes ? 4 : 1);
      ASSERT_EQ(codes[static_cast<size_t>(neighbour)], static_cast<Number>(0x5a5a));
    }
  }
}

TEST(KvMemory, WritesWhatTheDefinitionSays) {
  CheckWriting<int16_t>(KvCode::kInt16);
  CheckWriting<int8_t>(KvCode::kInt8);
}

TEST(KvMemory, Int8TakesHalfAndItsScales) {
  ModelSpec spec;
  spec.n_kv_heads = 8;
  spec.d_head = 64;
  spec.layers.resize(3);
  const KvLayout wide = KvLayoutOf(spec, {}), narrow = KvLayoutOf(spec, {}, KvCode::kInt8);
  // Two scales of four bytes for each token and head.
  const int64_t scales = int64_t{3} * 8 * kBlockTokens * 8;
  EXPECT_EQ(narrow.group(0).block_bytes - scales, (wide.group(0).block_bytes - scales) / 2);
  EXPECT_EQ(KvLayersOf(spec, narrow)[1].offset, narrow.group(0).block_bytes / 3);
}

TEST(KvMemory, TakesItsMemoryAtOnceWhenAsked) {
  ModelSpec spec;
  spec.n_kv_heads = 2;
  spec.d_head = 64;
  spec.layers.resize(2);
  auto memory = KvMemory::Make(spec, std::vector<int>{3000});
  ASSERT_TRUE(memory.ok());
  ThreadPool pool(2);
  ASSERT_TRUE(memory->Reserve(pool).ok());
  const auto bytes = static_cast<size_t>(memory->layout().total_bytes());
  std::vector<unsigned char> pages((bytes + 4095) / 4096);
  ASSERT_EQ(::mincore(memory->pool(0), bytes, pages.data()), 0);
  const auto is_there = [](unsigned char page) { return (page & 1) != 0; };
  EXPECT_TRUE(std::all_of(pages.begin(), pages.end(), is_there));
}

}  // namespace
}  // namespace hearth
