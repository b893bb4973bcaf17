// SPDX-License-Identifier: Apache-2.0
// Attention between two products in one launch: rope, K and V, spans, their merge, quantising.
#include "cuda/decode.h"

#include <algorithm>

#include "cpu/kv_memory.h"
#include "proof/attend_scene.h"
#include "proof/check_parts.h"

namespace hearth::cuda {
namespace {

struct DecodeCase {
  AttendCase scene;  // one token of each sequence
  int n_dims;
  bool neighbours, norms;
  int strip;  // 0: the row is not quantised
};

// q, k and v as they come out of their products, and what rope needs.
struct Projections {
  Projections(const DecodeCase& c, int tokens, Rng& rng)
      : heads(c.scene.group * c.scene.n_kv_heads),
        q(rng.Normals((heads * c.scene.d_head + 16) * tokens)),
        k(RowsOfKinds(rng, tokens, c.scene.n_kv_heads * c.scene.d_head, rng.Int(0, 1))),
        v(RowsOfKinds(rng, tokens, c.scene.n_kv_heads * c.scene.d_head, rng.Int(0, 1))),
        norm(rng.Normals(2 * c.scene.d_head)),
        cos(rng.Normals(tokens * c.n_dims / 2)),
        sin(rng.Normals(tokens * c.n_dims / 2)) {}
  template <class Place>
  RopeArgs Args(const DecodeCase& c, Place&& place) {
    RopeArgs args{};
    args.q = place(q);
    args.k = place(k);
    args.v = place(v);
    if (c.norms) args.q_norm = place(norm);
    if (c.norms) args.k_norm = args.q_norm + c.scene.d_head;
    args.cos = place(cos);
    args.sin = place(sin);
    args.q_stride = heads * c.scene.d_head + 16;
    args.kv_stride = c.scene.n_kv_heads * c.scene.d_head;
    args.n_heads = heads;
    args.n_kv_heads = c.scene.n_kv_heads;
    args.d_head = c.scene.d_head;
    args.n_dims = c.n_dims;
    args.neighbours = c.neighbours ? 1 : 0;
    args.eps = 1e-6f;
    return args;
  }
  int heads;
  std::vector<float> q, k, v, norm, cos, sin;
};

// The scene after the CPU's rope: q turned, K and V of each token in the pool.
void TurnOnCpu(const DecodeCase& c, const RopeArgs& host, Scene& scene) {
  const KernelTable& cpu = ScalarKernels();
  const AttendCase& shape = c.scene;
  const int num_blocks[] = {
      static_cast<int>(static_cast<int64_t>(scene.pool.size()) / scene.block_bytes)};
  ModelSpec spec;
  spec.n_heads = host.n_heads;
  spec.n_kv_heads = shape.n_kv_heads;
  spec.d_head = shape.d_head;
  spec.layers.resize(2);
  Result<KvMemory> kv = KvMemory::Make(spec, num_blocks);
  std::memcpy(kv->pool(0), scene.pool.data(), scene.pool.size());
  for (size_t t = 0; t < scene.places.size(); ++t) {
    const auto at = static_cast<int64_t>(t);
    const auto turn = [&](float* head, const float* norm) {
      if (norm != nullptr) cpu.rms_norm(head, norm, host.eps, shape.d_head, head);
      const int64_t turns = at * (c.n_dims / 2);
      cpu.rope(head, host.cos + turns, host.sin + turns, c.n_dims, c.neighbours);
    };
    std::copy_n(host.q + at * host.q_stride, host.q_stride, scene.q.begin() + at * host.q_stride);
    for (int h = 0; h < host.n_heads; ++h) {
      turn(&scene.q[static_cast<size_t>(at * host.q_stride + h * shape.d_head)], host.q_norm);
    }
    std::vector<float> k(host.k + at * host.kv_stride, host.k + (at + 1) * host.kv_stride);
    for (int h = 0; h < shape.n_kv_heads; ++h) turn(k.data() + h * shape.d_head, host.k_norm);
    const TokenPlace& place = scene.places[t];
    const auto entry = static_cast<size_t>(place.table + place.position / kBlockTokens);
    kv->Write(1, scene.tables[entry], place.position, k.data(), host.v + at * host.kv_stride);
  }
  std::memcpy(scene.pool.data(), kv->pool(0), scene.pool.size());
}

int MostSpans(const Scene& scene) {
  int most = 1;
  for (const TokenPlace& place : scene.places) {
    most = std::max(most, SpansOf(place.position, scene.c.window));
  }
  return most;
}

DecodeArgs ArgsOf(const DecodeCase& c, const Scene& scene, Projections& from,
                  DeviceMemory& memory) {
  const AttendCase& shape = c.scene;
  const size_t tokens = scene.places.size();
  const int max_spans = MostSpans(scene) + 1;  // one that nobody has
  DecodeArgs args{};
  args.rope = from.Args(c, [&](auto& values) { return memory.Copy(values); });
  args.rope.places = memory.Copy(scene.places);
  args.rope.kv = {memory.Copy(scene.pool), memory.Copy(scene.tables), scene.block_bytes,
                  scene.layer_bytes};
  args.attend.places = args.rope.places;
  args.attend.kv = args.rope.kv;
  args.attend.parts = memory.Make<float>(tokens * static_cast<size_t>(from.heads * max_spans) *
                                         static_cast<size_t>(shape.d_head + 2));
  args.attend.window = shape.window;
  args.attend.n_heads = from.heads;
  args.attend.n_kv_heads = shape.n_kv_heads;
  args.attend.d_head = shape.d_head;
  args.attend.max_spans = max_spans;
  args.attend.scale = 1.0f / std::sqrt(static_cast<float>(shape.d_head));
  args.combine = {args.attend.parts,
                  args.rope.places,
                  shape.sinks ? memory.Copy(scene.sinks) : nullptr,
                  memory.Copy(std::vector<float>(scene.q.size(), -77.0f)),
                  scene.stride,
                  shape.window,
                  from.heads,
                  shape.d_head,
                  max_spans};
  return args;
}

std::string CheckOneDecode(Machine& machine, const DecodeCase& c, Rng& rng) {
  constexpr int kFirstRow = 2;
  Scene scene(c.scene, rng);
  const auto tokens = static_cast<int>(scene.places.size());
  const int width = c.scene.group * c.scene.n_kv_heads * c.scene.d_head;
  Projections from(c, tokens, rng);
  DeviceMemory memory(machine);
  DecodeArgs args = ArgsOf(c, scene, from, memory);
  ActBuffer buffer;
  const Activations& want = buffer.Shape(tokens + kFirstRow, width, std::max(c.strip, kSuper));
  const std::vector<float> none(static_cast<size_t>(width));
  for (int t = 0; t < kFirstRow; ++t) ScalarKernels().quantise(none.data(), want, t);
  if (c.strip > 0) {
    args.act = ActRowsLike(want, memory, false);
    CopyRows(want, args.act);
  }
  const int tiles = (c.scene.group + kAttendHeads - 1) / kAttendHeads;
  const int blocks = c.scene.n_kv_heads * tiles;
  const std::vector<int32_t> zeros(static_cast<size_t>(tokens * (1 + blocks)));
  args.arrived = memory.Copy(zeros);
  args.first_row = kFirstRow;
  RunKernel(
      machine, "hearth_decode",
      {args.attend.max_spans, blocks, tokens, kAttendThreads, DecodeSharedBytes(c.scene.d_head)},
      args, memory);
  TurnOnCpu(c, from.Args(c, [](auto& values) { return values.data(); }), scene);
  const std::vector<float> out = scene.OnCpu();
  for (int t = 0; t < tokens; ++t) {
    ScalarKernels().quantise(&out[static_cast<size_t>(t * scene.stride)], want, t + kFirstRow);
  }
  const std::string wrong =
      FirstOf({BytesDiffer("kv", scene.pool.data(), args.rope.kv.pool, scene.pool.size()),
               FloatsDiffer("out", out.data(), args.combine.out, out.size()),
               c.strip > 0 ? RowsDiffer(want, args.act) : "",
               BytesDiffer("counter", zeros.data(), args.arrived, zeros.size())});
  if (wrong.empty()) return "";
  return "decoding, d_head " + std::to_string(c.scene.d_head) + ", group " +
         std::to_string(c.scene.group) + ", to " + std::to_string(scene.places.back().position) +
         ": " + wrong;
}

}  // namespace

// Own positions at even and odd places, at the start, at both ends of a span and of a piece of V.
std::string CheckDecode(Machine& machine, CaseGrid grid) {
  Rng rng(123);
  std::vector<DecodeCase> cases = {
      {{64, 8, 2, 0, true, {{0, 1}, {257, 1}, {38, 1}}}, 64, false, true, kStrip},
      {{16, 9, 1, 0, false, {{255, 1}, {31, 1}, {256, 1}}}, 8, true, false, kSuper},
      {{32, 2, 2, 20, true, {{270, 1}, {12, 1}}}, 32, false, false, 0},
  };
  if (grid >= CaseGrid::kSmall) {
    cases.insert(cases.end(),
                 {{{64, 8, 1, 128, true, {{129, 1}, {800, 1}}}, 64, false, false, kStrip},
                  {{128, 4, 3, 0, false, {{63, 1}, {520, 1}, {1, 1}}}, 64, true, true, kStrip},
                  {{256, 1, 1, 0, false, {{40, 1}}}, 256, false, true, kSuper},
                  {{72, 17, 1, 300, true, {{700, 1}, {511, 1}}}, 72, false, false, kStrip}});
  }
  if (grid == CaseGrid::kFull) {
    for (const int end : {1, 15, 16, 17, 127, 128, 129, 256, 257, 1023, 4097}) {
      for (const int window : {0, 128}) {
        cases.push_back({{64, 8, 2, window, true, {{end - 1, 1}}}, 64, false, false, kStrip});
      }
    }
  }
  for (const DecodeCase& c : cases) {
    if (std::string wrong = CheckOneDecode(machine, c, rng); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace hearth::cuda
