// SPDX-License-Identifier: Apache-2.0
// An operating system that a seed decides: threads run one at a time, in an order drawn from the
// seed, and time passes only when all of them wait. The program under it is the product's own
// object files: pthread, clocks, sleeps, epoll and the sources of randomness are replaced at the
// link (sim_symbols.cc), so nothing in the product knows.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "sim/random.h"
namespace hearth::testing {

struct SimOsOptions {
  uint64_t seed = 0;
  double yield_share = 0;       // of all lock operations, after which somebody else may run
  int64_t cpu_ns_per_look = 0;  // processor time that passes with every look at it
  int send_buffer = 0;          // bytes that a server's socket holds; 0: the kernel's
  double store_fail_share = 0;  // of SQLite's steps
  bool is_tracing = false;
};

// Thread: one that runs at a time; who runs has it.
class SimOs {
 public:
  static SimOs& Get();
  // The calling thread becomes the first one. All others must have been joined before End.
  void Begin(const SimOsOptions& options);
  void End();
  // Whether the calling thread is one of the simulation's.
  static bool IsMine();

  int64_t now_ns() const { return now_ns_; }
  int64_t now_us() const { return now_ns_ / 1000; }
  uint64_t digest() const { return digest_; }
  uint64_t num_switches() const { return num_switches_; }
  int64_t num_store_failures() const { return num_store_failures_; }
  void Note(uint64_t what) { digest_ = MixBits(digest_ ^ what) + what; }
  void set_store_fails(bool fails) { store_fails_ = fails; }

  // What the replaced functions do.
  void Lock(pthread_mutex_t* mutex);
  bool TryLock(pthread_mutex_t* mutex);
  void Unlock(pthread_mutex_t* mutex);
  // False when the time was up. `deadline_ns` negative: none.
  bool WaitOn(const void* cond, pthread_mutex_t* mutex, int64_t deadline_ns);
  void Notify(const void* cond, bool all);
  void SleepUntil(int64_t ns);
  int Create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* with);
  void Join(pthread_t thread);
  // Blocks until somebody touched the network, or time is up (false).
  bool WaitForNetwork(int64_t deadline_ns);
  void TouchNetwork();
  void MaybeYield();
  int64_t LookAtProcessorTime() { return cpu_ns_ += options_.cpu_ns_per_look; }
  bool StoreFails();
  uint64_t Random() { return random_.Next(); }
  int send_buffer() const { return options_.send_buffer; }

 private:
  enum class State : uint8_t { kReady, kWaits, kDone };
  struct Thread {
    int index = 0;
    State state = State::kReady;
    const void* on = nullptr;  // a mutex, a condition, a thread, or the network
    int64_t deadline_ns = -1;
    bool timed_out = false, is_joined = false;
    pthread_t real{};
    std::atomic<int> gate{0};
    void* (*run)(void*) = nullptr;
    void* with = nullptr;
    SimOs* os = nullptr;
  };
  static void* Start(void* thread);
  static thread_local Thread* self_;
  static void Pass(Thread& to);
  static void Await(Thread& self);
  Thread& Choose();
  void AdvanceClock();
  void Switch();  // the calling thread may go on when this returns
  bool Block(const void* on, int64_t deadline_ns);
  void WakeAll(const void* on);
  [[noreturn]] void Stuck(const char* why);

  SimOsOptions options_;
  SimRandom random_{0};
  std::vector<Thread*> threads_;
  std::vector<Thread*> ready_;  // scratch of Choose
  int64_t now_ns_ = 0, cpu_ns_ = 0;
  uint64_t digest_ = 0, num_switches_ = 0;
  int64_t num_store_failures_ = 0;
  bool is_active_ = false, store_fails_ = false;
  int network_ = 0;  // its address is what those wait on who wait for the network
};

}  // namespace hearth::testing
