// SPDX-License-Identifier: Apache-2.0
// Attention of every table against the scalar one, bit by bit, over blocks placed at random in a
// pool full of rubbish.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "cpu/attend_run.h"
#include "cpu/kernels.h"
#include "cpu/kv_memory.h"
#include "testing/kernels.h"
#include "testing/rounds.h"

namespace hearth {
namespace {

using testing::Difference;
using testing::IsaTestName;
using testing::Rng;

class Attend : public testing::KernelsOfIsa {};
INSTANTIATE_TEST_SUITE_P(All, Attend, ::testing::ValuesIn(testing::kVectorIsas), IsaTestName);

constexpr KvCode kBothCodes[] = {KvCode::kInt16, KvCode::kInt8};

struct Shape {
  int d_head, group, n_kv_heads, count, first_position, window;
  bool sinks;
};
std::string Text(const Shape& s) {
  char text[160];
  std::snprintf(text, sizeof text, "d_head %d, group %d x %d, %d tokens from %d, window %d, %s",
                s.d_head, s.group, s.n_kv_heads, s.count, s.first_position, s.window,
                s.sinks ? "sinks" : "no sinks");
  return text;
}

// A sequence's keys and values in two layers' worth of blocks; layer 1 is the one read. They are
// int16 or int8, which is drawn where it is not said.
struct Scene {
  Scene(const Shape& s, Rng& rng, KvCode kv_code);
  Scene(const Shape& s, Rng& rng) : Scene(s, rng, rng.OneIn(2) ? KvCode::kInt8 : KvCode::kInt16) {}
  std::vector<float> Run(const KernelTable& table, int kv_begin, int kv_end) const;
  // The same, cut between spans into calls of `spans` each, taken from the last to the first.
  std::vector<float> RunCut(const KernelTable& table, int spans) const;
  AttendArgs Args(float* out, float* scratch) const;
  AttendKernel KernelOf(const KernelTable& kernels) const {
    return code == KvCode::kInt8 ? kernels.attend_int8 : kernels.attend;
  }
  int code_bytes() const { return code == KvCode::kInt8 ? 1 : 2; }
  int num_code_bytes() const {  // of one KV head in a block
    return 2 * kBlockTokens * KvDims(shape.d_head, code_bytes()) * code_bytes();
  }
  // What lies of one KV head in the block of a position.
  uint8_t* HeadAt(int position, int head) {
    const int64_t block = table[static_cast<size_t>(position / kBlockTokens)];
    return &pool[static_cast<size_t>(block * block_bytes + layer_bytes +
                                     head * KvHeadBytes(shape.d_head, code_bytes()))];
  }

