// SPDX-License-Identifier: Apache-2.0
// Sleeping on a word of memory until another thread of this process changes it. The standard
// library's atomic wait calls sched_yield before it sleeps, and a thread that yields beside a busy
// neighbour gives up its whole time slice.
#pragma once
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace hearth {

// Sleeps while the word has this value. May also return for no reason: check again.
inline void FutexWait(const std::atomic<uint32_t>& word, uint32_t value) {
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

inline void FutexWake(const std::atomic<uint32_t>& word, int most = INT_MAX) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, most, nullptr, nullptr, 0);
}

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

}  // namespace hearth
