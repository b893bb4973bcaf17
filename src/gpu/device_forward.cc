// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_forward.h"

#include <algorithm>

#include "cuda/attend.h"
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
                                   int64_t{4} * WidestFfn(spec), AttendSharedBytes(spec.d_head),
                                   int64_t{4} * (spec.n_experts + 1)});
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
      gate_up.push_back({&ffn.gate, ffn.gate_bias, b.gate, d_ff, range});
      gate_up.push_back({&ffn.up, ffn.up_bias, b.up, d_ff, range});
      down.push_back({&ffn.down, ffn.down_bias, b.down, d, range});
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
    HEARTH_TRY(Ffn(layer));
  }
  return Status();
}

// What is pending is added to x on the way.
Status DeviceForward::Norm(const float* gain, const ProductSet& first, const ProductSet& second) {
  NormArgs args{};
  args.x = buffers_.x;
  args.add = pending_;
  args.gain = gain;
  args.d = spec_.d_model;
  args.add_stride = PaddedTo16(spec_.d_model);
  args.eps = static_cast<float>(spec_.norm_eps);
  if (first.reads_floats || second.reads_floats) args.h = buffers_.h;
  if (first.reads_strips || second.reads_strips) args.act = buffers_.act.Of(spec_.d_model);
  if (first.reads_supers || second.reads_supers) args.supers = buffers_.supers.Of(spec_.d_model);
  pending_ = nullptr;
  return device_.Launch(Kernel::kNorm, {num_tokens_, 1, 1, kRowThreads, NormShared(spec_.d_model)},
                        args);
}

Status DeviceForward::Attention(const StepInput& input, size_t index) {
  const DeviceLayer& layer = model_.layers()[index];
  const LayerWork& work = work_[index];
  const int d = spec_.d_model, q_width = spec_.n_heads * spec_.d_head;
  HEARTH_TRY(Norm(layer.attn_norm, work.qkv, {}));
  HEARTH_TRY(jobs_.Run(
      device_, work.qkv,
      {buffers_.act.Of(d), buffers_.supers.Of(d), buffers_.h, d, num_tokens_, num_tokens_}));
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
  rope.q_stride = PaddedTo16(q_width);
  rope.kv_stride = PaddedTo16(spec_.n_kv_heads * spec_.d_head);
  rope.n_heads = spec_.n_heads;
  rope.n_kv_heads = spec_.n_kv_heads;
  rope.d_head = spec_.d_head;
  rope.n_dims = spec_.rope.n_dims;
  rope.neighbours = spec_.rope.pairing == RopePairing::kNeighbours ? 1 : 0;
  rope.eps = static_cast<float>(spec_.norm_eps);
  const Grid heads{spec_.n_heads + spec_.n_kv_heads, num_tokens_, 1, kWarp,
                   int64_t{4} * spec_.d_head};
  HEARTH_TRY(device_.Launch(Kernel::kRope, heads, rope));
  HEARTH_TRY(Attend(input, index));
  if (work.out.reads_strips || work.out.reads_supers) {
    NormArgs quantise{};
    quantise.x = buffers_.mixed;
    quantise.d = q_width;
    if (work.out.reads_strips) quantise.act = buffers_.act.Of(q_width);
    if (work.out.reads_supers) quantise.supers = buffers_.supers.Of(q_width);
    HEARTH_TRY(device_.Launch(Kernel::kNorm, {num_tokens_, 1, 1, kRowThreads, NormShared(q_width)},
                              quantise));
  }
  HEARTH_TRY(jobs_.Run(device_, work.out,
                       {buffers_.act.Of(q_width), buffers_.supers.Of(q_width), buffers_.mixed,
                        q_width, num_tokens_, num_tokens_}));
  pending_ = buffers_.out;
  return Status();
}

Status DeviceForward::Attend(const StepInput& input, size_t index) {
  const auto group = static_cast<size_t>(kv_layers_[index].group);
  const int64_t q_width = int64_t{spec_.n_heads} * spec_.d_head;
  const int per_kv = spec_.n_heads / spec_.n_kv_heads;
  const int tiles = (per_kv + kAttendHeads - 1) / kAttendHeads;
  for (const AttendChunk& chunk : input.chunks(group)) {
    AttendArgs attend{};
    attend.q_stride = PaddedTo16(static_cast<int>(q_width));
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
    const Grid spans{chunk.max_spans, int64_t{spec_.n_kv_heads} * tiles, chunk.count,
                     kAttendThreads, AttendSharedBytes(spec_.d_head)};
    HEARTH_TRY(device_.Launch(Kernel::kAttend, spans, attend));
    CombineArgs combine{};
    combine.parts = attend.parts;
    combine.places = attend.places;
    combine.sinks = model_.layers()[index].sinks;
    combine.out = buffers_.mixed + chunk.first * q_width;
    combine.out_stride = q_width;
    combine.window = attend.window;
    combine.n_heads = spec_.n_heads;
    combine.d_head = spec_.d_head;
    combine.max_spans = chunk.max_spans;
    HEARTH_TRY(
        device_.Launch(Kernel::kCombine, {spec_.n_heads, chunk.count, 1, kWarp, 0}, combine));
  }
  return Status();
}

