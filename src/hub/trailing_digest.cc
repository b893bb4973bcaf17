// SPDX-License-Identifier: Apache-2.0
#include "hub/trailing_digest.h"

#include <algorithm>
#include <vector>

namespace hearth {

TrailingDigest::TrailingDigest(const PartialFile& file, DigestKind kind)
    : file_(file), kind_(kind), thread_([this] { Follow(); }) {}

TrailingDigest::~TrailingDigest() {
  {
    const MutexLock lock(mu_);
    is_stopped_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void TrailingDigest::Advance(uint64_t bound) {
  const MutexLock lock(mu_);
  bound_ = std::max(bound_, bound);
  changed_.NotifyAll();
}

Result<Digest> TrailingDigest::Finish() {
  const MutexLock lock(mu_);
  bound_ = file_.size();
  changed_.NotifyAll();
  changed_.Wait(mu_, [&]() HEARTH_REQUIRES(mu_) { return is_finished_; });
  if (!status_.ok()) return status_;
  return digest_;
}

void TrailingDigest::Follow() {
  Digester digester(kind_, file_.size());
  constexpr size_t kPiece = size_t{1} << 20;
  std::vector<std::byte> piece(kPiece);
  uint64_t at = 0;
  Status status;
  while (at < file_.size() && status.ok()) {
    uint64_t bound = 0;
    {
      const MutexLock lock(mu_);
      changed_.Wait(mu_, [&]() HEARTH_REQUIRES(mu_) { return is_stopped_ || bound_ > at; });
      if (is_stopped_) return;
      bound = bound_;
    }
    const size_t length = std::min<uint64_t>(kPiece, bound - at);
    status = kind_ == DigestKind::kNone ? Status() : file_.ReadAt(at, {piece.data(), length});
    digester.Add({piece.data(), length});
    at += length;
  }
  const MutexLock lock(mu_);
  status_ = std::move(status);
  digest_ = digester.Finish();
  is_finished_ = true;
  changed_.NotifyAll();
}

}  // namespace hearth
