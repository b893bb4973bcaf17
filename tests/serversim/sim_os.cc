// SPDX-License-Identifier: Apache-2.0
#include "sim_os.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace hearth::testing {
namespace {

// Zero means "did not happen" in records.
constexpr int64_t kFirstNs = 1'000'000'000'000;
// More than any seed needs by a factor of a hundred: threads that wake each other without end.
constexpr uint64_t kMaxSwitches = 3'000'000;

template <class Function>
Function Real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

thread_local SimOs::Thread* SimOs::self_ = nullptr;

SimOs& SimOs::Get() {
  static SimOs os;
  return os;
}

bool SimOs::IsMine() { return self_ != nullptr; }

void SimOs::Begin(const SimOsOptions& options) {
  options_ = options;
  random_ = SimRandom(options.seed ^ 0x0511);
  now_ns_ = kFirstNs;
  cpu_ns_ = 0;
  digest_ = num_switches_ = 0;
  num_store_failures_ = 0;
  store_fails_ = false;
  auto* first = new Thread;
  first->os = this;
  threads_ = {first};
  is_active_ = true;
  self_ = first;
}

void SimOs::End() {
  self_ = nullptr;
  is_active_ = false;
  for (const Thread* thread : threads_) {
    if (thread->index > 0 && thread->state != State::kDone) Stuck("a thread was left behind");
    delete thread;
  }
  threads_.clear();
}

// The kernel keeps nobody else running: exactly one gate is open at a time.
void SimOs::Pass(Thread& to) {
  to.gate.store(1);
  syscall(SYS_futex, &to.gate, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void SimOs::Await(Thread& self) {
  while (self.gate.load() == 0) {
    syscall(SYS_futex, &self.gate, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
  }
  self.gate.store(0);
}

void SimOs::Stuck(const char* why) {
  std::fprintf(stderr, "simulation: %s at %.3f s\n", why, static_cast<double>(now_us()) * 1e-6);
  for (const Thread* thread : threads_) {
    if (thread->state == State::kDone) continue;
    std::fprintf(stderr, "  thread %d %s %p%s\n", thread->index,
                 thread->state == State::kReady ? "is ready" : "waits on", thread->on,
                 thread->on == &network_ ? " (network)" : "");
  }
  std::abort();
}

void SimOs::AdvanceClock() {
  int64_t earliest = -1;
  for (const Thread* thread : threads_) {
    if (thread->state != State::kWaits || thread->deadline_ns < 0) continue;
    if (earliest < 0 || thread->deadline_ns < earliest) earliest = thread->deadline_ns;
  }
  if (earliest < 0) Stuck("everybody waits for somebody");
  if (earliest > now_ns_) now_ns_ = earliest;
  for (Thread* thread : threads_) {
    if (thread->state != State::kWaits || thread->deadline_ns < 0) continue;
    if (thread->deadline_ns > now_ns_) continue;
    thread->state = State::kReady;
    thread->timed_out = true;
  }
}

SimOs::Thread& SimOs::Choose() {
  while (true) {
    ready_.clear();
    for (Thread* thread : threads_) {
      if (thread->state == State::kReady) ready_.push_back(thread);
    }
    if (!ready_.empty()) break;
    AdvanceClock();
  }
  if (++num_switches_ > kMaxSwitches) Stuck("no end in sight");
  Thread& next = *ready_[random_.Next() % ready_.size()];
  Note(static_cast<uint64_t>(now_ns_) * 64 + static_cast<uint64_t>(next.index));
  if (options_.is_tracing) {
    std::printf("%12.6f  thread %d of %zu\n", static_cast<double>(now_ns_) * 1e-9, next.index,
                ready_.size());
  }
  return next;
}

void SimOs::Switch() {
  Thread& self = *self_;
  Thread& next = Choose();
  if (&next == &self) return;
  Pass(next);
  Await(self);
}

void SimOs::MaybeYield() {
  if (options_.yield_share == 0 || !random_.Chance(options_.yield_share)) return;
  // Now and then its processor is taken from it for as long as a step, or several.
  if (!random_.Chance(0.1)) return Switch();
  Block(nullptr, now_ns_ + int64_t{random_.Around(20, 30'000)} * 1000);
}

bool SimOs::Block(const void* on, int64_t deadline_ns) {
  Thread& self = *self_;
  self.state = State::kWaits;
  self.on = on;
  self.deadline_ns = deadline_ns;
  self.timed_out = false;
  Switch();
  self.on = nullptr;
  self.deadline_ns = -1;
  return !self.timed_out;
}

void SimOs::WakeAll(const void* on) {
  for (Thread* thread : threads_) {
    if (thread->state == State::kWaits && thread->on == on) thread->state = State::kReady;
  }
}

// The library's own fields, in its own meaning: a mutex may be taken before the simulation begins.
bool SimOs::TryLock(pthread_mutex_t* mutex) {
  auto& data = mutex->__data;
  const int me = self_->index + 1;
  const bool is_recursive = (data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE_NP;
  if (data.__lock != 0 && !(is_recursive && data.__owner == me)) return false;
  data.__owner = me;
  ++data.__lock;
  return true;
}

void SimOs::Lock(pthread_mutex_t* mutex) {
  MaybeYield();
  while (!TryLock(mutex)) {
    if (mutex->__data.__owner == self_->index + 1) Stuck("a thread locks what it holds");
    Block(mutex, -1);
  }
}

void SimOs::Unlock(pthread_mutex_t* mutex) {
  auto& data = mutex->__data;
  if (--data.__lock > 0) return;
  data.__lock = 0;
  data.__owner = 0;
  WakeAll(mutex);
}

bool SimOs::WaitOn(const void* cond, pthread_mutex_t* mutex, int64_t deadline_ns) {
  Unlock(mutex);
  const bool in_time = Block(cond, deadline_ns);
  while (!TryLock(mutex)) Block(mutex, -1);
  return in_time;
}

void SimOs::Notify(const void* cond, bool all) {
  if (all) return WakeAll(cond);
  ready_.clear();
  for (Thread* thread : threads_) {
    if (thread->state == State::kWaits && thread->on == cond) ready_.push_back(thread);
  }
  if (!ready_.empty()) ready_[random_.Next() % ready_.size()]->state = State::kReady;
}

void SimOs::SleepUntil(int64_t ns) {
  if (ns <= now_ns_) return Switch();
  Block(nullptr, ns);
}

void* SimOs::Start(void* thread) {
  auto* own = static_cast<Thread*>(thread);
  Await(*own);
  self_ = own;
  SimOs& os = *own->os;
  void* result = own->run(own->with);
  own->state = State::kDone;
  os.WakeAll(own);
  Thread& next = os.Choose();
  self_ = nullptr;
  Pass(next);
  return result;
}

int SimOs::Create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                  void* with) {
  static const auto real =
      Real<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  auto* made = new Thread;
  made->index = static_cast<int>(threads_.size());
  made->run = run;
  made->with = with;
  made->os = this;
  const int error = real(&made->real, attributes, &SimOs::Start, made);
  if (error != 0) Stuck("no thread to be had");
  *thread = made->real;
  threads_.push_back(made);
  return 0;
}

void SimOs::Join(pthread_t thread) {
  static const auto real = Real<int (*)(pthread_t, void**)>("pthread_join");
  for (Thread* other : threads_) {
    if (other->index == 0 || pthread_equal(other->real, thread) == 0) continue;
    if (other->is_joined) continue;  // the library gives its name to another
    while (other->state != State::kDone) Block(other, -1);
    real(thread, nullptr);
    other->is_joined = true;
    return;
  }
  Stuck("a thread is joined that nobody knows");
}

bool SimOs::WaitForNetwork(int64_t deadline_ns) { return Block(&network_, deadline_ns); }

void SimOs::TouchNetwork() { WakeAll(&network_); }

bool SimOs::StoreFails() {
  if (!store_fails_ || !random_.Chance(options_.store_fail_share)) return false;
  ++num_store_failures_;
  return true;
}

}  // namespace hearth::testing
