// SPDX-License-Identifier: Apache-2.0
#include "mock_context.h"

#include <cstdlib>

namespace hearth::cuda {

std::map<std::string, long> counts;
std::mutex mutex;
bool is_initialised = false;
Context* context = nullptr;
thread_local bool is_current = false;

void Stop(const std::string& why) { Refuse("mock driver", why); }

bool Strikes(const char* name) {
  const auto fault = context->faults.find(name);
  return fault != context->faults.end() && fault->second-- == 0;
}

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

Call::Call() : lock_(mutex) {
  if (!is_initialised) {
    result_ = kNotInitialised;
  } else if (context == nullptr || !is_current) {
    result_ = kInvalidContext;
  } else {
    result_ = context->sticky;
  }
}

int RefuseCapture() {
  for (Stream* stream : context->streams) {
    if (stream->capture == nullptr) continue;
    stream->is_broken = true;
    return kCaptureUnsupported;
  }
  return kOk;
}

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

}  // namespace hearth::cuda