Status DeviceForward::Glu(int rows, int d_ff, const ProductSet& down) {
  const bool is_plain = spec_.ffn == FfnKind::kSiluGlu;
  GluArgs glu{};
  glu.gate = buffers_.gate;
  glu.up = buffers_.up;
  if (down.reads_strips) glu.act = buffers_.slot_act.Of(d_ff);
  if (down.reads_supers) glu.supers = buffers_.slot_supers.Of(d_ff);
  if (down.reads_floats) glu.z = buffers_.gate;
  glu.stride = PaddedTo16(d_ff);
  glu.d = d_ff;
  glu.alpha = is_plain ? 1.0f : static_cast<float>(spec_.swiglu_alpha);
  glu.limit = is_plain ? 0.0f : static_cast<float>(spec_.swiglu_limit);
  return device_.Launch(Kernel::kGlu, {rows, 1, 1, kRowThreads, int64_t{4} * d_ff}, glu);
}

Status DeviceForward::Ffn(size_t index) {
  const LayerWork& work = work_[index];
  const int d = spec_.d_model, d_ff = spec_.d_ff;
  HEARTH_TRY(Norm(model_.layers()[index].ffn_norm, work.gate_up, work.router));
  if (spec_.layers[index].router != RouterKind::kNone) return Experts(index);
  HEARTH_TRY(jobs_.Run(
      device_, work.gate_up,
      {buffers_.act.Of(d), buffers_.supers.Of(d), buffers_.h, d, num_tokens_, num_tokens_}));
  HEARTH_TRY(Glu(num_tokens_, d_ff, work.down));
  HEARTH_TRY(jobs_.Run(device_, work.down,
                       {buffers_.slot_act.Of(d_ff), buffers_.slot_supers.Of(d_ff), buffers_.gate,
                        PaddedTo16(d_ff), num_tokens_, num_tokens_}));
  pending_ = buffers_.down;
  return Status();
}

Status DeviceForward::Experts(size_t index) {
  const LayerWork& work = work_[index];
  const int d = spec_.d_model, d_ff = spec_.d_ff_expert, active = spec_.n_active_experts;
  const int slots = num_tokens_ * active;
  HEARTH_TRY(jobs_.Run(
      device_, work.router,
      {buffers_.act.Of(d), buffers_.supers.Of(d), buffers_.h, d, num_tokens_, num_tokens_}));
  RouteArgs route{};
  route.logits = buffers_.router;
  route.experts = buffers_.experts;
  route.weights = buffers_.weights;
  route.stride = PaddedTo16(spec_.n_experts);
  route.num_experts = spec_.n_experts;
  route.active = active;
  route.softmax_first = spec_.layers[index].router == RouterKind::kSoftmaxThenTopK ? 1 : 0;
  route.renormalise = spec_.renormalise_experts ? 1 : 0;
  HEARTH_TRY(device_.Launch(Kernel::kRoute, {num_tokens_, 1, 1, kWarp, 0}, route));
  const SortArgs sort{buffers_.experts,   buffers_.begin, buffers_.slot_of,
                      buffers_.choice_of, slots,          spec_.n_experts};
  HEARTH_TRY(device_.Launch(Kernel::kSort,
                            {1, 1, 1, kRowThreads, int64_t{4} * (spec_.n_experts + 1)}, sort));
  GatherArgs gather{};
  gather.choice_of = buffers_.choice_of;
  gather.active = active;
  gather.d = d;
  if (work.gate_up.reads_strips) {
    gather.from = buffers_.act.Of(d);
    gather.to = buffers_.slot_act.Of(d);
  }
  if (work.gate_up.reads_supers) {
    gather.super_from = buffers_.supers.Of(d);
    gather.super_to = buffers_.slot_supers.Of(d);
  }
  if (work.gate_up.reads_floats) {
    gather.from_x = buffers_.h;
    gather.to_x = buffers_.slot_h;
    gather.to_stride = d;
  }
  HEARTH_TRY(device_.Launch(Kernel::kGather, {slots, 1, 1, kRowThreads, 0}, gather));
  HEARTH_TRY(jobs_.Run(device_, work.gate_up,
                       {buffers_.slot_act.Of(d), buffers_.slot_supers.Of(d), buffers_.slot_h, d,
                        slots, num_tokens_}));
  HEARTH_TRY(Glu(slots, d_ff, work.down));
  HEARTH_TRY(jobs_.Run(device_, work.down,
                       {buffers_.slot_act.Of(d_ff), buffers_.slot_supers.Of(d_ff), buffers_.gate,
                        PaddedTo16(d_ff), slots, num_tokens_}));
  const SumArgs sum{
      buffers_.down, buffers_.weights, buffers_.slot_of, buffers_.x, PaddedTo16(d), active, d};
  return device_.Launch(Kernel::kSum, {num_tokens_, 1, 1, kRowThreads, 0}, sum);
}

// Each row is asked for once in a step, so that what is pending is added to it once.
Status DeviceForward::Logits(const StepInput& input, int first, int count) {
  const int d = spec_.d_model;
  NormArgs norm{};
  norm.x = buffers_.x;
  norm.add = pending_;
  norm.add_stride = PaddedTo16(d);
  norm.gain = model_.final_norm();
  norm.rows = input.rows() + first;
  norm.d = d;
  norm.eps = static_cast<float>(spec_.norm_eps);
  if (head_.reads_floats) norm.h = buffers_.h;
  if (head_.reads_strips) norm.act = buffers_.act.Of(d);
  if (head_.reads_supers) norm.supers = buffers_.supers.Of(d);
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
