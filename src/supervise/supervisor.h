// SPDX-License-Identifier: Apache-2.0
// The small process above a worker: it holds the listening sockets, starts the worker again when it
// dies, and passes signals on. It answers no request and reads nothing that clients sent.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "supervise/restart_policy.h"
namespace hearth {

struct SupervisorOptions {
  std::vector<int> listeners;  // for the worker, in this order; -1: none. Closed by Supervise
  double stall_s = 60;         // without a sign of life the worker is killed
  double drain_s = 30;         // what the worker allows itself when it was asked to end
  // What is run: this program with its own arguments unless given.
  std::string program = "/proc/self/exe";
  std::vector<std::string> arguments = {};
  // Called once, before the listeners are closed: afterwards a socket's path may be the next
  // server's.
  std::function<void()> leave = {};
};

// Blocks SIGINT, SIGTERM, SIGHUP and SIGCHLD, and returns when the program is to end, and how.
// REQUIRES: this process has no other threads, for it forks.
Result<WorkerEnd> Supervise(const SupervisorOptions& options);

// Ends this process as the worker ended: with its code, or by its signal.
[[noreturn]] void EndLike(const WorkerEnd& end);

// The words that this process was started with.
std::vector<std::string> OwnArguments();

}  // namespace hearth
