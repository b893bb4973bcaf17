// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda_backend.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include "backend/plan_check.h"
#include "backend/row_results.h"
#include "cpu/cpu_backend.h"
#include "cpu/packed_model.h"
#include "cuda/fatbin.h"
#include "gpu/device.h"
#include "gpu/device_forward.h"
#include "gpu/device_model.h"
#include "gpu/gpu_fit.h"
#include "gpu/step_graphs.h"
#include "gpu/step_input.h"
#include "gpu/tuning.h"
#include "platform/thread_pool.h"
#include "platform/topology.h"

namespace hearth {
namespace cuda {
namespace {

constexpr int64_t TopBytes(int rows) {
  return int64_t{rows} * kMaxTop * static_cast<int64_t>(sizeof(Candidate));
}

// Asks for a whole step in Begin and waits for it in Finish. What fails on the way is told by
// Finish; the next step starts anew, unless the device is lost: then every step fails with the
// reason.
class CudaBackend final : public Backend {
 public:
  static Result<std::unique_ptr<Backend>> Make(const Model& model, const BackendPlan& plan,
                                               std::unique_ptr<Device> device,
                                               const Tuning& tuning);
  ~CudaBackend() override {
    if (device_->Enter().ok()) device_->Drain();
  }
  std::string_view name() const override { return device_->facts().level; }
  KvLayout kv_layout() const override { return kv_; }
  int vocab_size() const override { return spec().vocab_size; }
  BackendCapabilities capabilities() const override {
    return {.max_top = std::min(kMaxTop, spec().vocab_size), .chooses_tokens = true};
  }
  Status Begin(const StepPlan& plan) override;
  Result<std::span<const RowResult>> Finish() override;

 private:
  CudaBackend(std::unique_ptr<Device> device, const BackendPlan& plan)
      : device_(std::move(device)),
        kv_(plan.kv),
        sizes_{plan.options.max_step_tokens, std::max(1, plan.options.max_rows), false} {}
  const ModelSpec& spec() const { return model_->spec(); }
  Status Load(const Model& model, const BackendOptions& options, const Tuning& tuning);
  Status Reserve(const StepPlan& plan);
  Status Start(const StepPlan& plan);
  Status StartCopies(const StepPlan& plan);
  Status StartLaunches(const StepPlan& plan);
  Status StartRowCopies(const StepPlan& plan, int first, int count);
  std::span<const RowResult> Results(const StepPlan& plan);
  uint8_t* BlockAt(const BlockCopy& copy) const {
    const int64_t bytes = kv_.group(copy.group).block_bytes;
    return pools_[static_cast<size_t>(copy.group)].at(static_cast<int64_t>(copy.block) * bytes);
  }

