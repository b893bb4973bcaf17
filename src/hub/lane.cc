// SPDX-License-Identifier: Apache-2.0
#include "hub/lane.h"

#include <algorithm>
#include <cinttypes>
#include <utility>

namespace hearth {

void Lane::Start(uint64_t at, uint64_t end, bool takes_whole) {
  at_ = at;
  end_ = end;
  skip_ = got_ = 0;
  is_busy_ = true;
  takes_whole_ = takes_whole;
  saw_whole_ = false;
  started_ = last_byte_ = Clock::now();
  complaint_.clear();
  disk_ = Status();
}

bool Lane::Refuse(std::string why) {
  complaint_ = std::move(why);
  return false;
}

bool Lane::OnHead(const HttpHead& head) {
  last_byte_ = Clock::now();
  if (head.status == 200) {
    // The whole file, from its start: what we have of it is skipped, and the rest is taken.
    if (head.length && *head.length != file_.size()) {
      return Refuse(Printf("the server's file has %" PRIu64 " bytes, expected %" PRIu64,
                           *head.length, file_.size()));
    }
    saw_whole_ = true;
    if (!takes_whole_) return false;
    skip_ = at_;
    end_ = file_.size();
    return true;
  }
  if (head.status != 206) return false;  // the outcome says what it is
  if (head.range_first != at_) {
    return Refuse(Printf("the server sent other bytes than asked for (from %" PRIu64
                         " on instead of %" PRIu64 ")",
                         head.range_first.value_or(0), at_));
  }
  if (head.range_total && *head.range_total != file_.size()) {
    return Refuse(Printf("the server's file has %" PRIu64 " bytes, expected %" PRIu64,
                         *head.range_total, file_.size()));
  }
  return true;
}

Result<size_t> Lane::Store(std::span<const std::byte> bytes) {
  const int part = file_.PartAt(at_);
  const size_t length = std::min<uint64_t>(bytes.size(), std::min(end_, file_.end(part)) - at_);
  // A whole file passes over parts that are here already.
  if (!file_.is_done(part)) {
    HEARTH_TRY(file_.WriteAt(at_, bytes.first(length)));
    got_ += length;
  }
  at_ += length;
  if (at_ == file_.end(part) && !file_.is_done(part)) HEARTH_TRY(file_.Complete(part));
  return length;
}

bool Lane::OnBytes(std::span<const std::byte> bytes) {
  last_byte_ = Clock::now();
  const size_t skipped = std::min<uint64_t>(skip_, bytes.size());
  skip_ -= skipped;
  bytes = bytes.subspan(skipped);
  while (!bytes.empty()) {
    if (is_done()) return Refuse("the server sent more bytes than asked for");
    Result<size_t> stored = Store(bytes);
    if (!stored.ok()) {
      disk_ = std::move(stored).status();
      return false;
    }
    bytes = bytes.subspan(*stored);
  }
  return true;
}

}  // namespace hearth
