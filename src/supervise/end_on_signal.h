// SPDX-License-Identifier: Apache-2.0
// While a model loads nothing is served, so a signal to end has nobody to wait for.
#pragma once
#include <signal.h>

#include <atomic>
#include <initializer_list>
#include <thread>
namespace hearth {

// Blocks these signals for this thread and those it starts from now on.
sigset_t BlockSignals(std::initializer_list<int> which);
void UnblockSignals(std::initializer_list<int> which);

// As long as it lives, SIGINT and SIGTERM end the process at once, by that signal.
// REQUIRES: both are blocked in every thread, as BlockSignals does it at the start.
class EndOnSignal {
 public:
  EndOnSignal();
  ~EndOnSignal();  // from now on signals wait for whoever takes them
  EndOnSignal(const EndOnSignal&) = delete;
  EndOnSignal& operator=(const EndOnSignal&) = delete;

 private:
  void Run();
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

}  // namespace hearth
