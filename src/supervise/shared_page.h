// SPDX-License-Identifier: Apache-2.0
// A page of memory that a supervisor and its worker share: what the worker is doing, readable after
// it died, and what became of the workers before it.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "supervise/restart_policy.h"
namespace hearth {

// What the supervisor tells a new worker.
struct WorkerHistory {
  uint64_t num_restarts = 0;
  // Of the worker before; nothing while num_restarts is 0.
  bool last_by_signal = false;
  int last_number = 0;
  int64_t last_end_s = 0;  // since 1970
};

// Memory without a name (memfd), so that nothing is left behind. What the other side wrote is never
// trusted to be whole: a worker can die in the middle of a word.
// Thread: any.
class SharedPage {
 public:
  static constexpr size_t kMaxFlights = 1024;  // requests beyond it are worked on unrecorded

  static Result<std::unique_ptr<SharedPage>> Make();
  // Of the other process; takes the descriptor over.
  static Result<std::unique_ptr<SharedPage>> Adopt(int descriptor);
  ~SharedPage();
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;
  int descriptor() const { return descriptor_; }

  // The supervisor's half. Reset comes between two workers.
  void Reset(const WorkerHistory& history, std::span<const PoisonList::Entry> requests);
  std::vector<RequestDigest> in_flight() const;
  std::vector<RequestDigest> landed() const;  // suspects that came to their end
  uint64_t num_beats() const;

  // 32 bytes that nobody else knows, the same for all workers: what one of them signed another can
  // check.
  std::string secret() const;

  // The worker's half.
  void Beat();
  WorkerHistory history() const;
  bool IsRefused(const RequestDigest& digest) const;
  static constexpr int kNoPlace = -1;
  // Where the request is recorded, for End; kNoPlace when there is no room.
  int Begin(const RequestDigest& digest);
  // `landed`: it was worked on to its end. kNoPlace does nothing.
  void End(int place, bool landed);

 private:
  struct Layout;
  SharedPage(int descriptor, Layout* layout) : descriptor_(descriptor), layout_(layout) {}
  static Result<std::unique_ptr<SharedPage>> Map(int descriptor);

  const int descriptor_;
  Layout* const layout_;
  mutable Mutex mu_;  // between threads of one process; the other reads without it
  size_t next_ HEARTH_GUARDED_BY(mu_) = 0;  // where a free place is looked for first
};

}  // namespace hearth
