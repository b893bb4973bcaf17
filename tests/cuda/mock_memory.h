// SPDX-License-Identifier: Apache-2.0
// The device memory of the mock driver: address space that nobody may touch but while a stream's
// work runs, with redzones around every allocation.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "machine.h"
namespace hearth::cuda {

class MockMemory {
 public:
  MockMemory() = default;
  ~MockMemory();
  MockMemory(const MockMemory&) = delete;
  MockMemory& operator=(const MockMemory&) = delete;
  void Open(size_t bytes);
  // 0 when there is no room.
  uint64_t Take(size_t bytes);
  // Of the host's own memory, which counts for nothing: the host may touch it at any time.
  uint64_t TakeManaged(size_t bytes);
  bool Free(uint64_t at);
  size_t num_alive() const { return alive_.size() + managed_.size(); }
  size_t total_bytes() const { return total_; }
  size_t free_bytes() const { return total_ - used_; }
  const DeviceMemory& ranges() const { return ranges_; }
  // What was written beside an allocation, or empty. While it is opened.
  std::string BrokenRedzone() const;

  // While it lives the memory can be touched.
  class Opened {
   public:
    explicit Opened(const MockMemory& memory);
    ~Opened();

   private:
    const MockMemory& memory_;
  };

 private:
  static constexpr size_t kRedzone = 256;
  void Protect(bool opens) const;

  uint8_t* base_ = nullptr;
  size_t space_ = 0, next_ = 0;  // of the address space; addresses are not used twice
  size_t total_ = 0, used_ = 0;
  std::map<uint64_t, size_t> alive_;
  std::map<uint64_t, std::unique_ptr<uint8_t[]>> managed_;
  DeviceMemory ranges_;
};

}  // namespace hearth::cuda
