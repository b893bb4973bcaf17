// SPDX-License-Identifier: Apache-2.0
// The sum of a file while it is being written: a thread follows behind the bytes that are final, so
// that the sum is there shortly after the last of them.
#pragma once
#include <cstdint>
#include <thread>

#include "base/mutex.h"
#include "base/result.h"
#include "hub/digest.h"
#include "hub/partial_file.h"
namespace hearth {

// Thread: one calls; the object has another. `file` must outlive it and not move.
class TrailingDigest {
 public:
  TrailingDigest(const PartialFile& file, DigestKind kind);
  ~TrailingDigest();
  TrailingDigest(const TrailingDigest&) = delete;
  TrailingDigest& operator=(const TrailingDigest&) = delete;
  // Bytes below `bound` will not change any more.
  void Advance(uint64_t bound);
  // Waits for the rest; all bytes must be final. kIo when the file could not be read.
  Result<Digest> Finish();

 private:
  void Follow();
  const PartialFile& file_;
  const DigestKind kind_;
  Mutex mu_;
  CondVar changed_;
  uint64_t bound_ HEARTH_GUARDED_BY(mu_) = 0;
  bool is_stopped_ HEARTH_GUARDED_BY(mu_) = false;
  bool is_finished_ HEARTH_GUARDED_BY(mu_) = false;
  Digest digest_ HEARTH_GUARDED_BY(mu_);
  Status status_ HEARTH_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace hearth
