// SPDX-License-Identifier: Apache-2.0
// The one lock. It is annotated, so that clang refuses to compile code that touches what a mutex
// protects without holding it. For g++ the annotations are empty.
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#ifdef __clang__
#define HEARTH_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define HEARTH_THREAD_ATTRIBUTE(x)
#endif

// On a field: touch it, or what it points to, only while holding the mutex.
#define HEARTH_GUARDED_BY(mutex) HEARTH_THREAD_ATTRIBUTE(guarded_by(mutex))
#define HEARTH_PT_GUARDED_BY(mutex) HEARTH_THREAD_ATTRIBUTE(pt_guarded_by(mutex))
// On a function or a lambda: call it only while holding the mutex, or only while not.
#define HEARTH_REQUIRES(...) HEARTH_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define HEARTH_EXCLUDES(...) HEARTH_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
// On a function: it takes the mutex, or gives it back. Without a name: the one a lock was made for.
#define HEARTH_ACQUIRE(...) HEARTH_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define HEARTH_RELEASE(...) HEARTH_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
// On a type: what the words above may name, and what holds one for a scope.
#define HEARTH_CAPABILITY(name) HEARTH_THREAD_ATTRIBUTE(capability(name))
#define HEARTH_SCOPED_CAPABILITY HEARTH_THREAD_ATTRIBUTE(scoped_lockable)
// On a function that the analysis cannot follow.
#define HEARTH_NO_THREAD_SAFETY_ANALYSIS HEARTH_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace hearth {

// Taken by MutexLock alone, so that no path out of a function can forget to give it back.
class HEARTH_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

 private:
  friend class MutexLock;
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex until its end, or until Unlock. Thread: the one that made it.
class HEARTH_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) HEARTH_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() HEARTH_RELEASE() = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  // For work that must not be done under the lock.
  void Unlock() HEARTH_RELEASE() { lock_.unlock(); }
  void Lock() HEARTH_ACQUIRE() { lock_.lock(); }

 private:
  std::unique_lock<std::mutex> lock_;
};

// Waits for what another thread does under the same mutex, which is given back while waiting. A
// predicate is called under the mutex, and says so: `[&]() HEARTH_REQUIRES(mu_) { return ...; }`.
// Thread: any.
class CondVar {
 public:
  void NotifyOne() { var_.notify_one(); }
  void NotifyAll() { var_.notify_all(); }

  template <typename Predicate>
  void Wait(Mutex& mutex, Predicate is_so) HEARTH_REQUIRES(mutex) HEARTH_NO_THREAD_SAFETY_ANALYSIS {
    Borrowed held(mutex.mutex_);
    var_.wait(held.lock, std::move(is_so));
  }
  // Until somebody notifies, time is up, or nothing at all has happened.
  template <typename Rep, typename Period>
  void WaitFor(Mutex& mutex, std::chrono::duration<Rep, Period> time) HEARTH_REQUIRES(mutex) {
    Borrowed held(mutex.mutex_);
    var_.wait_for(held.lock, time);
  }
  // These say whether it is so: false only when time is up.
  template <typename Rep, typename Period, typename Predicate>
  bool WaitFor(Mutex& mutex, std::chrono::duration<Rep, Period> time, Predicate is_so)
      HEARTH_REQUIRES(mutex) HEARTH_NO_THREAD_SAFETY_ANALYSIS {
    Borrowed held(mutex.mutex_);
    return var_.wait_for(held.lock, time, std::move(is_so));
  }
  template <typename Clock, typename Duration, typename Predicate>
  bool WaitUntil(Mutex& mutex, std::chrono::time_point<Clock, Duration> until, Predicate is_so)
      HEARTH_REQUIRES(mutex) HEARTH_NO_THREAD_SAFETY_ANALYSIS {
    Borrowed held(mutex.mutex_);
    return var_.wait_until(held.lock, until, std::move(is_so));
  }

 private:
  // The caller's lock, in the form that the library waits with; the caller still has it afterwards.
  struct Borrowed {
    explicit Borrowed(std::mutex& mutex) : lock(mutex, std::adopt_lock) {}
    ~Borrowed() { lock.release(); }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    std::unique_lock<std::mutex> lock;
  };
  std::condition_variable var_;
};

}  // namespace hearth