  Shape shape;
  KvCode code;
  int64_t block_bytes, layer_bytes;
  std::vector<float> q, sinks;
  std::vector<uint8_t> pool;
  std::vector<int32_t> table;
  int64_t stride;
};

void WriteHead(uint8_t* at, int num_code_bytes, float largest, int first, int last, Rng& rng) {
  for (int i = 0; i < num_code_bytes; ++i) at[i] = rng.Byte();
  auto* scales = reinterpret_cast<float*>(at + num_code_bytes);
  const float size = rng.OneIn(10) ? 30.0f : 1.0f;
  for (int lane = first; lane <= last; ++lane) {
    scales[lane] = std::fabs(rng.Normal()) * size / largest;
    scales[kBlockTokens + lane] = std::fabs(rng.Normal()) / largest;
    if (rng.OneIn(40)) scales[kBlockTokens + lane] = 0x1p-149f;
    if (rng.OneIn(40)) scales[lane] = 0.0f;
  }
}

Scene::Scene(const Shape& s, Rng& rng, KvCode kv_code) : shape(s), code(kv_code) {
  const int end = s.first_position + s.count, n_heads = s.group * s.n_kv_heads;
  const int begin = s.window > 0 ? std::max(0, s.first_position - s.window + 1) : 0;
  const int num_blocks = (end + kBlockTokens - 1) / kBlockTokens;
  layer_bytes = s.n_kv_heads * KvHeadBytes(s.d_head, code_bytes());
  block_bytes = 2 * layer_bytes;
  stride = (n_heads * s.d_head + 15) / 16 * 16 + 16;
  q = rng.Normals(static_cast<int>(stride) * s.count, rng.OneIn(8) ? 20.0f : 1.0f);
  sinks = rng.Normals(n_heads, 2);
  // Rubbish everywhere: codes are any bits, scales NaN more often than not.
  pool.resize(static_cast<size_t>(block_bytes * (num_blocks + 2)));
  for (uint8_t& byte : pool) byte = rng.Byte();
  for (size_t i = 0; i + 4 <= pool.size(); i += 4) {
    if (rng.OneIn(3)) std::memset(&pool[i], 0xff, 4);
  }
  std::vector<int32_t> ids(static_cast<size_t>(num_blocks) + 2);
  std::iota(ids.begin(), ids.end(), 0);
  for (size_t i = ids.size() - 1; i > 0; --i) {
    std::swap(ids[i], ids[static_cast<size_t>(rng.Int(0, static_cast<int>(i)))]);
  }
  // Blocks before the window are given back: whoever reads them through the table crashes.
  table.assign(static_cast<size_t>(num_blocks), -(1 << 30));
  for (int b = begin / kBlockTokens; b < num_blocks; ++b) {
    table[static_cast<size_t>(b)] = ids[static_cast<size_t>(b)];
    const int first = std::max(begin - b * kBlockTokens, 0);
    const int last = std::min(end - 1 - b * kBlockTokens, kBlockTokens - 1);
    for (int head = 0; head < s.n_kv_heads; ++head) {
      WriteHead(HeadAt(b * kBlockTokens, head), num_code_bytes(),
                code == KvCode::kInt8 ? 127.0f : 32767.0f, first, last, rng);
    }
  }
}

AttendArgs Scene::Args(float* out, float* scratch) const {
  AttendArgs args{};
  args.q = q.data();
  args.out = out;
  args.pool = pool.data();
  args.table = table.data();
  args.sinks = shape.sinks ? sinks.data() : nullptr;
  args.scratch = scratch;
  args.q_stride = stride;
  args.block_bytes = block_bytes;
  args.layer_offset = layer_bytes;
  args.count = shape.count;
  args.first_position = shape.first_position;
  args.window = shape.window;
  args.n_heads = shape.group * shape.n_kv_heads;
  args.n_kv_heads = shape.n_kv_heads;
  args.d_head = shape.d_head;
  args.scale = 1.0f / std::sqrt(static_cast<float>(shape.d_head));
  return args;
}

std::vector<float> Scene::Run(const KernelTable& kernels, int kv_begin, int kv_end) const {
  std::vector<float> out(q.size(), -77.0f), scratch(kAttendScratch);
  KernelOf(kernels)(Args(out.data(), scratch.data()), kv_begin, kv_end);
  return out;
}

std::vector<float> Scene::RunCut(const KernelTable& kernels, int spans) const {
  std::vector<float> out(q.size(), -77.0f), scratch(kAttendScratch);
  AttendArgs args = Args(out.data(), scratch.data());
  const int begin =
      shape.window > 0 ? std::max(0, shape.first_position - shape.window + 1) / kSpan : 0;
  const int end = (shape.first_position + shape.count - 1) / kSpan + 1;
  std::vector<float> parts(
      static_cast<size_t>((end - begin) * AttendPartFloats(args.count, args.n_heads, args.d_head)),
      -78.0f);
  args.parts = parts.data();
  for (int s = begin + (end - begin - 1) / spans * spans; s >= begin; s -= spans) {
    args.span_begin = s;
    args.span_end = std::min(s + spans, end);
    KernelOf(kernels)(args, 0, shape.n_kv_heads);
  }
  args.span_begin = begin;
  args.span_end = end;
  kernels.merge_spans(args, 0, shape.n_kv_heads);
  return out;
}

Shape RandomShape(Rng& rng) {
  Shape s{};
  s.d_head = 8 * rng.Int(1, rng.OneIn(4) ? 32 : 12);
  if (rng.OneIn(3)) s.d_head = rng.OneIn(2) ? 64 : 128;
  s.group = rng.OneIn(3) ? 8 : rng.Int(1, 8);
  if (rng.OneIn(25)) s.group = 64;
  s.n_kv_heads = rng.Int(1, s.group == 64 ? 1 : 3);
  s.count = rng.OneIn(2) ? 1 : rng.Int(2, 18);
  s.first_position = rng.OneIn(3) ? rng.Int(0, 20) : rng.Int(0, 300);
  if (rng.OneIn(10)) s.first_position = rng.Int(0, 1100);
  if (rng.OneIn(4)) s.first_position = std::max(0, kSpan * rng.Int(1, 2) - rng.Int(0, 18));
  s.window = rng.OneIn(2) ? 0 : (rng.OneIn(2) ? 128 : rng.Int(1, 300));
  s.sinks = rng.OneIn(2);
  return s;
}

TEST_P(Attend, RandomScenes) {
  Rng rng(31);
  for (int i = 0; i < Rounds(250); ++i) {
    const Shape shape = RandomShape(rng);
    const Scene scene(shape, rng);
    const int begin = rng.Int(0, shape.n_kv_heads - 1);
    const int end = rng.Int(begin + 1, shape.n_kv_heads);
    ASSERT_EQ(Difference(scene.Run(ScalarKernels(), begin, end), scene.Run(table(), begin, end)),
              "")
        << "scene " << i << ": " << Text(shape);
  }
}

// Many rows share what is widened; few do not. Every group, with prompts up to what a task holds.
TEST_P(Attend, EveryGroupWithManyTokens) {
  Rng rng(35);
  for (int group = 1; group <= kMaxGroup; group += group < 17 ? 1 : (group < 33 ? 8 : 31)) {
    for (const int count : {2, 3, 5, 18}) {
      const int first = rng.OneIn(2) ? rng.Int(0, 40) : kSpan - rng.Int(0, 20);
      const int d_head = 8 * rng.Int(1, 5);
      const Shape shape{d_head, group, 1, count, first, rng.OneIn(3) ? rng.Int(1, 60) : 0, true};
      for (const KvCode code : kBothCodes) {
        const Scene scene(shape, rng, code);
        ASSERT_EQ(Difference(scene.Run(ScalarKernels(), 0, 1), scene.Run(table(), 0, 1)), "")
            << Text(scene.shape);
      }
    }
  }
}

// Tokens of one call that see nothing of each other's spans.
TEST_P(Attend, WindowsShorterThanACall) {
  Rng rng(38);
  for (const int group : {1, 2, 3, 7, 8}) {
    for (const int window : {1, 2, 7, 16, 20}) {
      for (const KvCode code : kBothCodes) {
        const Scene scene(
            {16, group, 1, 10 + kAttendRows / group, kSpan - rng.Int(0, 12), window, rng.OneIn(2)},
            rng, code);
        ASSERT_EQ(Difference(scene.Run(ScalarKernels(), 0, 1), scene.Run(table(), 0, 1)), "")
            << Text(scene.shape);
      }
    }
  }
}

// Spans may be taken by several calls in any order.
TEST_P(Attend, CutBetweenSpans) {
  Rng rng(36);
  for (int i = 0; i < Rounds(40); ++i) {
    Shape shape = RandomShape(rng);
    shape.group = std::min(shape.group, 8);
    shape.d_head = std::min(shape.d_head, 40);
    shape.first_position = rng.Int(0, 1100);
    if (rng.OneIn(3)) shape.window = rng.Int(200, 900);
    const Scene scene(shape, rng);
    const std::vector<float> want = scene.Run(ScalarKernels(), 0, shape.n_kv_heads);
    const int spans = rng.Int(1, 3);
    ASSERT_EQ(Difference(want, scene.RunCut(table(), spans)), "")
        << "scene " << i << ", cut by " << spans << ": " << Text(shape);
    ASSERT_EQ(Difference(want, scene.RunCut(ScalarKernels(), spans)), "") << Text(shape);
  }
}

// Slices of one sequence, some of them cut between spans, on several threads.
TEST_P(Attend, SharedOutOverThreads) {
  Rng rng(37);
  ThreadPool threads(3);
  AttendRun wide(table(), threads, KvCode::kInt16), narrow(table(), threads, KvCode::kInt8);
  for (int i = 0; i < Rounds(12); ++i) {
    const Scene scene({8 * rng.Int(1, 3), rng.Int(1, 3), rng.Int(1, 3), rng.Int(1, 24),
                       rng.Int(0, 2600), rng.OneIn(3) ? rng.Int(1, 2000) : 0, rng.OneIn(2)},
                      rng);
    std::vector<AttendSlice> slices;
    for (int t = 0; t < scene.shape.count;) {
      const int count = std::min(rng.OneIn(2) ? 1 : rng.Int(0, 20), scene.shape.count - t);
      slices.push_back({t, count, scene.shape.first_position + t, scene.table.data()});
      t += count;
    }
    std::vector<float> out(scene.q.size(), -77.0f);
    (scene.code == KvCode::kInt8 ? narrow : wide).Run(scene.Args(out.data(), nullptr), slices);
    ASSERT_EQ(Difference(scene.Run(ScalarKernels(), 0, scene.shape.n_kv_heads), out), "")
        << "scene " << i << ", " << slices.size() << " slices: " << Text(scene.shape);
  }
}

// Sequences for which nothing is reserved for merging stay whole, and nothing else changes.
TEST_P(Attend, WithoutRoomForPiecesNothingIsCut) {
  Rng rng(38);
  ThreadPool threads(3);
  const int64_t each = (2600 / kSpan + 1) * AttendPartFloats(1, 4, 64);
  for (const int64_t room : {int64_t{0}, each, 2 * each, 3 * each}) {
    const Scene scene({64, 2, 2, 2, 2600, 0, false}, rng);
    const std::vector<AttendSlice> slices = {
        {0, 1, scene.shape.first_position, scene.table.data()},
        {1, 1, scene.shape.first_position + 1, scene.table.data()}};
    ScratchArena counted;
    AttendRun(table(), threads, scene.code).Reserve(counted, threads.size(), room);
    Result<ScratchArena> arena = ScratchArena::Make(counted.used_bytes());
    ASSERT_TRUE(arena.ok());
    AttendRun run(table(), threads, scene.code);
    run.Reserve(*arena, threads.size(), room);
    std::vector<float> out(scene.q.size(), -77.0f);
    run.Run(scene.Args(out.data(), nullptr), slices);
    ASSERT_EQ(Difference(scene.Run(ScalarKernels(), 0, scene.shape.n_kv_heads), out), "") << room;
    EXPECT_EQ(run.used_part_floats(), std::min(room, 2 * each));
  }
}

TEST_P(Attend, EveryHeadSize) {
  Rng rng(32);
  std::vector<int> sizes = {1, 5, 20, 50, 100, 250};  // odd ones may be slow, not wrong
  for (int d_head = 8; d_head <= kMaxHeadDim; d_head += 8) sizes.push_back(d_head);
  for (const int d_head : sizes) {
    for (const KvCode code : kBothCodes) {
      const Scene scene({d_head, 1 + d_head / 8 % 8, 2, 3, 270, d_head % 16 == 0 ? 0 : 40, true},
                        rng, code);
      ASSERT_EQ(Difference(scene.Run(ScalarKernels(), 0, 2), scene.Run(table(), 0, 2)), "")
          << Text(scene.shape);
    }
  }
}

// How a prompt is cut into calls changes nothing.
TEST_P(Attend, OneByOneEqualsTogether) {
  Rng rng(33);
  for (const KvCode code : kBothCodes) {
    const Scene scene({64, 8, 2, 18, 245, 128, true}, rng, code);
    const std::vector<float> together = scene.Run(table(), 0, 2);
    for (int t = 0; t < 18; ++t) {
      Scene one = scene;
      one.q.assign(scene.q.begin() + t * scene.stride, scene.q.begin() + (t + 1) * scene.stride);
      one.shape.count = 1;
      one.shape.first_position += t;
      const std::vector<float> alone = one.Run(table(), 0, 2);
      ASSERT_EQ(Difference(together.data() + t * scene.stride, alone.data(), alone.size()), "")
          << "token " << t;
    }
  }
}

// One head over its codes in doubles, as attention is meant: no spans, no whole numbers.
std::vector<double> RealAttention(const std::vector<float>& q, const std::vector<float>& k,
                                  const std::vector<float>& v, int positions) {
  const size_t n = q.size();
  std::vector<double> weights, out(n);
  double sum = 0;
  for (size_t j = 0; j < static_cast<size_t>(positions); ++j) {
    double score = 0;
    for (size_t d = 0; d < n; ++d) score += double{q[d]} * double{k[j * n + d]};
    weights.push_back(std::exp(score / std::sqrt(static_cast<double>(n))));
    sum += weights[j];
  }
  for (size_t j = 0; j < weights.size(); ++j) {
    for (size_t d = 0; d < n; ++d) out[d] += weights[j] / sum * double{v[j * n + d]};
  }
  return out;
}

// K and V that int8 holds without a rounding, written by KvMemory: what is left are the roundings
// of queries and weights to 16 bits.
TEST_P(Attend, Int8IsNearTheRealNumbers) {
  Rng rng(39);
  for (const int d_head : {1, 6, 8, 50, 64, 80, 128, 256}) {
    const int positions = 300, blocks = (positions + kBlockTokens - 1) / kBlockTokens;
    ModelSpec spec;
    spec.n_kv_heads = 1;
    spec.d_head = d_head;
    spec.layers.resize(1);
    auto memory = KvMemory::Make(spec, std::vector<int>{blocks}, KvCode::kInt8);
    ASSERT_TRUE(memory.ok());
    std::vector<float> q = rng.Normals(d_head), k, v;
    for (int j = 0; j < positions; ++j) {
      for (int d = 0; d < d_head; ++d) {
        k.push_back(static_cast<float>(d == 0 ? 127 : rng.Int(-127, 127)) / 64.0f);
        v.push_back(static_cast<float>(d == 0 ? -127 : rng.Int(-127, 127)) / 64.0f);
      }
      memory->Write(0, j / kBlockTokens, j, &k[k.size() - static_cast<size_t>(d_head)],
                    &v[v.size() - static_cast<size_t>(d_head)]);
    }
    std::vector<int32_t> blocks_in_order(static_cast<size_t>(blocks));
    std::iota(blocks_in_order.begin(), blocks_in_order.end(), 0);
    const std::vector<double> want = RealAttention(q, k, v, positions);
    for (const KernelTable* kernels : {&ScalarKernels(), &table()}) {
      std::vector<float> out(q.size()), scratch(kAttendScratch);
      AttendArgs args{};
      args.q = q.data();
      args.out = out.data();
      args.pool = memory->pool(0);
      args.table = blocks_in_order.data();
      args.scratch = scratch.data();
      args.block_bytes = memory->layout().group(0).block_bytes;
      args.count = args.n_heads = args.n_kv_heads = 1;
      args.first_position = positions - 1;
      args.d_head = d_head;
      args.scale = 1.0f / std::sqrt(static_cast<float>(d_head));
      kernels->attend_int8(args, 0, 1);
      for (size_t d = 0; d < out.size(); ++d) ASSERT_NEAR(double{out[d]}, want[d], 5e-4) << d_head;
    }
  }
}

// A query that is no number spoils its own head; a key or value that is none, whoever sees it.
TEST_P(Attend, WhatIsNoNumberStaysWithWhoSawIt) {
  Rng rng(34);
  for (int i = 0; i < Rounds(40); ++i) {
    const Shape shape{64, 4, 2, 5, rng.Int(0, 500), rng.OneIn(2) ? 0 : 17, rng.OneIn(2)};
    Scene scene(shape, rng);
    const float bad = rng.OneIn(2) ? std::numeric_limits<float>::quiet_NaN()
                                   : std::numeric_limits<float>::infinity();
    const int token = rng.Int(0, 4), head = rng.Int(0, 7);
    scene.q[static_cast<size_t>(token * scene.stride + head * 64 + rng.Int(0, 63))] = bad;
    const std::vector<float> out = scene.Run(table(), 0, 2);
    ASSERT_EQ(Difference(scene.Run(ScalarKernels(), 0, 2), out), "") << Text(shape);
    for (int t = 0; t < 5; ++t) {
      for (int h = 0; h < 8; ++h) {
        const float value = out[static_cast<size_t>(t * scene.stride + h * 64 + 63)];
        ASSERT_EQ(std::isnan(value), t == token && h == head)
            << Text(shape) << " " << t << " " << h;
      }
    }
    // The newest value of KV head 1, which only the last token sees.
    const int position = shape.first_position + 4;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    uint8_t* at = scene.HeadAt(position, 1) + scene.num_code_bytes();
    std::memcpy(at + 4 * (position % kBlockTokens + (i % 2 == 0 ? kBlockTokens : 0)), &nan, 4);
    const std::vector<float> spoilt = scene.Run(table(), 0, 2);
    ASSERT_EQ(Difference(scene.Run(ScalarKernels(), 0, 2), spoilt), "") << Text(shape);
    const auto last = static_cast<size_t>(4 * scene.stride);
    EXPECT_EQ(Difference(out.data(), spoilt.data(), last + 4 * 64), "") << "who did not see it";
    EXPECT_TRUE(std::isnan(spoilt[last + 4 * 64]));
  }
}

}  // namespace
}  // namespace hearth
