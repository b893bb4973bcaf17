// SPDX-License-Identifier: Apache-2.0
// Masks that take longer than a step, filled between steps on a thread of their own. A sequence
// waits for its mask there, and nobody waits for the sequence: its tokens are the same, later.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "base/mutex.h"
#include "base/result.h"
#include "engine/token_mask.h"
namespace hearth {

struct FilledMask {
  std::vector<uint32_t> bits;
  Status status;
  int64_t took_us = 0;
};

// One after the other, in the order asked. Thread: any; `wake` is called on its own, which must not
// be kept.
class MaskAhead {
 public:
  explicit MaskAhead(std::function<void()> wake);
  ~MaskAhead();  // stops
  // Nobody touches the mask until it is taken back, done.
  void Ask(SeqId id, std::shared_ptr<TokenMask> mask, size_t words);
  struct Done {
    SeqId id{};
    std::unique_ptr<FilledMask> filled;
  };
  std::vector<Done> TakeDone();
  // What is asked and not begun is dropped; nothing wakes anybody afterwards.
  void Stop();

 private:
  struct Job {
    SeqId id{};
    std::shared_ptr<TokenMask> mask;
    size_t words = 0;
  };
  void Loop();

  const std::function<void()> wake_;
  Mutex mu_;
  CondVar asked_;
  std::deque<Job> jobs_ HEARTH_GUARDED_BY(mu_);
  std::vector<Done> done_ HEARTH_GUARDED_BY(mu_);
  bool is_stopping_ HEARTH_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace hearth
