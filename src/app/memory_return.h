// SPDX-License-Identifier: Apache-2.0
// Gives memory that requests had back to the system. glibc keeps what was freed for the next who
// asks: after forty replies that nobody read most of what they had held, for good.
#pragma once
#include <cstdint>
#include <functional>
#include <thread>

#include "base/mutex.h"
namespace hearth {

// Looked at every second: when so much less is held than lately that giving it back is worth a walk
// through the allocator's lists. Pure.
class FreedWatch {
 public:
  static constexpr int64_t kWorth = int64_t{24} << 20;
  // What comes and goes all the time is left where it is, but for once in so many looks.
  static constexpr int kRest = 5;
  // `held`: by all requests now. What is no longer counted is about to be freed, so the answer
  // comes one look later, and once more after a rest: some of it is freed late.
  bool IsDue(int64_t held);

 private:
  int64_t most_ = 0;  // since it was due
  bool was_worth_ = false, is_owed_ = false;
  int rest_ = 0;
};

// Thread: its own, which does nothing else and holds no lock of the server's.
class MemoryReturn {
 public:
  MemoryReturn(std::function<int64_t()> held, std::function<void()> give_back);
  // glibc's, by malloc_trim.
  explicit MemoryReturn(std::function<int64_t()> held);
  ~MemoryReturn();
  MemoryReturn(const MemoryReturn&) = delete;
  MemoryReturn& operator=(const MemoryReturn&) = delete;

 private:
  void Run();

  const std::function<int64_t()> held_;
  const std::function<void()> give_back_;
  Mutex mu_;
  CondVar changed_;
  bool is_ending_ HEARTH_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace hearth
