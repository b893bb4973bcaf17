// SPDX-License-Identifier: Apache-2.0
// One connection of a download: it asks for a span of the file and writes what comes, to the byte
// and never beyond.
#pragma once
#include <chrono>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "hub/partial_file.h"
#include "hub/transport.h"
namespace hearth {

// Thread: that of the transport.
class Lane final : public FetchSink {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Lane(PartialFile& file) : file_(file) {}
  // `takes_whole`: if the server sends the whole file instead, it is taken from its start.
  void Start(uint64_t at, uint64_t end, bool takes_whole);
  void Stop() { is_busy_ = false; }
  bool OnHead(const HttpHead& head) override;
  bool OnBytes(std::span<const std::byte> bytes) override;

  bool is_busy() const { return is_busy_; }
  bool is_done() const { return at_ >= end_; }
  uint64_t at() const { return at_; }
  uint64_t end() const { return end_; }
  uint64_t got() const { return got_; }  // bytes of use, since Start
  Clock::time_point started() const { return started_; }
  Clock::time_point last_byte() const { return last_byte_; }
  // The server gives whole files only, and whether this lane was to take it.
  bool saw_whole() const { return saw_whole_; }
  bool takes_whole() const { return takes_whole_; }
  // Why the answer was of no use, for people; empty when it was.
  const std::string& complaint() const { return complaint_; }
  // The disk's trouble; it will not pass by asking again.
  const Status& disk() const { return disk_; }

 private:
  bool Refuse(std::string why);
  // What of `bytes` belongs to the part at `at_`; how many that were.
  Result<size_t> Store(std::span<const std::byte> bytes);

  PartialFile& file_;
  bool is_busy_ = false, takes_whole_ = false, saw_whole_ = false;
  uint64_t at_ = 0, end_ = 0, skip_ = 0, got_ = 0;
  Clock::time_point started_{}, last_byte_{};
  std::string complaint_;
  Status disk_;
};

}  // namespace hearth
