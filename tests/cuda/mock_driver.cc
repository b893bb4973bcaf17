// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 without a GPU: the driver's functions that Hearth calls, over the emulators. It is
// stricter than the real one: what is asked of a stream is not done before somebody waits, and a
// context that is released with anything alive ends the process. docs/gpu.md says more.
#include <cstdio>
#include <cstdlib>
#include <cstring>
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
namespace {

enum Result {
  kOk = 0,
  kInvalid = 1,
  kOutOfMemory = 2,
  kNotInitialised = 3,
  kInvalidContext = 201,
  kNotFound = 500,
  kTooManyResources = 701,
  kCrashed = 719,
};

struct Function {
  std::string name;
  int shared_bytes = 48 << 10;
};
struct Module {
  std::unique_ptr<Machine> machine;
  std::map<std::string, std::unique_ptr<Function>> functions;
};
struct Stream {
  std::deque<std::function<int()>> work;
  size_t num_done = 0;
};
struct Event {
  Stream* stream = nullptr;
  size_t behind = 0;  // reached once the stream has done so much
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
  std::map<Function*, Module*> functions;
};

std::mutex mutex;
bool is_initialised = false;
Context* context = nullptr;
thread_local bool is_current = false;

[[noreturn]] void Stop(const std::string& why) { Refuse("mock driver", why); }

// Whether the fault that is counted under `name` happens now.
bool Strikes(const char* name) {
  const auto fault = context->faults.find(name);
  return fault != context->faults.end() && fault->second-- == 0;
}

// HEARTH_MOCK, read when a context is made, is a list of settings, separated by commas:
//   memory=BYTES   of the device (default 256 MiB)
//   alloc=N        allocation N of the context, of device or pinned memory, finds no memory
//   launch=N       launch N is refused, and the stream goes on
//   idle=N         launch N does nothing
//   crash=N        launch N ends the context: from then on everything fails
//   copy=N         copy N ends the context
//   wait=N         wait N ends the context
//   devices=N      that the driver has (default 1)
// Other Ns count from 0.
std::map<std::string, long> ReadSettings() {
  std::map<std::string, long> settings;
  const char* text = std::getenv("HEARTH_MOCK");
  std::string list = text == nullptr ? "" : text;
  while (!list.empty()) {
    const size_t comma = list.find(','), equals = list.find('=');
    if (equals == std::string::npos) Stop("HEARTH_MOCK: " + list);
    settings[list.substr(0, equals)] = std::strtol(list.c_str() + equals + 1, nullptr, 10);
    list = comma == std::string::npos ? "" : list.substr(comma + 1);
  }
  return settings;
}
size_t MemoryOf(const std::map<std::string, long>& settings) {
  const auto memory = settings.find("memory");
  return memory == settings.end() ? size_t{256} << 20 : static_cast<size_t>(memory->second);
}
void ReadFaults() {
  context->faults = ReadSettings();
  context->memory.Open(MemoryOf(context->faults));
}

// Inside a call: alone, on a thread that is bound, in a context that works.
class Call {
 public:
  Call() : lock_(mutex) {
    if (!is_initialised) {
      result_ = kNotInitialised;
    } else if (context == nullptr || !is_current) {
      result_ = kInvalidContext;
    } else {
      result_ = context->sticky;
    }
  }
  bool ok() const { return result_ == kOk; }
  int result() const { return result_; }

 private:
  std::lock_guard<std::mutex> lock_;
  int result_;
};

int RunUntil(Stream& stream, size_t num_done) {
  const MockMemory::Opened opened(context->memory);
  while (!stream.work.empty() && stream.num_done < num_done && context->sticky == kOk) {
    context->sticky = stream.work.front()();
    stream.work.pop_front();
    ++stream.num_done;
  }
  if (context->sticky != kOk) stream.work.clear();
  if (const std::string wrong = context->memory.BrokenRedzone(); !wrong.empty()) Stop(wrong);
  return context->sticky;
}

int RunAll(Stream& stream) { return RunUntil(stream, SIZE_MAX); }

void NeedPinned(const void* at, size_t bytes) {
  auto range = context->pinned.upper_bound(const_cast<void*>(at));
  if (range != context->pinned.begin()) {
    --range;
    const auto* begin = static_cast<const uint8_t*>(range->first);
    const auto* from = static_cast<const uint8_t*>(at);
    if (from + bytes <= begin + range->second) return;
  }
  Stop("a copy of a stream with host memory that is not pinned");
}

void NeedDevice(uint64_t at, size_t bytes) {
  if (!context->memory.ranges().Holds(at, bytes)) Stop("a copy outside of device memory");
}

}  // namespace
}  // namespace hearth::cuda

using namespace hearth::cuda;

