// SPDX-License-Identifier: Apache-2.0
#include "app/paging.h"

#include <algorithm>
#include <cstdio>

#include "base/terminal.h"
#include "platform/direct_file.h"

namespace hearth {
namespace {

// What else a process takes, and what the system's caches need to stay quick.
int64_t SlackOf(uint64_t room) {
  return static_cast<int64_t>(std::min(uint64_t{256} << 20, room / 8) + room / 32);
}

// "412 of 768 experts ...", with the speed that follows where the disk can be measured.
std::string Outlook(const Model& model, const BackendPlan& plan, int frames) {
  const std::string text = Printf("%d of %d experts fit in memory", frames, plan.num_experts);
  const PackedWeights* packed = model.file != nullptr ? model.file->packed() : nullptr;
  if (packed == nullptr || packed->path().empty()) return text;
  Result<double> rate = MeasureReadRate(packed->path(), static_cast<uint64_t>(plan.frame_bytes));
  if (!rate.ok()) return text;
  const double tokens = PagedRate(plan, model.spec.n_active_experts, frames, *rate);
  return text + Printf(
                    ", the others are read from disk when needed, at %.2f GB/s: about %.2g "
                    "tokens/s for one user, more where experts repeat",
                    *rate * 1e-9, tokens);
}

// Experts that `room` holds beside everything else, at most those that were asked for.
int FramesIn(const BackendPlan& bare, const PagingFlags& flags, int64_t kv_bytes, uint64_t room) {
  const int64_t others = bare.resident_bytes + bare.step_bytes + bare.result_bytes + kv_bytes;
  int64_t spare = static_cast<int64_t>(room) - SlackOf(room) - others;
  if (flags.expert_bytes > 0) spare = std::min(spare, flags.expert_bytes);
  return static_cast<int>(std::clamp<int64_t>(spare / bare.frame_bytes, 0, bare.num_experts));
}

Status TooLarge(const Model& model, const BackendPlan& bare, int frames, uint64_t room) {
  const bool is_packed = model.file != nullptr && model.file->packed() != nullptr;
  return Error(Code::kExhausted,
               "the model does not fit in memory: needs %s; with --allow-paging%s %s",
               Told(bare, room).c_str(), is_packed ? "" : " and a packed file (`hearth pack`)",
               Outlook(model, bare, frames).c_str());
}

}  // namespace

double PagedRate(const BackendPlan& plan, int active_experts, int frames, double bytes_per_s) {
  const double absent = 1 - static_cast<double>(frames) / plan.num_experts;
  const double each = static_cast<double>(plan.frame_bytes) * active_experts * plan.expert_layers;
  return bytes_per_s / std::max(each * absent, 1.0);
}

Result<FittedPlan> PlanWithin(const Model& model, const BackendOptions& options,
                              const PagingFlags& flags, int64_t kv_bytes, uint64_t room) {
  if (flags.expert_bytes > 0 && !flags.is_allowed) {
    return Error(Code::kInvalid,
                 "--expert-memory needs --allow-paging: experts that it does not hold are read "
                 "from disk");
  }
  FittedPlan out;
  HEARTH_ASSIGN(out.backend, PlanBackend(model, options));
  const BackendPlan& bare = out.backend;
  // Where it is not allowed, a KV cache that is too large is the caller's to complain about.
  const int64_t wanted = bare.total_bytes() + (flags.is_allowed ? kv_bytes : 0);
  const bool fits = static_cast<uint64_t>(wanted) < room;
  if (bare.frame_bytes == 0 || (fits && flags.expert_bytes == 0)) return out;
  const int64_t left = static_cast<int64_t>(room) - SlackOf(room) - bare.resident_bytes;
  if (kv_bytes == 0) kv_bytes = std::clamp<int64_t>(left / 8, 0, int64_t{1} << 30);
  const int frames = FramesIn(bare, flags, kv_bytes, room);
  if (!flags.is_allowed && frames >= bare.expert_layers) {
    return TooLarge(model, bare, frames, room);
  }
  if (!flags.is_allowed) return out;
  BackendOptions paged = options;
  paged.expert_bytes = std::max(int64_t{1}, frames * bare.frame_bytes);
  const std::string outlook = Outlook(model, bare, frames);
  HEARTH_ASSIGN(out.backend, PlanBackend(model, paged));
  out.backend.warning += (out.backend.warning.empty() ? "" : "; ") + outlook;
  out.kv_bytes = kv_bytes;
  return out;
}

std::string Told(const PagingCounts& counts) {
  const auto needed = static_cast<double>(std::max<uint64_t>(counts.needed, 1));
  return Printf(
      "%llu experts needed, %.1f %% of them in memory, %.1f %% read ahead; %.2f GB read at %.2f "
      "GB/s; steps waited %.1f s; %.2f GiB of at most %.2f GiB used; %llu errors",
      static_cast<unsigned long long>(counts.needed), 100 * HitShare(counts),
      100 * static_cast<double>(counts.ahead_hits) / needed,
      static_cast<double>(counts.bytes_read) * 1e-9, ReadRate(counts) * 1e-9,
      static_cast<double>(counts.waited_ns) * 1e-9, InGib(counts.resident_bytes),
      InGib(counts.most_bytes), static_cast<unsigned long long>(counts.errors));
}

void TellPaging(const PagingMeter& meter) {
  const PagingCounts counts = meter.get();
  if (counts.frames > 0) PrintError("paging: %s\n", Told(counts).c_str());
}

}  // namespace hearth
