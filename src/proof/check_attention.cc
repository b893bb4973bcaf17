// SPDX-License-Identifier: Apache-2.0
// Rope with the write of K and V, and attention over blocks placed at random in a pool of rubbish.
#include <algorithm>

#include "cpu/kv_memory.h"
#include "cuda/attend.h"
#include "proof/attend_scene.h"
#include "proof/check_parts.h"

namespace hearth::cuda {
namespace {

struct RopeCase {
  int tokens, n_heads, n_kv_heads, d_head, n_dims;
  bool neighbours, norms;
};

// The CPU's way for one token; q is turned in place.
void RopeOnCpu(const RopeCase& c, const RopeArgs& host, int t, KvMemory& kv, int block,
               int position) {
  const KernelTable& cpu = ScalarKernels();
  const int pairs = c.n_dims / 2;
  const auto turn = [&](float* head, const float* norm) {
    if (norm != nullptr) cpu.rms_norm(head, norm, host.eps, c.d_head, head);
    cpu.rope(head, host.cos + t * pairs, host.sin + t * pairs, c.n_dims, c.neighbours);
  };
  for (int h = 0; h < c.n_heads; ++h) turn(host.q + t * host.q_stride + h * c.d_head, host.q_norm);
  std::vector<float> k(host.k + t * host.kv_stride, host.k + (t + 1) * host.kv_stride);
  for (int h = 0; h < c.n_kv_heads; ++h) turn(k.data() + h * c.d_head, host.k_norm);
  kv.Write(1, block, position, k.data(), host.v + t * host.kv_stride);
}

// What the kernel reads besides the cache.
struct RopeInputs {
  RopeInputs(const RopeCase& c, Rng& rng)
      : q(rng.Normals((c.n_heads * c.d_head + 16) * c.tokens)),
        k(RowsOfKinds(rng, c.tokens, c.n_kv_heads * c.d_head, rng.Int(0, kRowKinds - 1))),
        v(RowsOfKinds(rng, c.tokens, c.n_kv_heads * c.d_head, rng.Int(0, kRowKinds - 1))),
        norm(c.norms ? rng.Normals(2 * c.d_head) : std::vector<float>()),
        cos(rng.Normals(c.tokens * c.n_dims / 2)),
        sin(rng.Normals(c.tokens * c.n_dims / 2)) {
    for (int t = 0; t < c.tokens; ++t) {
      places.push_back({t % 2 == 0 ? t : 30 - t, t % 2 == 0 ? 0 : 3});
    }
  }
  // With pointers to where `place` puts a vector.
  template <class Place>
  RopeArgs Args(const RopeCase& c, Place&& place) {
    RopeArgs args{};
    args.q = place(q);
    args.k = place(k);
    args.v = place(v);
    if (c.norms) args.q_norm = place(norm);
    if (c.norms) args.k_norm = args.q_norm + c.d_head;
    args.cos = place(cos);
    args.sin = place(sin);
    args.places = place(places);
    args.q_stride = c.n_heads * c.d_head + 16;
    args.kv_stride = c.n_kv_heads * c.d_head;
    args.n_heads = c.n_heads;
    args.n_kv_heads = c.n_kv_heads;
    args.d_head = c.d_head;
    args.n_dims = c.n_dims;
    args.neighbours = c.neighbours ? 1 : 0;
    args.eps = 1e-6f;
    return args;
  }
  std::vector<float> q, k, v, norm, cos, sin;
  std::vector<TokenPlace> places;
};

std::string CheckOneRope(Machine& machine, const RopeCase& c, Rng& rng) {
  constexpr int kNumBlocks[] = {7};
  ModelSpec spec;
  spec.n_heads = c.n_heads;
  spec.n_kv_heads = c.n_kv_heads;
  spec.d_head = c.d_head;
  spec.layers.resize(2);
  Result<KvMemory> made = KvMemory::Make(spec, kNumBlocks);
  KvMemory& kv = *made;
  const int64_t block_bytes = kv.layout().group(0).block_bytes;
  const auto pool_bytes = static_cast<size_t>(block_bytes * kNumBlocks[0]);
  const std::vector<int32_t> tables = {5, 0, 3, 6, 1};
  RopeInputs inputs(c, rng);

  DeviceMemory memory(machine);
  std::memset(kv.pool(0), 0, pool_bytes);
  uint8_t* pool = memory.Copy(kv.pool(0), pool_bytes);
  RopeArgs args = inputs.Args(c, [&](auto& values) { return memory.Copy(values); });
  args.kv = {pool, memory.Copy(tables), block_bytes, kv.layer(1).offset};
  RunKernel(machine, "hearth_rope", {c.n_heads + c.n_kv_heads, c.tokens, 1, 32, 4 * c.d_head}, args,
            memory);
  const RopeArgs host = inputs.Args(c, [](auto& values) { return values.data(); });
  for (int t = 0; t < c.tokens; ++t) {
    const TokenPlace& place = inputs.places[static_cast<size_t>(t)];
    const int block = tables[static_cast<size_t>(place.table + place.position / kBlockTokens)];
    RopeOnCpu(c, host, t, kv, block, place.position);
  }
  const std::string wrong = FirstOf({FloatsDiffer("q", inputs.q.data(), args.q, inputs.q.size()),
                                     BytesDiffer("kv", kv.pool(0), pool, pool_bytes)});
  return wrong.empty() ? "" : "rope with d_head " + std::to_string(c.d_head) + ": " + wrong;
}

std::string CheckOneScene(Machine& machine, const AttendCase& c, Rng& rng) {
  const Scene scene(c, rng);
  const int n_heads = c.group * c.n_kv_heads, tokens = static_cast<int>(scene.places.size());
  int max_spans = 1;
  for (const TokenPlace& place : scene.places) {
    max_spans = std::max(
        max_spans, place.position / kSpan - FirstVisible(place.position, c.window) / kSpan + 1);
  }
  DeviceMemory memory(machine);
  AttendArgs attend{};
  attend.q = memory.Copy(scene.q);
  attend.places = memory.Copy(scene.places);
  attend.kv = {memory.Copy(scene.pool), memory.Copy(scene.tables), scene.block_bytes,
               scene.layer_bytes};
  attend.parts = memory.Make<float>(static_cast<size_t>(tokens * n_heads * max_spans) *
                                    static_cast<size_t>(c.d_head + 2));
  attend.q_stride = scene.stride;
  attend.window = c.window;
  attend.n_heads = n_heads;
  attend.n_kv_heads = c.n_kv_heads;
  attend.d_head = c.d_head;
  attend.max_spans = max_spans;
  attend.scale = 1.0f / std::sqrt(static_cast<float>(c.d_head));
  const int tiles = (c.group + kAttendHeads - 1) / kAttendHeads;
  RunKernel(machine, "hearth_attend",
            {max_spans, c.n_kv_heads * tiles, tokens, kAttendThreads, AttendSharedBytes(c.d_head)},
            attend, memory);
  const std::vector<float> want = scene.OnCpu();
  CombineArgs combine{attend.parts,
                      attend.places,
                      c.sinks ? memory.Copy(scene.sinks) : nullptr,
                      memory.Copy(std::vector<float>(want.size(), -77.0f)),
                      scene.stride,
                      c.window,
                      n_heads,
                      c.d_head,
                      max_spans};
  RunKernel(machine, "hearth_combine", {n_heads, tokens, 1, 32, 0}, combine, memory);
  const std::string wrong = FloatsDiffer("out", want.data(), combine.out, want.size());
  if (wrong.empty()) return "";
  return "attention, d_head " + std::to_string(c.d_head) + ", group " + std::to_string(c.group) +
         ", window " + std::to_string(c.window) + ", to " +
         std::to_string(scene.places.back().position) + ": " + wrong;
}

}  // namespace

std::string CheckRope(Machine& machine, CaseGrid grid) {
  Rng rng(121);
  const int tokens = grid == CaseGrid::kFull ? 17 : 3;
  for (const RopeCase& c :
       {RopeCase{tokens, 2, 1, 64, 64, false, false}, RopeCase{tokens, 3, 2, 32, 16, true, true},
        RopeCase{tokens, 2, 2, 128, 128, false, true}, RopeCase{2, 1, 1, 256, 64, true, false},
        RopeCase{tokens, 4, 2, 8, 8, false, true}}) {
    if (std::string wrong = CheckOneRope(machine, c, rng); !wrong.empty()) return wrong;
  }
  return "";
}

std::string CheckAttention(Machine& machine, CaseGrid grid) {
  Rng rng(122);
  std::vector<AttendCase> cases = {
      {16, 2, 1, 0, true, {{0, 1}, {16, 2}, {257, 1}}},
      {64, 4, 1, 0, true, {{800, 1}}},
      {64, 8, 1, 128, true, {{129, 1}}},
  };
  if (grid >= CaseGrid::kSmall) {
    cases.insert(cases.end(), {{64, 8, 2, 0, true, {{299, 1}, {14, 2}}},
                               {64, 9, 1, 20, false, {{270, 2}}},
                               {72, 1, 2, 0, false, {{511, 1}, {512, 1}}},
                               {32, 3, 1, 0, true, {{290, 1}, {8, 1}}, 261},
                               {128, 4, 1, 300, true, {{700, 1}}},
                               {256, 2, 1, 0, false, {{40, 1}}}});
  }
  if (grid == CaseGrid::kFull) {
    for (const int end : {1, 15, 16, 17, 127, 128, 129, 256, 257, 1023, 4097}) {
      for (const int window : {0, 128}) cases.push_back({64, 8, 1, window, true, {{end - 1, 1}}});
    }
    cases.push_back({64, 8, 2, 128, true, {{100, 17}, {250, 9}, {0, 64}}});
    cases.push_back({128, 64, 1, 0, false, {{33, 2}}});
  }
  for (const AttendCase& c : cases) {
    if (std::string wrong = CheckOneScene(machine, c, rng); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace hearth::cuda
