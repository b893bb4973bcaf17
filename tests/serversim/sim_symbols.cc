// SPDX-License-Identifier: Apache-2.0
// The functions of the C library and of SQLite that the simulation replaces. A program's own
// definitions come before a shared library's, also for what other libraries call. A thread that is
// none of the simulation's, and everything before Begin, gets the real ones.
#include <dlfcn.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <sqlite3.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <random>

#include "sim_os.h"

namespace {

using hearth::testing::SimOs;

constexpr int64_t kNsPerS = 1'000'000'000;
// Some day in 2027, at the simulation's second 0.
constexpr int64_t kDateNs = 1'800'000'000 * kNsPerS;

template <class Function>
Function Next(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

bool IsSimulated() { return SimOs::IsMine(); }

int64_t NsOf(const timespec& time) { return time.tv_sec * kNsPerS + time.tv_nsec; }

int64_t DeadlineNs(clockid_t clock, const timespec& until) {
  return clock == CLOCK_REALTIME ? NsOf(until) - kDateNs : NsOf(until);
}

int TimedWait(pthread_cond_t* cond, pthread_mutex_t* mutex, int64_t deadline_ns) {
  return SimOs::Get().WaitOn(cond, mutex, deadline_ns) ? 0 : ETIMEDOUT;
}

}  // namespace

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  if (IsSimulated()) return SimOs::Get().Lock(mutex), 0;
  static const auto real = Next(&::pthread_mutex_lock, "pthread_mutex_lock");
  return real(mutex);
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  if (IsSimulated()) return SimOs::Get().TryLock(mutex) ? 0 : EBUSY;
  static const auto real = Next(&::pthread_mutex_trylock, "pthread_mutex_trylock");
  return real(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  if (IsSimulated()) {
    SimOs::Get().Unlock(mutex);
    SimOs::Get().MaybeYield();
    return 0;
  }
  static const auto real = Next(&::pthread_mutex_unlock, "pthread_mutex_unlock");
  return real(mutex);
}

int pthread_cond_wait(pthread_cond_t* cond, pthread_mutex_t* mutex) {
  if (IsSimulated()) return TimedWait(cond, mutex, -1);
  static const auto real = Next(&::pthread_cond_wait, "pthread_cond_wait");
  return real(cond, mutex);
}

int pthread_cond_timedwait(pthread_cond_t* cond, pthread_mutex_t* mutex, const timespec* until) {
  if (IsSimulated()) return TimedWait(cond, mutex, DeadlineNs(CLOCK_REALTIME, *until));
  static const auto real = Next(&::pthread_cond_timedwait, "pthread_cond_timedwait");
  return real(cond, mutex, until);
}

int pthread_cond_clockwait(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  if (IsSimulated()) return TimedWait(cond, mutex, DeadlineNs(clock, *until));
  static const auto real = Next(&::pthread_cond_clockwait, "pthread_cond_clockwait");
  return real(cond, mutex, clock, until);
}

int pthread_cond_signal(pthread_cond_t* cond) noexcept {
  if (IsSimulated()) return SimOs::Get().Notify(cond, false), 0;
  static const auto real = Next(&::pthread_cond_signal, "pthread_cond_signal");
  return real(cond);
}

int pthread_cond_broadcast(pthread_cond_t* cond) noexcept {
  if (IsSimulated()) return SimOs::Get().Notify(cond, true), 0;
  static const auto real = Next(&::pthread_cond_broadcast, "pthread_cond_broadcast");
  return real(cond);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* with) noexcept {
  if (IsSimulated()) return SimOs::Get().Create(thread, attributes, run, with);
  static const auto real = Next(&::pthread_create, "pthread_create");
  return real(thread, attributes, run, with);
}

int pthread_join(pthread_t thread, void** result) {
  if (IsSimulated()) return SimOs::Get().Join(thread), 0;
  static const auto real = Next(&::pthread_join, "pthread_join");
  return real(thread, result);
}

int clock_gettime(clockid_t clock, timespec* out) noexcept {
  if (!IsSimulated()) return static_cast<int>(syscall(SYS_clock_gettime, clock, out));
  int64_t ns = SimOs::Get().now_ns();
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) ns += kDateNs;
  if (clock == CLOCK_THREAD_CPUTIME_ID) ns = SimOs::Get().LookAtProcessorTime();
  *out = {ns / kNsPerS, ns % kNsPerS};
  return 0;
}

