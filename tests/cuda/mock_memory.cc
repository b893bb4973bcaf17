// SPDX-License-Identifier: Apache-2.0
#include "mock_memory.h"

#include <sys/mman.h>

#include <cstring>

namespace hearth::cuda {
namespace {

constexpr uint8_t kRubbish = 0xa5, kFence = 0x5a;

}  // namespace

void MockMemory::Open(size_t bytes) {
  total_ = bytes;
  space_ = 4 * bytes + (size_t{64} << 20);
  void* at = mmap(nullptr, space_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) Refuse("mock driver", "no address space");
  base_ = static_cast<uint8_t*>(at);
}

MockMemory::~MockMemory() {
  if (base_ != nullptr) munmap(base_, space_);
}

void MockMemory::Protect(bool opens) const {
  if (mprotect(base_, next_ + 4096, opens ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) {
    Refuse("mock driver", "mprotect");
  }
}

MockMemory::Opened::Opened(const MockMemory& memory) : memory_(memory) { memory_.Protect(true); }
MockMemory::Opened::~Opened() { memory_.Protect(false); }

uint64_t MockMemory::Take(size_t bytes) {
  const size_t padded = (bytes + 255) / 256 * 256 + 2 * kRedzone;
  if (bytes > free_bytes() || next_ + padded + 4096 > space_) return 0;
  uint8_t* at = base_ + next_ + kRedzone;
  next_ += padded;
  used_ += bytes;
  const Opened opened(*this);
  std::memset(at - kRedzone, kFence, padded);
  // Weights and caches are written before they are read; rubbish at the start shows who does not.
  std::memset(at, kRubbish, bytes < 4096 ? bytes : 4096);
  const auto address = reinterpret_cast<uint64_t>(at);
  alive_[address] = bytes;
  ranges_.Add(address, bytes);
  return address;
}

uint64_t MockMemory::TakeManaged(size_t bytes) {
  auto owner = std::make_unique<uint8_t[]>(bytes + 256);
  const auto begin = reinterpret_cast<uint64_t>(owner.get());
  const uint64_t at = begin + (256 - begin % 256) % 256;
  managed_[at] = std::move(owner);
  ranges_.Add(at, bytes);
  return at;
}

bool MockMemory::Free(uint64_t at) {
  if (managed_.erase(at) > 0) {
    ranges_.Remove(at);
    return true;
  }
  const auto found = alive_.find(at);
  if (found == alive_.end()) return false;
  used_ -= found->second;
  ranges_.Remove(at);
  alive_.erase(found);
  return true;
}

std::string MockMemory::BrokenRedzone() const {
  for (const auto& [at, bytes] : alive_) {
    const auto* begin = reinterpret_cast<const uint8_t*>(at);
    for (size_t i = 1; i <= kRedzone; ++i) {
      if (begin[-static_cast<int64_t>(i)] == kFence && begin[bytes + i - 1] == kFence) continue;
      return "something was written beside an allocation of " + std::to_string(bytes) + " bytes";
    }
  }
  return "";
}

}  // namespace hearth::cuda
