// SPDX-License-Identifier: Apache-2.0
// What the mock driver's functions share: the one context, and what is alive in it.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "machine.h"
#include "mock_machines.h"
#include "mock_memory.h"
namespace hearth::cuda {

enum Result {
  kOk = 0,
  kInvalid = 1,
  kOutOfMemory = 2,
  kNotInitialised = 3,
  kInvalidContext = 201,
  kNotFound = 500,
  kNotReady = 600,
  kTooManyResources = 701,
  kCrashed = 719,
  kCaptureUnsupported = 900,
  kCaptureInvalid = 901,
};

struct Function {
  std::string name;
  int shared_bytes = 48 << 10;
};
struct Module {
  std::unique_ptr<Machine> machine;
  std::map<std::string, std::unique_ptr<Function>> functions;
};
// A kernel with its arguments, as they were when it was asked for.
struct Node {
  Machine* machine = nullptr;
  std::string kernel;
  Launch launch;
  std::vector<uint8_t> args;
};
struct Graph {
  std::vector<Node> nodes;
};
struct Stream {
  std::deque<std::function<int()>> work;
  size_t num_done = 0;
  std::unique_ptr<Graph> capture;  // while what is asked of it is written down instead of done
  bool is_broken = false;          // something was asked that cannot be
};
struct Event {
  Stream* stream = nullptr;
  size_t behind = 0;  // reached once the stream has done so much
  bool is_reached = false;
  std::chrono::steady_clock::time_point reached;
};

// All of the one device. Thread: under `mutex`.
struct Context {
  int holders = 0;
  int sticky = kOk;
  std::map<std::string, long> faults;  // what is left until each
  MockMemory memory;
  std::map<void*, size_t> pinned;
  std::set<Module*> modules;
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::set<Graph*> graphs, executables;
  std::map<Function*, Module*> functions;

  size_t num_alive() const {
    return memory.num_alive() + pinned.size() + modules.size() + streams.size() + events.size() +
           graphs.size() + executables.size();
  }
};

extern std::map<std::string, long> counts;  // calls since the process started
extern std::mutex mutex;
extern bool is_initialised;
extern Context* context;
extern thread_local bool is_current;

[[noreturn]] void Stop(const std::string& why);
// Whether the fault that is counted under `name` happens now.
bool Strikes(const char* name);
// HEARTH_MOCK, read when a context is made, is a list of settings, separated by commas:
//   memory=BYTES   of the device (default 256 MiB)
//   alloc=N        allocation N of the context, of device or pinned memory, finds no memory
//   graph=N        graph N finds no memory
//   launch=N       launch N, of a kernel or a graph, is refused, and the stream goes on
//   idle=N         kernel N does nothing
//   crash=N        kernel N ends the context: from then on everything fails
//   copy=N         copy N ends the context
//   wait=N         wait N ends the context
//   devices=N      that the driver has (default 1)
// Other Ns count from 0.
std::map<std::string, long> ReadSettings();
size_t MemoryOf(const std::map<std::string, long>& settings);

// Inside a call: alone, on a thread that is bound, in a context that works.
class Call {
 public:
  Call();
  bool ok() const { return result_ == kOk; }
  int result() const { return result_; }

 private:
  std::lock_guard<std::mutex> lock_;
  int result_;
};

// A call that no stream may be captured beside.
int RefuseCapture();
int RunUntil(Stream& stream, size_t num_done);
inline int RunAll(Stream& stream) { return RunUntil(stream, SIZE_MAX); }
void NeedPinned(const void* at, size_t bytes);
void NeedDevice(uint64_t at, size_t bytes);

}  // namespace hearth::cuda
