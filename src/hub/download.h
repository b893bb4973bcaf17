// SPDX-License-Identifier: Apache-2.0
// One file from a URL to the disk: in parts, over several connections, through drops, stalls and
// overload, checked against its digest before it gets its name.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "hub/digest.h"
#include "hub/retry.h"
#include "hub/transport.h"
namespace hearth {

struct DownloadTask {
  std::string url{}, token{};
  std::string path{};  // where the file will be
  uint64_t size = 0;
  Digest digest{};  // of kind kNone when the source gives none: then only the length is checked
  std::string identity{};  // a commit or ETag
};

struct DownloadPolicy {
  int num_connections = 4;
  // A drop costs at most the connections' parts in another process, nothing in this one. 32 MiB is
  // a third of a second at 100 MB/s: long enough to hide a request's round trips.
  uint64_t part_bytes = uint64_t{32} << 20;
  std::chrono::milliseconds stall_time{30000};  // without a byte
  RetryPolicy retry{};
};

// Thread: the caller of DownloadFile.
class DownloadWatcher {
 public:
  virtual ~DownloadWatcher() = default;
  virtual void OnProgress(uint64_t bytes_here) = 0;  // of this file, earlier attempts included
  virtual void OnNote(const std::string& note) = 0;  // what a person may want to know meanwhile
};

// After success the file is at its path, durable but for its folder's entry, and as long and of the
// digest that the task says. After a failure nothing is at the path; what arrived is kept for the
// next attempt, unless it is wrong.
Status DownloadFile(Transport& transport, const DownloadTask& task, const DownloadPolicy& policy,
                    DownloadWatcher& watcher);

}  // namespace hearth
