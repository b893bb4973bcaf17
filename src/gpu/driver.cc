// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver.h"

#include <dlfcn.h>

namespace hearth::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

class Finder {
 public:
  explicit Finder(void* library) : library_(library) {}
  template <class F>
  void Find(const char* name, F& function) {
    void* found = dlsym(library_, name);
    if (found == nullptr && missing_ == nullptr) missing_ = name;
    function = reinterpret_cast<F>(found);
  }
  const char* missing() const { return missing_; }

 private:
  void* library_;
  const char* missing_ = nullptr;
};

// The driver's names carry the version of their arguments.
const char* FindAll(void* library, Driver& d) {
  Finder f(library);
  f.Find("cuInit", d.init);
  f.Find("cuDriverGetVersion", d.driver_version);
  f.Find("cuDeviceGetCount", d.device_count);
  f.Find("cuDeviceGet", d.device_get);
  f.Find("cuDeviceGetName", d.device_name);
  f.Find("cuDeviceGetAttribute", d.device_attribute);
  f.Find("cuDeviceTotalMem_v2", d.device_memory);
  f.Find("cuDevicePrimaryCtxRetain", d.context_retain);
  f.Find("cuDevicePrimaryCtxRelease_v2", d.context_release);
  f.Find("cuCtxSetCurrent", d.context_set);
  f.Find("cuMemGetInfo_v2", d.memory_info);
  f.Find("cuModuleLoadData", d.module_load);
  f.Find("cuModuleUnload", d.module_unload);
  f.Find("cuModuleGetFunction", d.module_function);
  f.Find("cuFuncSetAttribute", d.function_set);
  f.Find("cuMemAlloc_v2", d.memory_take);
  f.Find("cuMemAllocManaged", d.memory_managed);
  f.Find("cuMemFree_v2", d.memory_free);
  f.Find("cuMemHostAlloc", d.host_take);
  f.Find("cuMemFreeHost", d.host_free);
  f.Find("cuMemcpyHtoDAsync_v2", d.copy_in);
  f.Find("cuMemcpyDtoHAsync_v2", d.copy_out);
  f.Find("cuMemsetD8Async", d.fill);
  f.Find("cuStreamCreate", d.stream_make);
  f.Find("cuStreamDestroy_v2", d.stream_end);
  f.Find("cuStreamSynchronize", d.stream_wait);
  f.Find("cuEventCreate", d.event_make);
  f.Find("cuEventDestroy_v2", d.event_end);
  f.Find("cuEventRecord", d.event_record);
  f.Find("cuEventSynchronize", d.event_wait);
  f.Find("cuEventElapsedTime", d.event_elapsed);
  f.Find("cuStreamBeginCapture_v2", d.capture_begin);
  f.Find("cuStreamEndCapture", d.capture_end);
  f.Find("cuGraphInstantiateWithFlags", d.graph_make);
  f.Find("cuGraphLaunch", d.graph_launch);
  f.Find("cuGraphDestroy", d.graph_end);
  f.Find("cuGraphExecDestroy", d.graph_exec_end);
  f.Find("cuLaunchKernel", d.launch);
  f.Find("cuGetErrorName", d.error_name);
  f.Find("cuGetErrorString", d.error_text);
  return f.missing();
}

struct Loaded {
  Driver driver{};
  Status status;
};

Loaded Load() {
  Loaded loaded;
  // Never closed: the driver starts threads of its own.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    loaded.status = Error(Code::kUnsupported,
                          "no NVIDIA driver: %s was not found; install the driver, or use --device "
                          "cpu",
                          kLibrary);
    return loaded;
  }
  if (const char* missing = FindAll(library, loaded.driver); missing != nullptr) {
    loaded.status =
        Error(Code::kUnsupported, "%s has no %s; install a newer NVIDIA driver", kLibrary, missing);
    return loaded;
  }
  if (const CuResult result = loaded.driver.init(0); result != CuResult::kOk) {
    loaded.status = Error(Code::kUnsupported, "the NVIDIA driver does not start: %s",
                          loaded.driver.Describe(result).c_str());
  }
  return loaded;
}

}  // namespace

std::string Driver::Describe(CuResult result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  error_name(result, &name);
  error_text(result, &text);
  return Printf("%s (%d): %s", name != nullptr ? name : "CUDA error", static_cast<int>(result),
                text != nullptr ? text : "unknown error");
}

Result<const Driver*> LoadDriver() {
  static const Loaded loaded = Load();
  if (!loaded.status.ok()) return loaded.status;
  return &loaded.driver;
}

}  // namespace hearth::cuda
