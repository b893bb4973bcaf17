// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda_backend.h"

#include <algorithm>
#include <charconv>
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
#include "gpu/step_input.h"
#include "platform/thread_pool.h"
#include "platform/topology.h"

namespace hearth {
namespace cuda {
namespace {

// Asks for a whole step in Begin and waits for it in Finish. What fails on the way is told by
// Finish; the next step starts anew, unless the device is lost: then every step fails with the
// reason.
class CudaBackend final : public Backend {
 public:
  static Result<std::unique_ptr<Backend>> Make(const Model& model, const BackendPlan& plan,
                                               std::unique_ptr<Device> device);
  ~CudaBackend() override {
    if (device_->Enter().ok()) device_->Drain();
  }
  std::string_view name() const override { return device_->facts().level; }
  KvLayout kv_layout() const override { return kv_; }
  int vocab_size() const override { return spec().vocab_size; }
  Status Begin(const StepPlan& plan) override;
  Result<std::span<const RowResult>> Finish() override;

 private:
  CudaBackend(std::unique_ptr<Device> device, const BackendPlan& plan)
      : device_(std::move(device)),
        kv_(plan.kv),
        sizes_{plan.options.max_step_tokens, std::max(1, plan.options.max_rows)} {}
  const ModelSpec& spec() const { return model_->spec(); }
  Status Load(const Model& model, const BackendOptions& options);
  Status Reserve(const StepPlan& plan);
  Status Start(const StepPlan& plan);
  Status StartCopies(const StepPlan& plan);
  Status StartRows(const StepPlan& plan);
  uint8_t* BlockAt(const BlockCopy& copy) const {
    const int64_t bytes = kv_.group(copy.group).block_bytes;
    return pools_[static_cast<size_t>(copy.group)].at(static_cast<int64_t>(copy.block) * bytes);
  }

  const std::unique_ptr<Device> device_;
  const KvLayout kv_;
  const StepSizes sizes_;
  std::unique_ptr<DeviceModel> model_;
  std::vector<DeviceBlock> pools_;  // by group
  std::unique_ptr<DeviceForward> forward_;
  std::unique_ptr<StepInput> input_;
  PinnedBlock logits_;   // [rows, vocab_size]
  PinnedBlock staging_;  // blocks that are copied, one after the other
  RowResults results_;
  const StepPlan* plan_ = nullptr;
  Status failed_;  // of the step that was begun
};

Result<std::unique_ptr<Backend>> CudaBackend::Make(const Model& model, const BackendPlan& plan,
                                                   std::unique_ptr<Device> device) {
  std::unique_ptr<CudaBackend> backend(new CudaBackend(std::move(device), plan));
  HEARTH_TRY(backend->Load(model, plan.options));
  return std::unique_ptr<Backend>(std::move(backend));
}

Status CudaBackend::Load(const Model& model, const BackendOptions& options) {
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
  HEARTH_ASSIGN(forward_, DeviceForward::Make(*device_, *model_, kv_, std::move(pools), sizes_));
  input_ = std::make_unique<StepInput>(*device_, model_->spec(), kv_, sizes_.tokens);
  HEARTH_ASSIGN(logits_,
                device_->TakePinned(int64_t{4} * sizes_.rows * spec().vocab_size, "logits"));
  return Status();
}

// Host memory for what a step brings back, more than usual if need be.
Status CudaBackend::Reserve(const StepPlan& plan) {
  const int64_t logits = int64_t{4} * plan.num_rows * spec().vocab_size;
  if (logits > static_cast<int64_t>(logits_.size())) {
    logits_ = PinnedBlock();
    HEARTH_ASSIGN(logits_, device_->TakePinned(logits, "logits"));
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
    HEARTH_TRY(forward_->Layers(*input_));
    HEARTH_TRY(StartRows(plan));
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

Status CudaBackend::StartRows(const StepPlan& plan) {
  const auto row_bytes = static_cast<size_t>(vocab_size()) * sizeof(float);
  for (int first = 0; first < plan.num_rows; first += sizes_.rows) {
    const int count = std::min(sizes_.rows, plan.num_rows - first);
    HEARTH_TRY(forward_->Logits(*input_, first, count));
    std::byte* to = logits_.data() + static_cast<size_t>(first) * row_bytes;
    if (forward_->logits_stride() == vocab_size()) {
      HEARTH_TRY(device_->CopyOut(to, forward_->logits(), static_cast<size_t>(count) * row_bytes));
      continue;
    }
    for (int i = 0; i < count; ++i) {
      HEARTH_TRY(device_->CopyOut(to + static_cast<size_t>(i) * row_bytes,
                                  forward_->logits() + i * forward_->logits_stride(), row_bytes));
    }
  }
  return Status();
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
  const auto vocab = static_cast<size_t>(vocab_size());
  const std::span logits(reinterpret_cast<const float*>(logits_.data()),
                         static_cast<size_t>(plan.num_rows) * vocab);
  return results_.Fill(plan, logits, vocab);
}

// --- how one is chosen -----------------------------------------------------------------------

constexpr std::string_view kPrefix = "cuda:";

Result<int> IndexOf(const std::string& device) {
  const std::string_view text = device;
  int index = 0;
  if (text.starts_with(kPrefix)) {
    const char* begin = text.data() + kPrefix.size();
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, index);
    if (error == std::errc() && stop == end && index >= 0) return index;
  }
  return Error(Code::kInvalid, "--device %s: expected cpu, cuda:0, cuda:1 ... or auto",
               Quoted(device).c_str());
}

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
    plan.step_bytes = StepBytesOf(model.spec, {options.max_step_tokens, 0});
    plan.result_bytes =
        int64_t{4} * std::max(1, options.max_rows) * PaddedTo16(model.spec.vocab_size);
    plan.warning = Printf("%s (%s) is verified by emulation, not yet on hardware",
                          options.device.c_str(), facts.name.c_str());
    return plan;
  }

  Result<uint64_t> UsableBytes(const BackendOptions& options) const override {
    HEARTH_ASSIGN(const int index, IndexOf(options.device));
    HEARTH_ASSIGN(const std::unique_ptr<Device> device, Device::Open(index, {}));
    HEARTH_ASSIGN(const uint64_t free, device->FreeBytes());
    // The driver takes some for itself as it goes.
    return free - std::min<uint64_t>(free / 16, uint64_t{256} << 20);
  }

  Result<std::unique_ptr<Backend>> Open(const Model& model,
                                        const BackendPlan& plan) const override {
    HEARTH_ASSIGN(const int index, IndexOf(plan.options.device));
    HEARTH_ASSIGN(std::unique_ptr<Device> device, Device::Open(index, image_));
    return CudaBackend::Make(model, plan, std::move(device));
  }

 private:
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
