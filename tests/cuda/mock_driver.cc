// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 without a GPU: the driver's functions that Hearth calls, over the emulators. It is
// stricter than the real one; docs/gpu.md says how. Here: devices, modules and memory.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mock_context.h"

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
    context->faults = ReadSettings();
    context->memory.Open(MemoryOf(context->faults));
  }
  ++context->holders;
  *out = context;
  return kOk;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (context == nullptr) return kInvalidContext;
  if (--context->holders > 0) return kOk;
  const size_t alive = context->num_alive();
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
  if (const int refused = RefuseCapture(); refused != kOk) return refused;
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
  if (const int refused = RefuseCapture(); refused != kOk) return refused;
  auto* at = static_cast<Function*>(function);
  if (context->functions.count(at) == 0 || attribute != 8 || value > 99 << 10) return kInvalid;
  at->shared_bytes = value;
  return kOk;
}

int cuMemAlloc_v2(uint64_t* out, size_t bytes) {
  const Call call;
  if (!call.ok()) return call.result();
  if (const int refused = RefuseCapture(); refused != kOk) return refused;
  if (bytes == 0) return kInvalid;
  if (Strikes("alloc")) return kOutOfMemory;
  *out = context->memory.Take(bytes);
  return *out != 0 ? kOk : kOutOfMemory;
}
// Memory that the host may touch, too.
int cuMemAllocManaged(uint64_t* out, size_t bytes, unsigned flags) {
  const Call call;
  if (!call.ok()) return call.result();
  if (const int refused = RefuseCapture(); refused != kOk) return refused;
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
  if (const int refused = RefuseCapture(); refused != kOk) return refused;
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