  const std::unique_ptr<Device> device_;
  const KvLayout kv_;
  StepSizes sizes_;
  std::unique_ptr<DeviceModel> model_;
  std::vector<DeviceBlock> pools_;  // by group
  std::unique_ptr<DeviceForward> forward_;
  std::unique_ptr<StepInput> input_;
  std::unique_ptr<StepGraphs> graphs_;
  PinnedBlock logits_;   // [rows, vocab_size]
  PinnedBlock tops_;     // [rows, the step's most_top]
  PinnedBlock staging_;  // blocks that are copied, one after the other
  std::vector<RowResult> results_;
  const StepPlan* plan_ = nullptr;
  Status failed_;  // of the step that was begun
};

Result<std::unique_ptr<Backend>> CudaBackend::Make(const Model& model, const BackendPlan& plan,
                                                   std::unique_ptr<Device> device,
                                                   const Tuning& tuning) {
  std::unique_ptr<CudaBackend> backend(new CudaBackend(std::move(device), plan));
  HEARTH_TRY(backend->Load(model, plan.options, tuning));
  return std::unique_ptr<Backend>(std::move(backend));
}

Status CudaBackend::Load(const Model& model, const BackendOptions& options, const Tuning& tuning) {
  std::vector<uint8_t*> pools;
  for (const KvGroupLayout& group : kv_.groups) {
    const int64_t bytes = group.block_bytes * group.num_blocks;
    HEARTH_ASSIGN(DeviceBlock pool, device_->Take(bytes, "the KV cache"));
    HEARTH_TRY(device_->Zero(pool.at(), pool.size()));
    pools.push_back(pool.at());
    pools_.push_back(std::move(pool));
  }
  {
    ThreadPool workers(options.num_threads);
    // Arranging and copying are told as one: two halves of the way.
    const auto half = [&](bool is_second) -> DeviceModel::Progress {
      if (!options.on_progress) return {};
      return [&, is_second](int64_t done, int64_t total) {
        options.on_progress(is_second ? total + done : done, 2 * total);
      };
    };
    HEARTH_ASSIGN(const std::unique_ptr<PackedModel> packed,
                  PackedModel::Make(model, workers, half(false)));
    HEARTH_ASSIGN(model_, DeviceModel::Make(*device_, *packed, half(true)));
  }
  sizes_.reads_supers = model_->reads_supers();
  HEARTH_ASSIGN(forward_,
                DeviceForward::Make(*device_, *model_, kv_, std::move(pools), sizes_, tuning));
  input_ = std::make_unique<StepInput>(*device_, model_->spec(), kv_, sizes_.tokens);
  graphs_ = std::make_unique<StepGraphs>(*device_);
  HEARTH_ASSIGN(logits_,
                device_->TakePinned(int64_t{4} * sizes_.rows * spec().vocab_size, "logits"));
  HEARTH_ASSIGN(tops_, device_->TakePinned(TopBytes(sizes_.rows), "the largest logits"));
  return Status();
}

// Host memory for what a step brings back, more than usual if need be.
Status CudaBackend::Reserve(const StepPlan& plan) {
  const int64_t logits = int64_t{4} * plan.num_rows * spec().vocab_size;
  if (logits > static_cast<int64_t>(logits_.size())) {
    logits_ = PinnedBlock();
    HEARTH_ASSIGN(logits_, device_->TakePinned(logits, "logits"));
  }
  if (TopBytes(plan.num_rows) > static_cast<int64_t>(tops_.size())) {
    tops_ = PinnedBlock();
    HEARTH_ASSIGN(tops_, device_->TakePinned(TopBytes(plan.num_rows), "the largest logits"));
  }
  int64_t copies = 0;
  for (const BlockCopy& copy : plan.copies) copies += kv_.group(copy.group).block_bytes;
  if (copies > static_cast<int64_t>(staging_.size())) {
    staging_ = PinnedBlock();
    HEARTH_ASSIGN(staging_, device_->TakePinned(copies, "copies of blocks"));
  }
  return Status();
}

Status CudaBackend::Begin(const StepPlan& plan) {
  HEARTH_CHECK(plan_ == nullptr);
  HEARTH_TRY(CheckAsks(plan, vocab_size()));
  for (const RowAsk& ask : plan.asks) {
    if (TopOf(ask) <= kMaxTop) continue;
    return Error(Code::kInvalid, "a row is asked for %d logits; a GPU gives %d, or all", ask.top,
                 kMaxTop);
  }
  HEARTH_TRY(CheckPlan(plan, {.kv = kv_,
                              .vocab_size = vocab_size(),
                              .hidden_size = 0,
                              .max_context = spec().max_context,
                              .max_step_tokens = sizes_.tokens}));
  HEARTH_TRY(device_->Enter());
  HEARTH_TRY(Reserve(plan));
  if (!plan.slices.empty()) HEARTH_TRY(input_->Build(plan));
  plan_ = &plan;
  failed_ = Start(plan);
  return Status();
}

Status CudaBackend::Start(const StepPlan& plan) {
  HEARTH_TRY(StartCopies(plan));
  if (!plan.slices.empty()) {
    HEARTH_TRY(input_->Send());
    HEARTH_TRY(StartLaunches(plan));
  }
  return device_->Mark();
}

Status CudaBackend::StartCopies(const StepPlan& plan) {
  std::byte* at = staging_.data();
  for (const BlockCopy& copy : plan.copies) {
    const size_t bytes = copy.to_host.size() + copy.from_host.size();
    if (!copy.to_host.empty()) {
      HEARTH_TRY(device_->CopyOut(at, BlockAt(copy), bytes));
    } else {
      std::memcpy(at, copy.from_host.data(), bytes);
      HEARTH_TRY(device_->CopyIn(BlockAt(copy), at, bytes));
    }
    at += bytes;
  }
  return Status();
}

// A step whose results fit is one graph, once its shape is known; another has its rows piece by
// piece.
Status CudaBackend::StartLaunches(const StepPlan& plan) {
  if (input_->is_decode && plan.num_rows <= sizes_.rows) {
    const auto ask = [&]() -> Status {
      HEARTH_TRY(forward_->Layers(*input_));
      return forward_->Rows(*input_, 0, plan.num_rows);
    };
    HEARTH_TRY(graphs_->Run(input_->shape(), ask));
    return StartRowCopies(plan, 0, plan.num_rows);
  }
  HEARTH_TRY(forward_->Layers(*input_));
  for (int first = 0; first < plan.num_rows; first += sizes_.rows) {
    const int count = std::min(sizes_.rows, plan.num_rows - first);
    HEARTH_TRY(forward_->Rows(*input_, first, count));
    HEARTH_TRY(StartRowCopies(plan, first, count));
  }
  return Status();
}

// Of rows [first, first + count) the logits of those that want all, neighbours in one copy where
// nothing lies between them, and the largest of the others.
Status CudaBackend::StartRowCopies(const StepPlan& plan, int first, int count) {
  const auto row_bytes = static_cast<size_t>(vocab_size()) * sizeof(float);
  const bool is_dense = forward_->logits_stride() == vocab_size();
  for (int i = 0, next; i < count; i = next) {
    next = i + 1;
    if (TopOf(plan.AskOf(first + i)) > 0) continue;
    while (is_dense && next < count && TopOf(plan.AskOf(first + next)) == 0) ++next;
    HEARTH_TRY(device_->CopyOut(logits_.data() + static_cast<size_t>(first + i) * row_bytes,
                                forward_->logits() + i * forward_->logits_stride(),
                                static_cast<size_t>(next - i) * row_bytes));
  }
  const auto top_bytes = static_cast<size_t>(input_->most_top) * sizeof(Candidate);
  return device_->CopyOut(tops_.data() + static_cast<size_t>(first) * top_bytes,
                          forward_->tops(input_->most_top), static_cast<size_t>(count) * top_bytes);
}

std::span<const RowResult> CudaBackend::Results(const StepPlan& plan) {
  static_assert(sizeof(Candidate) == sizeof(TokenLogit) &&
                offsetof(Candidate, logit) == offsetof(TokenLogit, logit));
  const auto vocab = static_cast<size_t>(vocab_size());
  const std::span logits(reinterpret_cast<const float*>(logits_.data()),
                         static_cast<size_t>(plan.num_rows) * vocab);
  const auto most = static_cast<size_t>(input_->most_top);
  const std::span tops(reinterpret_cast<const TokenLogit*>(tops_.data()),
                       static_cast<size_t>(plan.num_rows) * most);
  results_.assign(static_cast<size_t>(plan.num_rows), RowResult());
  for (size_t row = 0; row < results_.size(); ++row) {
    const RowAsk ask = plan.AskOf(static_cast<int>(row));
    if (ask.kind == RowAsk::Kind::kLogits) {
      results_[row].logits = logits.subspan(row * vocab, vocab);
    } else if (ask.kind == RowAsk::Kind::kTop) {
      results_[row].top = tops.subspan(row * most, static_cast<size_t>(ask.top));
    } else {
      results_[row].token = tops[row * most].token;
    }
  }
  return results_;
}

Result<std::span<const RowResult>> CudaBackend::Finish() {
  HEARTH_CHECK(plan_ != nullptr);
  const StepPlan& plan = *std::exchange(plan_, nullptr);
  HEARTH_TRY(device_->Enter());
  if (!failed_.ok()) {
    device_->Drain();
    return std::exchange(failed_, Status());
  }
  if (Status waited = device_->Wait(); !waited.ok()) {
    device_->Drain();
    return waited;
  }
  const std::byte* at = staging_.data();
  for (const BlockCopy& copy : plan.copies) {
    const size_t bytes = copy.to_host.size() + copy.from_host.size();
    if (!copy.to_host.empty()) std::memcpy(copy.to_host.data(), at, bytes);
    at += bytes;
  }
  return Results(plan);
}

// --- how one is chosen -----------------------------------------------------------------------

class CudaFactory final : public BackendFactory {
 public:
  explicit CudaFactory(std::span<const std::byte> image) : image_(image) {}
  std::string_view name() const override { return "cuda"; }

