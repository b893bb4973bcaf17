// SPDX-License-Identifier: Apache-2.0
// The feed-forward of a layer, dense or of experts.
#include "cuda/route.h"
#include "gpu/device_forward.h"

namespace hearth::cuda {

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

Status DeviceForward::Ffn(const StepInput& input, size_t index) {
  const LayerWork& work = work_[index];
  const int d = spec_.d_model, d_ff = spec_.d_ff;
  if (TakesChoices(input, index)) return ChosenExperts(index);
  HEARTH_TRY(Norm(model_.layers()[index].ffn_norm, work.gate_up, work.router));
  if (spec_.layers[index].router != RouterKind::kNone) return SortedExperts(index);
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

// Each block looks for its rows itself: that pays as long as the list of choices is short.
bool DeviceForward::TakesChoices(const StepInput& input, size_t index) const {
  const LayerWork& work = work_[index];
  return input.is_decode && spec_.layers[index].router != RouterKind::kNone &&
         !work.gate_up.reads_floats && !work.down.reads_floats;
}

RouteArgs DeviceForward::RouteOf(size_t index) const {
  RouteArgs route{};
  route.logits = buffers_.router;
  route.experts = buffers_.experts;
  route.weights = buffers_.weights;
  route.stride = PaddedTo16(spec_.n_experts);
  route.num_experts = spec_.n_experts;
  route.active = spec_.n_active_experts;
  route.softmax_first = spec_.layers[index].router == RouterKind::kSoftmaxThenTopK ? 1 : 0;
  route.renormalise = spec_.renormalise_experts ? 1 : 0;
  return route;
}

// The router as a product of its own.
Status DeviceForward::Route(size_t index) {
  const int d = spec_.d_model;
  HEARTH_TRY(jobs_.Run(
      device_, work_[index].router,
      {buffers_.act.Of(d), buffers_.supers.Of(d), buffers_.h, d, num_tokens_, num_tokens_}));
  return device_.Launch(Kernel::kRoute, {num_tokens_, 1, 1, kWarp, 0}, RouteOf(index));
}

Status DeviceForward::NormRoute(size_t index) {
  const LayerWork& work = work_[index];
  const DeviceLayer& layer = model_.layers()[index];
  if (!ReadsFloats(layer.router.kind) || layer.router.job.cols != spec_.d_model) {
    HEARTH_TRY(Norm(layer.ffn_norm, work.gate_up, work.router));
    return Route(index);
  }
  NormRouteArgs args{};
  args.norm = NormOf(layer.ffn_norm, work.gate_up, {});
  args.route = RouteOf(index);
  args.panels = layer.router.job.panels;
  args.panel_bytes = layer.router.job.panel_bytes;
  args.bias = layer.router_bias;
  args.kind = layer.router.kind;
  pending_ = nullptr;
  const int64_t shared = NormRouteSharedBytes(spec_.d_model, spec_.n_experts);
  return device_.Launch(Kernel::kNormRoute, {num_tokens_, 1, 1, kRowThreads, shared}, args);
}

Status DeviceForward::ChosenExperts(size_t index) {
  const LayerWork& work = work_[index];
  const int d = spec_.d_model, d_ff = spec_.d_ff_expert, active = spec_.n_active_experts;
  const int choices = num_tokens_ * active;
  HEARTH_TRY(NormRoute(index));
  HEARTH_TRY(jobs_.Run(device_, work.gate_up,
                       {buffers_.act.Of(d), buffers_.supers.Of(d), nullptr, 0, num_tokens_,
                        num_tokens_, buffers_.experts, choices, active}));
  HEARTH_TRY(Glu(choices, d_ff, work.down));
  HEARTH_TRY(jobs_.Run(device_, work.down,
                       {buffers_.slot_act.Of(d_ff), buffers_.slot_supers.Of(d_ff), nullptr, 0,
                        choices, num_tokens_, buffers_.experts, choices, 1}));
  pending_ = buffers_.down;
  is_pending_of_experts_ = true;
  return Status();
}

Status DeviceForward::SortedExperts(size_t index) {
  const LayerWork& work = work_[index];
  const int d = spec_.d_model, d_ff = spec_.d_ff_expert, active = spec_.n_active_experts;
  const int slots = num_tokens_ * active;
  HEARTH_TRY(Route(index));
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
  pending_ = buffers_.down;
  is_pending_of_experts_ = is_pending_in_slots_ = true;
  return Status();
}

}  // namespace hearth::cuda
