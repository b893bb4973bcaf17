// SPDX-License-Identifier: Apache-2.0
// Attention of a layer: in one launch between the products when every sequence has one token, in
// several for prompts, whose tokens see K and V of each other.
#include "cuda/attend.h"
#include "cuda/decode.h"
#include "gpu/device_forward.h"

namespace hearth::cuda {

Status DeviceForward::Attention(const StepInput& input, size_t index) {
  const LayerWork& work = work_[index];
  const int d = spec_.d_model, q_width = spec_.n_heads * spec_.d_head;
  HEARTH_TRY(Norm(model_.layers()[index].attn_norm, work.qkv, {}));
  HEARTH_TRY(jobs_.Run(
      device_, work.qkv,
      {buffers_.act.Of(d), buffers_.supers.Of(d), buffers_.h, d, num_tokens_, num_tokens_}));
  HEARTH_TRY(input.is_decode ? Decode(input, index) : Attend(input, index));
  HEARTH_TRY(jobs_.Run(device_, work.out,
                       {buffers_.act.Of(q_width), buffers_.supers.Of(q_width), buffers_.mixed,
                        q_width, num_tokens_, num_tokens_}));
  pending_ = buffers_.out;
  return Status();
}

RopeArgs DeviceForward::RopeOf(const StepInput& input, size_t index) const {
  const DeviceLayer& layer = model_.layers()[index];
  RopeArgs rope{};
  rope.q = buffers_.q;
  rope.k = buffers_.k;
  rope.v = buffers_.v;
  rope.q_norm = layer.q_norm;
  rope.k_norm = layer.k_norm;
  rope.cos = input.cos();
  rope.sin = input.sin();
  rope.places = input.places(static_cast<size_t>(kv_layers_[index].group));
  rope.kv = PlaceOf(input, index);
  rope.q_stride = PaddedTo16(spec_.n_heads * spec_.d_head);
  rope.kv_stride = PaddedTo16(spec_.n_kv_heads * spec_.d_head);
  rope.n_heads = spec_.n_heads;
  rope.n_kv_heads = spec_.n_kv_heads;
  rope.d_head = spec_.d_head;
  rope.n_dims = spec_.rope.n_dims;
  rope.neighbours = spec_.rope.pairing == RopePairing::kNeighbours ? 1 : 0;
  rope.eps = static_cast<float>(spec_.norm_eps);
  return rope;
}

AttendArgs DeviceForward::AttendOf(const StepInput& input, size_t index,
                                   const AttendChunk& chunk) const {
  const auto group = static_cast<size_t>(kv_layers_[index].group);
  AttendArgs attend{};
  attend.q_stride = PaddedTo16(spec_.n_heads * spec_.d_head);
  attend.q = buffers_.q + chunk.first * attend.q_stride;
  attend.places = input.places(group) + chunk.first;
  attend.kv = PlaceOf(input, index);
  attend.parts = buffers_.parts;
  attend.window = kv_layers_[index].window;
  attend.n_heads = spec_.n_heads;
  attend.n_kv_heads = spec_.n_kv_heads;
  attend.d_head = spec_.d_head;
  attend.max_spans = chunk.max_spans;
  attend.scale = static_cast<float>(spec_.attention_scale);
  return attend;
}

CombineArgs DeviceForward::CombineOf(const AttendArgs& attend, size_t index,
                                     const AttendChunk& chunk) const {
  CombineArgs combine{};
  combine.parts = attend.parts;
  combine.places = attend.places;
  combine.sinks = model_.layers()[index].sinks;
  combine.out_stride = int64_t{spec_.n_heads} * spec_.d_head;
  combine.out = buffers_.mixed + chunk.first * combine.out_stride;
  combine.window = attend.window;
  combine.n_heads = spec_.n_heads;
  combine.d_head = spec_.d_head;
  combine.max_spans = chunk.max_spans;
  return combine;
}

Grid DeviceForward::SpansOf(const AttendChunk& chunk, int64_t shared_bytes) const {
  return {chunk.max_spans, ArrivedWords(spec_) - 1, chunk.count, kAttendThreads, shared_bytes};
}

Status DeviceForward::Attend(const StepInput& input, size_t index) {
  const LayerWork& work = work_[index];
  const int q_width = spec_.n_heads * spec_.d_head;
  const Grid heads{spec_.n_heads + spec_.n_kv_heads, num_tokens_, 1, kWarp,
                   int64_t{4} * spec_.d_head};
  HEARTH_TRY(device_.Launch(Kernel::kRope, heads, RopeOf(input, index)));
  for (const AttendChunk& chunk : input.chunks(static_cast<size_t>(kv_layers_[index].group))) {
    const AttendArgs attend = AttendOf(input, index, chunk);
    HEARTH_TRY(
        device_.Launch(Kernel::kAttend, SpansOf(chunk, AttendSharedBytes(spec_.d_head)), attend));
    HEARTH_TRY(device_.Launch(Kernel::kCombine, {spec_.n_heads, chunk.count, 1, kWarp, 0},
                              CombineOf(attend, index, chunk)));
  }
  if (work.out.reads_floats) return Status();
  NormArgs quantise{};
  quantise.x = buffers_.mixed;
  quantise.d = q_width;
  if (work.out.reads_strips) quantise.act = buffers_.act.Of(q_width);
  if (work.out.reads_supers) quantise.supers = buffers_.supers.Of(q_width);
  return device_.Launch(Kernel::kNorm, {num_tokens_, 1, 1, kRowThreads, int64_t{4} * (q_width + 1)},
                        quantise);
}

Status DeviceForward::Decode(const StepInput& input, size_t index) {
  const LayerWork& work = work_[index];
  const int q_width = spec_.n_heads * spec_.d_head, pairs = spec_.rope.n_dims / 2;
  for (const AttendChunk& chunk : input.chunks(static_cast<size_t>(kv_layers_[index].group))) {
    DecodeArgs args{};
    args.rope = RopeOf(input, index);
    args.rope.q += chunk.first * args.rope.q_stride;
    args.rope.k += chunk.first * args.rope.kv_stride;
    args.rope.v += chunk.first * args.rope.kv_stride;
    args.rope.cos += int64_t{chunk.first} * pairs;
    args.rope.sin += int64_t{chunk.first} * pairs;
    args.rope.places += chunk.first;
    args.attend = AttendOf(input, index, chunk);
    args.combine = CombineOf(args.attend, index, chunk);
    if (work.out.reads_strips) args.act = buffers_.act.Of(q_width);
    if (work.out.reads_supers) args.act = buffers_.supers.Of(q_width);
    args.arrived = buffers_.arrived;
    args.first_row = chunk.first;
    HEARTH_TRY(
        device_.Launch(Kernel::kDecode, SpansOf(chunk, DecodeSharedBytes(spec_.d_head)), args));
  }
  return Status();
}

}  // namespace hearth::cuda