time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(timeval* out, void*) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *out = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

int nanosleep(const timespec* time, timespec* left) {
  if (!IsSimulated()) return static_cast<int>(syscall(SYS_nanosleep, time, left));
  SimOs::Get().SleepUntil(SimOs::Get().now_ns() + NsOf(*time));
  return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  if (!IsSimulated()) {
    return static_cast<int>(syscall(SYS_clock_nanosleep, clock, flags, time, left));
  }
  const bool is_absolute = (flags & TIMER_ABSTIME) != 0;
  SimOs::Get().SleepUntil(is_absolute ? DeadlineNs(clock, *time)
                                      : SimOs::Get().now_ns() + NsOf(*time));
  return 0;
}

// Without it Asio keeps its timers by epoll_wait's own time.
int timerfd_create(int, int) noexcept {
  errno = ENOSYS;
  return -1;
}

int epoll_wait(int epoll, epoll_event* events, int max, int timeout_ms) {
  const auto poll = [&](int ms) {
    return static_cast<int>(syscall(SYS_epoll_wait, epoll, events, max, ms));
  };
  if (!IsSimulated()) return poll(timeout_ms);
  SimOs& os = SimOs::Get();
  os.MaybeYield();
  const int64_t deadline_ns = timeout_ms < 0 ? -1 : os.now_ns() + int64_t{timeout_ms} * 1'000'000;
  while (true) {
    const int found = poll(0);
    if (found != 0 || timeout_ms == 0) return found;
    if (deadline_ns >= 0 && os.now_ns() >= deadline_ns) return 0;
    os.WaitForNetwork(deadline_ns);
  }
}

// How Asio is woken from other threads: it arms once more what is ready already.
int epoll_ctl(int epoll, int what, int file, epoll_event* event) noexcept {
  const int result = static_cast<int>(syscall(SYS_epoll_ctl, epoll, what, file, event));
  if (IsSimulated()) SimOs::Get().TouchNetwork();
  return result;
}

int accept(int listener, sockaddr* address, socklen_t* size) {
  const int made = static_cast<int>(syscall(SYS_accept4, listener, address, size, 0));
  const int buffer = IsSimulated() ? SimOs::Get().send_buffer() : 0;
  if (made >= 0 && buffer > 0) setsockopt(made, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
  return made;
}

// Threads' priorities are the simulation's.
int setpriority(__priority_which_t which, id_t who, int value) noexcept {
  if (IsSimulated()) return 0;
  return static_cast<int>(syscall(SYS_setpriority, which, who, value));
}

// As many everywhere: three writers, so that two may work for one client.
int get_nprocs() noexcept { return 6; }

int RAND_bytes(unsigned char* out, int count) {
  static uint64_t calls = 0;
  for (int i = 0; i < count; ++i) {
    out[i] = static_cast<unsigned char>(IsSimulated() ? SimOs::Get().Random()
                                                      : hearth::MixBits(++calls));
  }
  return 1;
}

ssize_t getrandom(void* out, size_t count, unsigned) {
  RAND_bytes(static_cast<unsigned char*>(out), static_cast<int>(count));
  return static_cast<ssize_t>(count);
}

int sqlite3_step(sqlite3_stmt* statement) {
  static const auto real = Next(&::sqlite3_step, "sqlite3_step");
  if (IsSimulated() && SimOs::Get().StoreFails()) return SQLITE_IOERR;
  return real(statement);
}

}  // extern "C"

unsigned std::random_device::_M_getval() {
  static unsigned calls = 0;
  return IsSimulated() ? static_cast<unsigned>(SimOs::Get().Random()) : ++calls;
}
