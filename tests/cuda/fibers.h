// SPDX-License-Identifier: Apache-2.0
// Functions that run on stacks of their own and hand the processor over when they say so.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
namespace hearth::cuda {

// One function that is under way. Thread: the one that made it.
class Fiber {
 public:
  using Body = void (*)();
  Fiber();
  // Starts over: the next Resume calls `body`, which must end in Leave, not return.
  void Start(Body body);
  // From outside: until the fiber leaves.
  void Resume();
  // From inside, back to whoever resumed it. `for_good`: it will not be resumed again.
  void Leave(bool for_good = false);

 private:
  static constexpr size_t kStackBytes = 96 * 1024;
  std::unique_ptr<uint8_t[]> stack_;
  void* own_ = nullptr;      // its stack pointer while it waits
  void* outside_ = nullptr;  // that of Resume's caller while it runs
  // For the address sanitizer, which must know which stack is in use.
  void* fake_own_ = nullptr;
  void* fake_outside_ = nullptr;
  const void* outside_bottom_ = nullptr;
  size_t outside_size_ = 0;
  bool is_new_ = false;
};

}  // namespace hearth::cuda