extern "C" {

int cuInit(unsigned) {
  const std::lock_guard<std::mutex> lock(mutex);
  is_initialised = true;
  return kOk;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kOk;
}
int cuDeviceGetCount(int* count) {
  const auto settings = ReadSettings();
  const auto devices = settings.find("devices");
  *count = devices == settings.end() ? 1 : static_cast<int>(devices->second);
  return is_initialised ? kOk : kNotInitialised;
}
int cuDeviceGet(int* device, int index) {
  *device = index;
  return index == 0 ? kOk : 101;
}
int cuDeviceGetName(char* name, int size, int) {
  std::snprintf(name, static_cast<size_t>(size), "Mock GPU");
  return kOk;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  // Capability 8.9, shared memory, and for people: processors, the memory's clock and width.
  static const std::map<int, int> known = {{75, 8}, {76, 9},       {97, 99 << 10},
                                           {16, 4}, {36, 1000000}, {37, 64}};
  const auto found = known.find(attribute);
  if (found == known.end()) return kInvalid;
  *value = found->second;
  return kOk;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = MemoryOf(ReadSettings());
  return kOk;
}

int cuDevicePrimaryCtxRetain(void** out, int) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!is_initialised) return kNotInitialised;
  if (context == nullptr) {
    context = new Context;
    ReadFaults();
  }
  ++context->holders;
  *out = context;
  return kOk;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (context == nullptr) return kInvalidContext;
  if (--context->holders > 0) return kOk;
  const size_t alive = context->memory.num_alive() + context->pinned.size() +
                       context->modules.size() + context->streams.size() + context->events.size();
  if (alive > 0) Stop(std::to_string(alive) + " thing(s) alive when the context is released");
  delete context;
  context = nullptr;
  is_current = false;
  return kOk;
}
int cuCtxSetCurrent(void* wanted) {
  const std::lock_guard<std::mutex> lock(mutex);
  is_current = wanted != nullptr && wanted == context;
  return is_current ? kOk : kInvalidContext;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  const Call call;
  if (!call.ok()) return call.result();
  *free = context->memory.free_bytes();
  *total = context->memory.total_bytes();
  return kOk;
}

int cuModuleLoadData(void** out, const void* image) {
  const Call call;
  if (!call.ok()) return call.result();
  auto module = std::make_unique<Module>();
  module->machine = MachineOf(image);
  if (module->machine == nullptr) return 209;  // no binary for this GPU
  context->modules.insert(module.get());
  *out = module.release();
  return kOk;
}
// Objects can be given back to a context that crashed, as with the real one.
int cuModuleUnload(void* module) {
  const Call call;
  auto* at = static_cast<Module*>(module);
  if (context == nullptr || context->modules.erase(at) == 0) return kInvalid;
  for (const auto& [name, function] : at->functions) context->functions.erase(function.get());
  delete at;
  return call.result();
}
int cuModuleGetFunction(void** out, void* module, const char* name) {
  const Call call;
  if (!call.ok()) return call.result();
  auto* at = static_cast<Module*>(module);
  if (context->modules.count(at) == 0) return kInvalid;
  if (ArgsBytes(name) == 0) return kNotFound;
  auto& function = at->functions[name];
  if (function == nullptr) function = std::make_unique<Function>(Function{name});
  context->functions[function.get()] = at;
  *out = function.get();
  return kOk;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  const Call call;
  if (!call.ok()) return call.result();
  auto* at = static_cast<Function*>(function);
  if (context->functions.count(at) == 0 || attribute != 8 || value > 99 << 10) return kInvalid;
  at->shared_bytes = value;
  return kOk;
}

int cuMemAlloc_v2(uint64_t* out, size_t bytes) {
  const Call call;
  if (!call.ok()) return call.result();
  if (bytes == 0) return kInvalid;
  if (Strikes("alloc")) return kOutOfMemory;
  *out = context->memory.Take(bytes);
  return *out != 0 ? kOk : kOutOfMemory;
}
// Memory that the host may touch, too.
int cuMemAllocManaged(uint64_t* out, size_t bytes, unsigned flags) {
  const Call call;
  if (!call.ok()) return call.result();
  if (bytes == 0 || flags != 1) return kInvalid;
  if (Strikes("alloc")) return kOutOfMemory;
  *out = context->memory.TakeManaged(bytes);
  return kOk;
}
int cuMemFree_v2(uint64_t at) {
  const Call call;
  if (context == nullptr) return kInvalidContext;
  if (call.ok()) {
    for (Stream* stream : context->streams) RunAll(*stream);  // as the real one waits
  }
  if (!context->memory.Free(at)) Stop("device memory freed that is not there");
  return call.result();
}
int cuMemHostAlloc(void** out, size_t bytes, unsigned) {
  const Call call;
  if (!call.ok()) return call.result();
  if (Strikes("alloc")) return kOutOfMemory;
  *out = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  std::memset(*out, 0xa5, bytes);
  context->pinned[*out] = bytes;
  return kOk;
}
int cuMemFreeHost(void* at) {
  const Call call;
  if (context == nullptr || context->pinned.erase(at) == 0) Stop("pinned memory freed twice");
  if (call.ok()) {
    for (Stream* stream : context->streams) RunAll(*stream);
  }
  std::free(at);
  return call.result();
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  const Call call;
  if (!call.ok()) return call.result();
  NeedPinned(from, bytes);
  NeedDevice(to, bytes);
  if (Strikes("copy")) return context->sticky = kCrashed;
  static_cast<Stream*>(stream)->work.push_back([=] {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return kOk;
  });
  return kOk;
}
// What lies at the target until then is rubbish.
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  const Call call;
  if (!call.ok()) return call.result();
  NeedPinned(to, bytes);
  NeedDevice(from, bytes);
  if (Strikes("copy")) return context->sticky = kCrashed;
  std::memset(to, 0xa5, bytes);
  static_cast<Stream*>(stream)->work.push_back([=] {
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return kOk;
  });
  return kOk;
}
int cuMemsetD8Async(uint64_t at, unsigned char byte, size_t bytes, void* stream) {
  const Call call;
  if (!call.ok()) return call.result();
  NeedDevice(at, bytes);
  static_cast<Stream*>(stream)->work.push_back([=] {
    std::memset(reinterpret_cast<void*>(at), byte, bytes);
    return kOk;
  });
  return kOk;
}