  Result<BackendOptions> Complete(const BackendOptions& options) const override {
    HEARTH_ASSIGN(const int index, IndexOf(options.device));
    if (image_.empty()) {
      return Error(Code::kUnsupported,
                   "this program was built without CUDA kernels; use --device cpu, or build it "
                   "after `./dev setup cuda`");
    }
    HEARTH_ASSIGN(const DeviceFacts facts, FactsOf(index));
    if (!options.isa.empty() && options.isa != facts.level) {
      return Error(Code::kInvalid, "--isa %s is for the CPU; leave it out with --device %s",
                   Quoted(options.isa).c_str(), options.device.c_str());
    }
    if (options.phases != nullptr) {
      return Error(Code::kUnsupported, "--phases measures the CPU backend; leave it out with %s",
                   options.device.c_str());
    }
    if (options.kv_code != KvCode::kInt16) {
      return Error(Code::kUnsupported, "--kv-type int8 is for the CPU; leave it out with %s",
                   options.device.c_str());
    }
    if (options.numerics != Numerics::kExact) {
      return Error(Code::kUnsupported, "--numerics fast is for the CPU; leave it out with %s",
                   options.device.c_str());
    }
    BackendOptions complete = options;
    complete.isa = facts.level;
    if (complete.num_threads <= 0) complete.num_threads = ReadTopology().useful_threads();
    return complete;
  }

