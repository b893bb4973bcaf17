// SPDX-License-Identifier: Apache-2.0
// The mock driver's streams: copies, events, launches and graphs. What is asked of a stream is not
// done before somebody waits.
#include <cstring>

#include "mock_context.h"

using namespace hearth::cuda;

namespace {

// One kernel of a stream's work. Its faults are counted when it is asked for.
void Push(Stream& stream, const Node& node) {
  const bool crashes = Strikes("crash"), is_idle = Strikes("idle");
  stream.work.push_back([node, crashes, is_idle] {
    if (crashes) return static_cast<int>(kCrashed);
    if (is_idle) return static_cast<int>(kOk);
    alignas(16) uint8_t aligned[1024];
    std::memcpy(aligned, node.args.data(), node.args.size());
    node.machine->Run(node.kernel, node.launch, aligned, node.args.size(),
                      context->memory.ranges());
    return static_cast<int>(kOk);
  });
}

}  // namespace

extern "C" {

int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  const Call call;
  if (!call.ok()) return call.result();
  if (const int refused = RefuseCapture(); refused != kOk) return refused;
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
  if (const int refused = RefuseCapture(); refused != kOk) return refused;
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
  if (const int refused = RefuseCapture(); refused != kOk) return refused;
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
  if (const int refused = RefuseCapture(); refused != kOk) return refused;
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
  if (const int refused = RefuseCapture(); refused != kOk) return refused;
  auto* at = static_cast<Event*>(event);
  auto* on = static_cast<Stream*>(stream);
  at->is_reached = false;
  on->work.push_back([at] {
    if (context->events.count(at) == 0) return kOk;
    at->reached = std::chrono::steady_clock::now();
    at->is_reached = true;
    return kOk;
  });
  at->stream = on;
  at->behind = on->num_done + on->work.size();
  return kOk;
}
// Runs what was asked for before the record, and nothing of what came after.
int cuEventSynchronize(void* event) {
  const Call call;
  if (!call.ok()) return call.result();
  if (const int refused = RefuseCapture(); refused != kOk) return refused;
  if (Strikes("wait")) return context->sticky = kCrashed;
  auto* at = static_cast<Event*>(event);
  return at->stream == nullptr ? kOk : RunUntil(*at->stream, at->behind);
}
// The time of the emulator, which says nothing about any GPU.
int cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  const Call call;
  if (!call.ok()) return call.result();
  const auto *first = static_cast<Event*>(from), *last = static_cast<Event*>(to);
  if (!first->is_reached || !last->is_reached) return kNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(last->reached - first->reached).count();
  return kOk;
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
  ++counts["launch"];
  ++counts[at->name];
  Node node;
  node.machine = owner->second->machine.get();
  node.kernel = at->name;
  node.launch = {static_cast<int>(grid_x), static_cast<int>(grid_y), static_cast<int>(grid_z),
                 static_cast<int>(block_x), static_cast<int64_t>(shared_bytes)};
  const auto* bytes = static_cast<const uint8_t*>(params[0]);
  node.args.assign(bytes, bytes + ArgsBytes(at->name));  // read now, as the real driver does
  auto* on = static_cast<Stream*>(stream);
  if (on->capture != nullptr) {
    on->capture->nodes.push_back(std::move(node));
  } else {
    Push(*on, node);
  }
  return kOk;
}

// For tests: how often something was called.
long hearth_mock_count(const char* what) {
  const std::lock_guard<std::mutex> lock(mutex);
  return counts[what];
}

int cuStreamBeginCapture_v2(void* stream, int mode) {
  const Call call;
  if (!call.ok()) return call.result();
  auto* on = static_cast<Stream*>(stream);
  if (mode < 0 || mode > 2 || on->capture != nullptr) return kInvalid;
  on->capture = std::make_unique<Graph>();
  on->is_broken = false;
  return kOk;
}
int cuStreamEndCapture(void* stream, void** out) {
  const Call call;
  if (!call.ok()) return call.result();
  auto* on = static_cast<Stream*>(stream);
  *out = nullptr;
  if (on->capture == nullptr) return kInvalid;
  const std::unique_ptr<Graph> graph = std::move(on->capture);
  if (on->is_broken) return kCaptureInvalid;
  *out = *context->graphs.insert(new Graph(*graph)).first;
  return kOk;
}
int cuGraphInstantiateWithFlags(void** out, void* graph, unsigned long long flags) {
  const Call call;
  if (!call.ok()) return call.result();
  const auto found = context->graphs.find(static_cast<Graph*>(graph));
  if (found == context->graphs.end() || flags != 0) return kInvalid;
  if (Strikes("graph")) return kOutOfMemory;
  *out = *context->executables.insert(new Graph(**found)).first;
  return kOk;
}
int cuGraphLaunch(void* executable, void* stream) {
  const Call call;
  if (!call.ok()) return call.result();
  if (const int refused = RefuseCapture(); refused != kOk) return refused;
  const auto found = context->executables.find(static_cast<Graph*>(executable));
  if (found == context->executables.end()) Stop("a launch of a graph that is not there");
  if (Strikes("launch")) return kTooManyResources;
  ++counts["graph"];
  for (const Node& node : (*found)->nodes) Push(*static_cast<Stream*>(stream), node);
  return kOk;
}
int cuGraphDestroy(void* graph) {
  const Call call;
  if (context == nullptr || context->graphs.erase(static_cast<Graph*>(graph)) == 0) return kInvalid;
  delete static_cast<Graph*>(graph);
  return call.result();
}
int cuGraphExecDestroy(void* executable) {
  const Call call;
  if (context == nullptr || context->executables.erase(static_cast<Graph*>(executable)) == 0) {
    return kInvalid;
  }
  delete static_cast<Graph*>(executable);
  return call.result();
}

}  // extern "C"
