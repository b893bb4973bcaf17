// SPDX-License-Identifier: Apache-2.0
#include "supervise/end_on_signal.h"

#include <cstdlib>

namespace hearth {
namespace {

// Only ever sent to the one thread that waits for it.
constexpr int kWakeUp = SIGUSR2;

sigset_t SetOf(std::initializer_list<int> which) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : which) sigaddset(&signals, signal);
  return signals;
}

}  // namespace

sigset_t BlockSignals(std::initializer_list<int> which) {
  const sigset_t signals = SetOf(which);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

void UnblockSignals(std::initializer_list<int> which) {
  const sigset_t signals = SetOf(which);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

EndOnSignal::EndOnSignal() {
  // Blocked before the thread is there, so that it cannot be woken by being killed.
  BlockSignals({kWakeUp});
  thread_ = std::thread([this] { Run(); });
}

EndOnSignal::~EndOnSignal() {
  is_over_ = true;
  pthread_kill(thread_.native_handle(), kWakeUp);
  thread_.join();
}

void EndOnSignal::Run() {
  const sigset_t signals = SetOf({SIGINT, SIGTERM, kWakeUp});
  while (!is_over_) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0 || signal == kWakeUp) continue;
    ::signal(signal, SIG_DFL);
    UnblockSignals({signal});
    ::raise(signal);
    std::_Exit(128 + signal);
  }
}

}  // namespace hearth
