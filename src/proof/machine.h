// SPDX-License-Identifier: Apache-2.0
// What can run a kernel, seen from a check: a launch, the memory that kernels may touch, and the
// machine. Tests bring emulators (tests/cuda), `hearth gpu selftest` brings a GPU.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>
namespace hearth::cuda {

struct Launch {
  int grid_x = 1, grid_y = 1, grid_z = 1;
  int threads = 32;
  int64_t shared_bytes = 0;
};

class DeviceMemory;

// Runs kernels by the names of src/cuda/kernels.cu. A rule of an emulator that a kernel breaks ends
// the process with a line on stderr.
class Machine {
 public:
  virtual ~Machine() = default;
  virtual std::string name() const = 0;
  virtual void Run(const std::string& kernel, const Launch& launch, const void* args, size_t size,
                   const DeviceMemory& memory) = 0;
  // Memory that its kernels and this process can follow alike, aligned to 256 bytes; null: any
  // memory of the process is.
  virtual void* TakeShared(size_t) { return nullptr; }
  virtual void FreeShared(void*) {}
};

// "Device" memory that this process may touch while no kernel runs. Its ranges are known, so that
// an emulator can refuse any other address. Every range is an allocation of its own, which the
// address sanitizer watches too.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(Machine& machine) : machine_(&machine) {}
  ~DeviceMemory() {
    for (void* at : shared_) machine_->FreeShared(at);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Aligned to 256 bytes, as the driver's is, and filled with rubbish.
  void* Take(size_t bytes) {
    constexpr int kRubbish = 0xa5;
    if (void* at = machine_ == nullptr ? nullptr : machine_->TakeShared(bytes); at != nullptr) {
      std::memset(at, kRubbish, bytes);
      shared_.push_back(at);
      return at;
    }
    const size_t padded = bytes + 256;
    auto owner = std::make_unique<uint8_t[]>(padded);
    std::memset(owner.get(), kRubbish, padded);
    uint8_t* at = owner.get() + (256 - reinterpret_cast<uintptr_t>(owner.get()) % 256) % 256;
    ranges_[reinterpret_cast<uint64_t>(at)] = bytes;
    owners_.push_back(std::move(owner));
    return at;
  }
  template <class T>
  T* Make(size_t count) {
    return static_cast<T*>(Take(count * sizeof(T)));
  }
  template <class T>
  T* Copy(const std::vector<T>& values) {
    T* at = Make<T>(values.size());
    if (!values.empty()) std::memcpy(at, values.data(), values.size() * sizeof(T));
    return at;
  }
  template <class T>
  T* Copy(const T* values, size_t count) {
    T* at = Make<T>(count);
    std::memcpy(at, values, count * sizeof(T));
    return at;
  }
  // Memory of somebody else.
  void Add(uint64_t address, size_t bytes) { ranges_[address] = bytes; }
  void Remove(uint64_t address) { ranges_.erase(address); }
  bool Holds(uint64_t address, size_t bytes) const {
    auto range = ranges_.upper_bound(address);
    if (range == ranges_.begin()) return false;
    --range;
    return address + bytes <= range->first + range->second;
  }

 private:
  Machine* const machine_ = nullptr;
  std::map<uint64_t, size_t> ranges_;
  std::vector<std::unique_ptr<uint8_t[]>> owners_;
  std::vector<void*> shared_;
};

}  // namespace hearth::cuda
