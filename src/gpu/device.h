// SPDX-License-Identifier: Apache-2.0
// One GPU: its context, one stream of work, the kernels, and memory that frees itself. Everything
// that is asked of it runs in the order of asking, and not before Wait is it done.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "gpu/driver.h"
namespace hearth::cuda {

enum class Kernel : uint8_t {
  kNorm,
  kGlu,
  kRope,
  kAttend,
  kCombine,
  kRoute,
  kMxfp4Few,
  kMxfp4Many,
  kQ8Few,
  kQ8Many,
  kQ40,
  kQ41,
  kQ50,
  kQ51,
  kIq4Nl,
  kQ2K,
  kQ3KFew,
  kQ3KMany,
  kQ4K,
  kQ5K,
  kQ6KFew,
  kQ6KMany,
  kIq4XsFew,
  kIq4XsMany,
  kF32,
  kF16,
  kBf16,
  kEmbed,
  kSort,
  kGather,
  kNormRoute,
  kDecode,
  kTop,
  kFlash64,
  kFlash128,
  kFlashReduce,
};
inline constexpr size_t kNumKernels = static_cast<size_t>(Kernel::kFlashReduce) + 1;

struct Grid {
  int64_t x = 1, y = 1, z = 1;
  int threads = 32;
  int64_t shared_bytes = 0;
};

// What is known of a device before it is opened.
struct DeviceFacts {
  std::string name;    // "NVIDIA GeForce RTX 4090"
  std::string level;   // "sm_89"
  int capability = 0;  // 89
  int max_shared_bytes = 0;
  uint64_t total_bytes = 0;
  // For people; 0 where the driver does not tell.
  int num_processors = 0;
  double nominal_bandwidth = 0;  // of its memory, in bytes per second
  bool runs_kernels() const;     // its capability is one that they are compiled for
};
// kNotFound when there is no such device, kUnsupported when there is no driver.
Result<DeviceFacts> FactsOf(int index);
// The number in "cuda:0"; kInvalid for anything else.
Result<int> IndexOf(const std::string& device);
Result<int> CountDevices();
Result<std::string> DriverVersion();  // "13.0", the CUDA that it knows

// Names as in cuda/kernels.cu, by Kernel.
const char* NameOf(Kernel kernel);

class Device;

// Memory of a device, or of the host for copies. Thread: as its device. Its device outlives it.
class Block {
 public:
  Block() = default;
  Block(Block&& other) noexcept { *this = std::move(other); }
  Block& operator=(Block&& other) noexcept;
  ~Block();
  size_t size() const { return size_; }

 protected:
  friend class Device;
  Device* device_ = nullptr;
  bool is_host_ = false;
  uint64_t at_ = 0;
  size_t size_ = 0;
};
class DeviceBlock : public Block {
 public:
  // An address on the device: kernels may follow it, this process may not.
  template <class T = uint8_t>
  T* at(int64_t offset = 0) const {
    return reinterpret_cast<T*>(at_ + static_cast<uint64_t>(offset));
  }
};
class PinnedBlock : public Block {
 public:
  std::byte* data() const { return reinterpret_cast<std::byte*>(at_); }
};

// Launches that were written down together, asked for as one. Thread: as its device, which outlives
// it. Arguments are those of the time of writing.
class LaunchGraph {
 public:
  LaunchGraph() = default;
  LaunchGraph(LaunchGraph&& other) noexcept { *this = std::move(other); }
  LaunchGraph& operator=(LaunchGraph&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(executable_, other.executable_);
    return *this;
  }
  ~LaunchGraph();

 private:
  friend class Device;
  Device* device_ = nullptr;
  CuGraphExec executable_ = nullptr;
};

// Thread: one at a time; each must call Enter first.
class Device {
 public:
  // `image`: the kernels; without one nothing can be launched. kUnsupported for a device they do
  // not run on.
  static Result<std::unique_ptr<Device>> Open(int index, std::span<const std::byte> image);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceFacts& facts() const { return facts_; }
  // Binds the calling thread to it. After an error that a device does not recover from, this and
  // everything below returns that error.
  Status Enter();
  Result<uint64_t> FreeBytes();

  // kExhausted with `what` for people.
  Result<DeviceBlock> Take(int64_t bytes, const char* what);
  Result<PinnedBlock> TakePinned(int64_t bytes, const char* what);
  // Memory of both: kernels follow its address, and so does this process while none runs.
  Result<PinnedBlock> TakeManaged(int64_t bytes, const char* what);

  // Host memory must be pinned, and stay as it is until Wait.
  Status CopyIn(void* to, const void* from, size_t bytes);
  Status CopyOut(void* to, const void* from, size_t bytes);
  Status Fill(void* at, uint8_t byte, size_t bytes);
  Status Zero(void* at, size_t bytes) { return Fill(at, 0, bytes); }
  template <class Args>
  Status Launch(Kernel kernel, const Grid& grid, const Args& args) {
    return LaunchBytes(kernel, grid, &args);
  }
  // The same of a kernel whose arguments are only known as bytes.
  Status LaunchBytes(Kernel kernel, const Grid& grid, const void* args);
  // Launches that `ask` asks for are not done but written down. `ask` may do nothing else with the
  // device, and nothing with it that was not done before: a kernel's shared memory is arranged for
  // at its first launch.
  Result<LaunchGraph> Record(const std::function<Status()>& ask);
  Status Launch(const LaunchGraph& graph);
  // Marks the end of what was asked for so far; Wait returns once it is reached.
  Status Mark();
  Status Wait();
  // Seconds that the device took for what `ask` asks for; waits for it.
  Result<double> Time(const std::function<Status()>& ask);
  // Until nothing is under way, whatever became of it.
  void Drain();

 private:
  friend class Block;
  friend class LaunchGraph;
  explicit Device(const Driver& driver) : driver_(driver) {}
  Status Load(int index, std::span<const std::byte> image);
  Status Check(CuResult result, const char* doing);
  void Free(const Block& block);

  const Driver& driver_;
  DeviceFacts facts_;
  CuDevice device_ = 0;
  CuContext context_ = nullptr;
  CuModule module_ = nullptr;
  CuStream stream_ = nullptr;
  CuEvent event_ = nullptr;
  std::array<CuFunction, kNumKernels> functions_{};
  std::array<int64_t, kNumKernels> shared_bytes_{};  // what each may take so far
  Status lost_;
};

}  // namespace hearth::cuda
