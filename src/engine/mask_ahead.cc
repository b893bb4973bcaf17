// SPDX-License-Identifier: Apache-2.0
#include "engine/mask_ahead.h"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "base/thread_name.h"
#include "engine/clock.h"

namespace hearth {
namespace {

// Against threads that compute everybody's steps: a tenth of a core.
constexpr int kNiceness = 10;

}  // namespace

MaskAhead::MaskAhead(std::function<void()> wake)
    : wake_(std::move(wake)), thread_([this] { Loop(); }) {}

MaskAhead::~MaskAhead() { Stop(); }

void MaskAhead::Stop() {
  {
    const MutexLock lock(mu_);
    is_stopping_ = true;
  }
  asked_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void MaskAhead::Ask(SeqId id, std::shared_ptr<TokenMask> mask, size_t words) {
  {
    const MutexLock lock(mu_);
    jobs_.push_back({id, std::move(mask), words});
  }
  asked_.NotifyOne();
}

std::vector<MaskAhead::Done> MaskAhead::TakeDone() {
  const MutexLock lock(mu_);
  return std::exchange(done_, {});
}

void MaskAhead::Loop() {
  NameThread("engine-masks");
  const auto self = static_cast<id_t>(::gettid());
  ::setpriority(PRIO_PROCESS, self, ::getpriority(PRIO_PROCESS, self) + kNiceness);
  const SteadyClock clock;
  MutexLock lock(mu_);
  while (true) {
    asked_.Wait(mu_, [this]() HEARTH_REQUIRES(mu_) { return is_stopping_ || !jobs_.empty(); });
    if (is_stopping_) return;
    {
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.Unlock();
      auto filled = std::make_unique<FilledMask>();
      filled->bits.resize(job.words);
      const int64_t began_us = clock.now_us();
      filled->status = job.mask->Fill(filled->bits);
      filled->took_us = clock.now_us() - began_us;
      job.mask = nullptr;  // of a sequence that has ended it was the last
      lock.Lock();
      done_.push_back({job.id, std::move(filled)});
    }
    lock.Unlock();
    wake_();
    lock.Lock();
  }
}

}  // namespace hearth
