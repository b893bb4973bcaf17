// SPDX-License-Identifier: Apache-2.0
// The functions of NVIDIA's driver that Hearth calls, found at run time: nothing of CUDA is linked,
// and the program starts on machines without it. Names and values are those of the driver's ABI.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
namespace hearth::cuda {

// CUresult. Only those that Hearth tells apart have names.
enum class CuResult : int {
  kOk = 0,
  kOutOfMemory = 2,
  kLaunchOutOfResources = 701,
};

enum class CuAttribute : int {
  kNumProcessors = 16,           // streaming multiprocessors
  kMemoryKilohertz = 36,         // of the memory's clock
  kMemoryBits = 37,              // of the memory's bus
  kMaxSharedBytesPerBlock = 97,  // with cuFuncSetAttribute
  kMajor = 75,                   // of the compute capability
  kMinor = 76,
};
inline constexpr int kFunctionMaxDynamicShared = 8;  // of cuFuncSetAttribute

using CuDevice = int;
using CuPointer = uint64_t;
struct CuContextTag;
struct CuModuleTag;
struct CuFunctionTag;
struct CuStreamTag;
struct CuEventTag;
struct CuGraphTag;
struct CuGraphExecTag;
using CuContext = CuContextTag*;
using CuModule = CuModuleTag*;
using CuFunction = CuFunctionTag*;
using CuStream = CuStreamTag*;
using CuEvent = CuEventTag*;
using CuGraph = CuGraphTag*;
using CuGraphExec = CuGraphExecTag*;

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kManagedGlobal = 1;  // of cuMemAllocManaged
inline constexpr unsigned kEventBlockingWait = 1, kEventNoTiming = 2;
inline constexpr int kCaptureThreadLocal = 1;  // of cuStreamBeginCapture: other threads go on

// Immutable once loaded; thread: any.
struct Driver {
  CuResult (*init)(unsigned flags);
  CuResult (*driver_version)(int* version);
  CuResult (*device_count)(int* count);
  CuResult (*device_get)(CuDevice* device, int index);
  CuResult (*device_name)(char* name, int size, CuDevice device);
  CuResult (*device_attribute)(int* value, CuAttribute attribute, CuDevice device);
  CuResult (*device_memory)(size_t* bytes, CuDevice device);
  CuResult (*context_retain)(CuContext* context, CuDevice device);
  CuResult (*context_release)(CuDevice device);
  CuResult (*context_set)(CuContext context);
  CuResult (*memory_info)(size_t* free, size_t* total);
  CuResult (*module_load)(CuModule* module, const void* image);
  CuResult (*module_unload)(CuModule module);
  CuResult (*module_function)(CuFunction* function, CuModule module, const char* name);
  CuResult (*function_set)(CuFunction function, int attribute, int value);
  CuResult (*memory_take)(CuPointer* at, size_t bytes);
  CuResult (*memory_managed)(CuPointer* at, size_t bytes, unsigned flags);
  CuResult (*memory_free)(CuPointer at);
  CuResult (*host_take)(void** at, size_t bytes, unsigned flags);
  CuResult (*host_free)(void* at);
  CuResult (*copy_in)(CuPointer to, const void* from, size_t bytes, CuStream stream);
  CuResult (*copy_out)(void* to, CuPointer from, size_t bytes, CuStream stream);
  CuResult (*fill)(CuPointer at, unsigned char byte, size_t bytes, CuStream stream);
  CuResult (*stream_make)(CuStream* stream, unsigned flags);
  CuResult (*stream_end)(CuStream stream);
  CuResult (*stream_wait)(CuStream stream);
  CuResult (*event_make)(CuEvent* event, unsigned flags);
  CuResult (*event_end)(CuEvent event);
  CuResult (*event_record)(CuEvent event, CuStream stream);
  CuResult (*event_wait)(CuEvent event);
  CuResult (*event_elapsed)(float* milliseconds, CuEvent from, CuEvent to);
  CuResult (*capture_begin)(CuStream stream, int mode);
  CuResult (*capture_end)(CuStream stream, CuGraph* graph);
  CuResult (*graph_make)(CuGraphExec* executable, CuGraph graph, unsigned long long flags);
  CuResult (*graph_launch)(CuGraphExec executable, CuStream stream);
  CuResult (*graph_end)(CuGraph graph);
  CuResult (*graph_exec_end)(CuGraphExec executable);
  CuResult (*launch)(CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                     CuStream stream, void** params, void** extra);
  CuResult (*error_name)(CuResult result, const char** name);
  CuResult (*error_text)(CuResult result, const char** text);

  // "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"
  std::string Describe(CuResult result) const;
};

// Loads libcuda.so.1 and starts it, once per process. kUnsupported when there is none, or none that
// is new enough, or no device.
Result<const Driver*> LoadDriver();

}  // namespace hearth::cuda