  Result<BackendPlan> Plan(const Model& model, const BackendOptions& options) const override {
    BackendPlan plan;
    HEARTH_ASSIGN(plan.options, Complete(options));
    HEARTH_ASSIGN(const int index, IndexOf(options.device));
    HEARTH_ASSIGN(const DeviceFacts facts, FactsOf(index));
    HEARTH_TRY(CheckShapes(model, facts));
    plan.kv = CpuKvLayout(model.spec);
    plan.weight_bytes = DeviceModel::BytesFor(model);
    StepSizes sizes{options.max_step_tokens, 0, DeviceModel::ReadsSupersOf(model)};
    plan.step_bytes = StepBytesOf(model.spec, sizes);
    sizes.rows = std::max(1, options.max_rows);
    plan.result_bytes = StepBytesOf(model.spec, sizes) - plan.step_bytes;
    plan.warning = Printf("%s (%s) is verified by emulation, not yet on hardware",
                          options.device.c_str(), facts.name.c_str());
    return plan;
  }

  Result<uint64_t> UsableBytes(const BackendOptions& options) const override {
    HEARTH_ASSIGN(const int index, IndexOf(options.device));
    HEARTH_ASSIGN(const std::unique_ptr<Device> device, Device::Open(index, {}));
    HEARTH_ASSIGN(const uint64_t free, device->FreeBytes());
    return UsableOf(free);
  }

  Result<std::unique_ptr<Backend>> Open(const Model& model,
                                        const BackendPlan& plan) const override {
    HEARTH_ASSIGN(const int index, IndexOf(plan.options.device));
    HEARTH_ASSIGN(std::unique_ptr<Device> device, Device::Open(index, image_));
    const Tuning tuning = TuningOf(device->facts());
    return CudaBackend::Make(model, plan, std::move(device), tuning);
  }

 private:
  // What `hearth gpu tune` left for this card. A file that cannot be read counts as none: it is
  // about speed alone.
  Tuning TuningOf(const DeviceFacts& facts) const {
    const std::string path = TuningPath(ProcessEnvironment());
    Result<std::string> driver = DriverVersion();
    if (path.empty() || !driver.ok()) return Tuning();
    Result<Tuning> tuning = ReadTuning(path, TuningKey(facts, *driver, image_));
    return tuning.ok() ? *tuning : Tuning();
  }

  const std::span<const std::byte> image_;
};

}  // namespace
}  // namespace cuda

const BackendFactory& CudaBackends() {
  static const cuda::CudaFactory factory(cuda::Fatbin());
  return factory;
}

std::unique_ptr<BackendFactory> CudaBackendsWith(std::span<const std::byte> image) {
  return std::make_unique<cuda::CudaFactory>(image);
}

}  // namespace hearth
