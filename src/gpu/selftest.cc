// SPDX-License-Identifier: Apache-2.0
#include "gpu/selftest.h"

#include <map>
#include <utility>

namespace hearth::cuda {
namespace {

// A GPU as the checks see it. What fails is kept, and nothing is launched from then on: the checks
// go on with memory of the host, and their verdicts count for nothing.
class GpuMachine final : public Machine {
 public:
  explicit GpuMachine(Device& device) : device_(device) {}
  const Status& failed() const { return failed_; }
  std::string name() const override { return device_.facts().name; }

  void Run(const std::string& kernel, const Launch& launch, const void* args, size_t,
           const DeviceMemory&) override {
    if (!failed_.ok()) return;
    failed_ = Launched(kernel, launch, args);
    if (!failed_.ok()) device_.Drain();
  }

  void* TakeShared(size_t bytes) override {
    if (!failed_.ok()) return nullptr;
    Result<PinnedBlock> taken = device_.TakeManaged(static_cast<int64_t>(bytes), "the self test");
    if (!taken.ok()) {
      failed_ = taken.status();
      return nullptr;
    }
    void* at = taken->data();
    blocks_.emplace(at, *std::move(taken));
    return at;
  }
  void FreeShared(void* at) override { blocks_.erase(at); }

 private:
  Status Launched(const std::string& name, const Launch& launch, const void* args) {
    const Grid grid{launch.grid_x, launch.grid_y, launch.grid_z, launch.threads,
                    launch.shared_bytes};
    for (size_t i = 0; i < kNumKernels; ++i) {
      const auto kernel = static_cast<Kernel>(i);
      if (name != NameOf(kernel)) continue;
      HEARTH_TRY(device_.LaunchBytes(kernel, grid, args));
      HEARTH_TRY(device_.Mark());
      return device_.Wait();
    }
    return Error(Code::kUnsupported, "there is no kernel named %s", name.c_str());
  }

  Device& device_;
  Status failed_;
  std::map<void*, PinnedBlock> blocks_;
};

}  // namespace

Status RunSelfTest(int index, std::span<const std::byte> image, CaseGrid grid,
                   const std::function<void(const SelfTestResult&)>& told) {
  HEARTH_ASSIGN(const std::unique_ptr<Device> device, Device::Open(index, image));
  GpuMachine machine(*device);
  for (const Check& check : kChecks) {
    const int64_t before = NumCompared();
    std::string wrong = check.run(machine, grid);
    if (!machine.failed().ok()) return Status(machine.failed()).Within(check.name);
    told({check.name, std::move(wrong), NumCompared() - before});
  }
  return Status();
}

}  // namespace hearth::cuda
