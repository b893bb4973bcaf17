// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_forward.h"

#include <algorithm>

#include "cuda/attend.h"
#include "cuda/decode.h"
#include "cuda/route.h"
#include "cuda/top.h"
#include "model/costs.h"

namespace hearth::cuda {
namespace {

int64_t NormShared(int d) { return int64_t{4} * (d + 1); }

int WidestFfn(const ModelSpec& spec) {
  return std::max(spec.d_ff, spec.n_experts > 0 ? spec.d_ff_expert : 0);
}

}  // namespace

Status CheckShapes(const Model& model, const DeviceFacts& facts) {
  const ModelSpec& spec = model.spec;
  if (spec.d_head > kMaxHeadDim || spec.d_head % 8 != 0) {
    return Error(
        Code::kUnsupported,
        "heads of %d values are not supported on GPUs; they need a multiple of 8 up to %d; "
        "use --device cpu",
        spec.d_head, kMaxHeadDim);
  }
  const int64_t shared = std::max({NormShared(std::max(spec.d_model, spec.n_heads * spec.d_head)),
                                   int64_t{4} * WidestFfn(spec), DecodeSharedBytes(spec.d_head),
                                   NormRouteSharedBytes(spec.d_model, spec.n_experts)});
  if (shared > facts.max_shared_bytes) {
    return Error(Code::kUnsupported,
                 "the model's rows need %lld bytes of shared memory; %s has %d; use --device cpu",
                 static_cast<long long>(shared), facts.name.c_str(), facts.max_shared_bytes);
  }
  Status status;
  VisitWeights(model, [&](const MatView& weight, const WeightPlace&) {
    if (weight.rows == 1 || !status.ok()) return;
    status = KindFor(weight, "a weight").status();
  });
  return status;
}

Result<std::unique_ptr<DeviceForward>> DeviceForward::Make(Device& device, const DeviceModel& model,
                                                           const KvLayout& kv,
                                                           std::vector<uint8_t*> pools,
                                                           const StepSizes& sizes,
                                                           const Tuning& tuning) {
  std::unique_ptr<DeviceForward> forward(
      new DeviceForward(device, model, kv, std::move(pools), tuning));
  HEARTH_ASSIGN(forward->memory_,
                device.Take(StepBytesOf(model.spec(), sizes), "the activations of a step"));
  forward->buffers_ = LayStep(model.spec(), sizes, forward->memory_.at());
  HEARTH_TRY(device.Zero(
      forward->buffers_.arrived,
      sizeof(int32_t) * static_cast<size_t>(sizes.tokens * ArrivedWords(model.spec()))));
  forward->Prepare();
  HEARTH_TRY(forward->jobs_.Send(device));
  return forward;
}

void DeviceForward::Prepare() {
  const StepBuffers& b = buffers_;
  const int d = PaddedTo16(spec_.d_model), q = PaddedTo16(spec_.n_heads * spec_.d_head);
  const int kv = PaddedTo16(spec_.n_kv_heads * spec_.d_head);
  for (size_t l = 0; l < model_.layers().size(); ++l) {
    const DeviceLayer& layer = model_.layers()[l];
    LayerWork& work = work_.emplace_back();
    const Product qkv[] = {{&layer.q, layer.q_bias, b.q, q},
                           {&layer.k, layer.k_bias, b.k, kv},
                           {&layer.v, layer.v_bias, b.v, kv}};
    work.qkv = jobs_.Add(qkv);
    const Product out[] = {{&layer.out, layer.out_bias, b.out, d}};
    work.out = jobs_.Add(out);
    const Product router[] = {
        {&layer.router, layer.router_bias, b.router, PaddedTo16(spec_.n_experts)}};
    work.router = jobs_.Add(router);
    const bool is_routed = spec_.layers[l].router != RouterKind::kNone;
    const int d_ff = PaddedTo16(is_routed ? spec_.d_ff_expert : spec_.d_ff);
    std::vector<Product> gate_up, down;
    for (size_t e = 0; e < layer.ffn.size(); ++e) {
      const DeviceFfn& ffn = layer.ffn[e];
      const int32_t* range = is_routed ? b.begin + e : nullptr;
      const auto expert = static_cast<int>(e);
      gate_up.push_back({&ffn.gate, ffn.gate_bias, b.gate, d_ff, range, expert});
      gate_up.push_back({&ffn.up, ffn.up_bias, b.up, d_ff, range, expert});
      down.push_back({&ffn.down, ffn.down_bias, b.down, d, range, expert});
    }
    work.gate_up = jobs_.Add(gate_up);
    work.down = jobs_.Add(down);
  }
  const Product head[] = {{&model_.head(), nullptr, b.logits, logits_stride()}};
  head_ = jobs_.Add(head);
}

KvPlace DeviceForward::PlaceOf(const StepInput& input, size_t layer) const {
  const KvMemory::Layer& where = kv_layers_[layer];
  const auto group = static_cast<size_t>(where.group);
  return {pools_[group], input.tables(), kv_.group(where.group).block_bytes, where.offset};
}

Status DeviceForward::Layers(const StepInput& input) {
  num_tokens_ = input.num_tokens;
  pending_ = nullptr;
  is_pending_of_experts_ = is_pending_in_slots_ = false;
  const DeviceMatrix& embedding = model_.embedding();
  EmbedArgs embed{};
  embed.tokens = input.tokens();
  embed.panels = embedding.job.panels;
  embed.spills = embedding.job.spills;
  embed.spill_begin = embedding.job.spill_begin;
  embed.x = buffers_.x;
  embed.panel_bytes = embedding.job.panel_bytes;
  embed.cols = embedding.job.cols;
  embed.kind = embedding.kind;
  HEARTH_TRY(device_.Launch(Kernel::kEmbed, {num_tokens_, 1, 1, kRowThreads, 0}, embed));
  for (size_t layer = 0; layer < work_.size(); ++layer) {
    HEARTH_TRY(Attention(input, layer));
    HEARTH_TRY(Ffn(input, layer));
  }
  return Status();
}

// What is pending is added to x on the way.
NormArgs DeviceForward::NormOf(const float* gain, const ProductSet& first,
                               const ProductSet& second) {
  NormArgs args{};
  args.x = buffers_.x;
  args.add = pending_;
  if (is_pending_of_experts_) args.weights = buffers_.weights;
  if (is_pending_in_slots_) args.slot_of = buffers_.slot_of;
  args.active = spec_.n_active_experts;
  args.gain = gain;
  args.d = spec_.d_model;
  args.add_stride = PaddedTo16(spec_.d_model);
  args.eps = static_cast<float>(spec_.norm_eps);
  if (first.reads_floats || second.reads_floats) args.h = buffers_.h;
  if (first.reads_strips || second.reads_strips) args.act = buffers_.act.Of(spec_.d_model);
  if (first.reads_supers || second.reads_supers) args.supers = buffers_.supers.Of(spec_.d_model);
  return args;
}

Status DeviceForward::Norm(const float* gain, const ProductSet& first, const ProductSet& second) {
  const NormArgs args = NormOf(gain, first, second);
  pending_ = nullptr;
  is_pending_of_experts_ = is_pending_in_slots_ = false;
  return device_.Launch(Kernel::kNorm, {num_tokens_, 1, 1, kRowThreads, NormShared(spec_.d_model)},
                        args);
}

// Each row is asked for once in a step, so that what is pending is added to it once.
Status DeviceForward::Logits(const StepInput& input, int first, int count) {
  const int d = spec_.d_model;
  NormArgs norm = NormOf(model_.final_norm(), head_, {});
  norm.rows = input.rows() + first;
  HEARTH_TRY(device_.Launch(Kernel::kNorm, {count, 1, 1, kRowThreads, NormShared(d)}, norm));
  return jobs_.Run(device_, head_,
                   {buffers_.act.Of(d), buffers_.supers.Of(d), buffers_.h, d, count, count});
}

// Each launch leaves `most` of every chunk, until there is one chunk.
Status DeviceForward::Tops(const StepInput& input, int first, int count) {
  TopArgs args{};
  args.logits = buffers_.logits;
  args.tops = input.tops() + first;
  args.stride = logits_stride();
  args.n = spec_.vocab_size;
  args.most = input.most_top;
  for (int turn = 0;; ++turn) {
    const int chunks = TopChunks(args.n);
    args.to = buffers_.tops[turn % 2];
    args.to_stride = int64_t{chunks} * args.most;
    HEARTH_TRY(
        device_.Launch(Kernel::kTop, {chunks, count, 1, kTopThreads, TopSharedBytes()}, args));
    if (chunks == 1) return Status();
    args.logits = nullptr;
    args.from = args.to;
    args.stride = args.to_stride;
    args.n = static_cast<int32_t>(args.to_stride);
  }
}

// Where the last of these launches leaves them.
const Candidate* DeviceForward::tops(int most_top) const {
  int turn = 0;
  for (int n = spec_.vocab_size; TopChunks(n) > 1; n = TopChunks(n) * most_top) ++turn;
  return buffers_.tops[turn % 2];
}

Status DeviceForward::Rows(const StepInput& input, int first, int count) {
  HEARTH_TRY(Logits(input, first, count));
  return input.most_top > 0 ? Tops(input, first, count) : Status();
}

}  // namespace hearth::cuda