int cuStreamCreate(void** out, unsigned) {
  const Call call;
  if (!call.ok()) return call.result();
  auto* stream = new Stream;
  context->streams.insert(stream);
  *out = stream;
  return kOk;
}
int cuStreamDestroy_v2(void* stream) {
  const Call call;
  if (context == nullptr || context->streams.erase(static_cast<Stream*>(stream)) == 0) {
    return kInvalid;
  }
  delete static_cast<Stream*>(stream);
  return call.result();
}
int cuStreamSynchronize(void* stream) {
  const Call call;
  if (!call.ok()) return call.result();
  return RunAll(*static_cast<Stream*>(stream));
}

int cuEventCreate(void** out, unsigned) {
  const Call call;
  if (!call.ok()) return call.result();
  auto* event = new Event;
  context->events.insert(event);
  *out = event;
  return kOk;
}
int cuEventDestroy_v2(void* event) {
  const Call call;
  if (context == nullptr || context->events.erase(static_cast<Event*>(event)) == 0) return kInvalid;
  delete static_cast<Event*>(event);
  return call.result();
}
int cuEventRecord(void* event, void* stream) {
  const Call call;
  if (!call.ok()) return call.result();
  static_cast<Event*>(event)->stream = static_cast<Stream*>(stream);
  static_cast<Event*>(event)->behind =
      static_cast<Stream*>(stream)->num_done + static_cast<Stream*>(stream)->work.size();
  return kOk;
}
// Runs what was asked for before the record, and nothing of what came after.
int cuEventSynchronize(void* event) {
  const Call call;
  if (!call.ok()) return call.result();
  if (Strikes("wait")) return context->sticky = kCrashed;
  auto* at = static_cast<Event*>(event);
  return at->stream == nullptr ? kOk : RunUntil(*at->stream, at->behind);
}

int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void* stream, void** params, void**) {
  const Call call;
  if (!call.ok()) return call.result();
  auto* at = static_cast<Function*>(function);
  const auto owner = context->functions.find(at);
  if (owner == context->functions.end()) Stop("a launch of a function that is not there");
  const bool fits = grid_x > 0 && grid_y > 0 && grid_z > 0 && grid_y < 65536 && grid_z < 65536 &&
                    block_y == 1 && block_z == 1 &&
                    static_cast<int>(shared_bytes) <= at->shared_bytes;
  if (!fits) return kInvalid;
  if (Strikes("launch")) return kTooManyResources;
  const bool crashes = Strikes("crash"), is_idle = Strikes("idle");
  const size_t size = ArgsBytes(at->name);
  const auto* bytes = static_cast<const uint8_t*>(params[0]);
  const std::vector<uint8_t> args(bytes, bytes + size);  // read now, as the real driver does
  const Launch launch{static_cast<int>(grid_x), static_cast<int>(grid_y), static_cast<int>(grid_z),
                      static_cast<int>(block_x), static_cast<int64_t>(shared_bytes)};
  Machine* machine = owner->second->machine.get();
  static_cast<Stream*>(stream)->work.push_back([=, name = at->name] {
    if (crashes) return static_cast<int>(kCrashed);
    if (is_idle) return static_cast<int>(kOk);
    alignas(16) uint8_t aligned[1024];
    std::memcpy(aligned, args.data(), args.size());
    machine->Run(name, launch, aligned, args.size(), context->memory.ranges());
    return static_cast<int>(kOk);
  });
  return kOk;
}

int cuGetErrorName(int result, const char** name) {
  *name = result == kOutOfMemory        ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == kTooManyResources ? "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
          : result == kCrashed          ? "CUDA_ERROR_LAUNCH_FAILED"
                                        : "CUDA_ERROR_OTHER";
  return kOk;
}
int cuGetErrorString(int result, const char** text) {
  *text = result == kOutOfMemory ? "out of memory" : "the mock driver was told to fail";
  return kOk;
}

}  // extern "C"
