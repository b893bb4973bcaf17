// SPDX-License-Identifier: Apache-2.0
#include "gpu/device.h"

#include <charconv>
#include <string_view>
#include <utility>

namespace hearth::cuda {
namespace {

constexpr std::array<const char*, kNumKernels> kNames = {
    "hearth_norm",    "hearth_glu",      "hearth_rope",       "hearth_attend",
    "hearth_combine", "hearth_route",    "hearth_mxfp4_few",  "hearth_mxfp4_many",
    "hearth_q8_few",  "hearth_q8_many",  "hearth_q40",        "hearth_q41",
    "hearth_q50",     "hearth_q51",      "hearth_iq4nl",      "hearth_q2k",
    "hearth_q3k_few", "hearth_q3k_many", "hearth_q4k",        "hearth_q5k",
    "hearth_q6k_few", "hearth_q6k_many", "hearth_iq4xs_few",  "hearth_iq4xs_many",
    "hearth_f32",     "hearth_f16",      "hearth_bf16",       "hearth_embed",
    "hearth_sort",    "hearth_gather",   "hearth_norm_route", "hearth_decode",
    "hearth_top",     "hearth_flash_64", "hearth_flash_128",  "hearth_flash_reduce",
};
// The oldest architecture that the kernels are compiled for.
constexpr int kOldest = 75;
// What a kernel may take without being asked for.
constexpr int64_t kUsualShared = 48 << 10;

// After these a context answers nothing else: what happened while kernels ran, memory that cannot
// be corrected, a device that is gone.
bool IsFinal(CuResult result) {
  constexpr int kUnavailable = 46, kUncorrectable = 214, kUnknown = 999;
  const auto code = static_cast<int>(result);
  return (code >= 700 && code < 800 && result != CuResult::kLaunchOutOfResources) ||
         code == kUnavailable || code == kUncorrectable || code == kUnknown;
}

Result<int> AttributeOf(const Driver& driver, CuDevice device, CuAttribute attribute) {
  int value = 0;
  const CuResult result = driver.device_attribute(&value, attribute, device);
  if (result == CuResult::kOk) return value;
  return Error(Code::kIo, "cuDeviceGetAttribute: %s", driver.Describe(result).c_str());
}

Result<CuDevice> DeviceAt(const Driver& driver, int index) {
  int count = 0;
  CuResult result = driver.device_count(&count);
  if (result != CuResult::kOk) {
    return Error(Code::kIo, "cuDeviceGetCount: %s", driver.Describe(result).c_str());
  }
  if (index < 0 || index >= count) {
    return Error(Code::kNotFound, "no device cuda:%d; the driver has %d device%s", index, count,
                 count == 1 ? "" : "s");
  }
  CuDevice device = 0;
  result = driver.device_get(&device, index);
  if (result == CuResult::kOk) return device;
  return Error(Code::kIo, "cuDeviceGet: %s", driver.Describe(result).c_str());
}

// Zero where the driver knows no such attribute.
int AttributeOrZero(const Driver& driver, CuDevice device, CuAttribute attribute) {
  int value = 0;
  return driver.device_attribute(&value, attribute, device) == CuResult::kOk ? value : 0;
}

Result<DeviceFacts> ReadFacts(const Driver& driver, CuDevice device) {
  DeviceFacts facts;
  char name[256] = "";
  const CuResult result = driver.device_name(name, sizeof name, device);
  if (result != CuResult::kOk) {
    return Error(Code::kIo, "cuDeviceGetName: %s", driver.Describe(result).c_str());
  }
  name[sizeof name - 1] = 0;
  facts.name = name;
  HEARTH_ASSIGN(const int major, AttributeOf(driver, device, CuAttribute::kMajor));
  HEARTH_ASSIGN(const int minor, AttributeOf(driver, device, CuAttribute::kMinor));
  facts.capability = 10 * major + minor;
  facts.level = Printf("sm_%d", facts.capability);
  HEARTH_ASSIGN(facts.max_shared_bytes,
                AttributeOf(driver, device, CuAttribute::kMaxSharedBytesPerBlock));
  size_t total = 0;
  if (driver.device_memory(&total, device) == CuResult::kOk) facts.total_bytes = total;
  facts.num_processors = AttributeOrZero(driver, device, CuAttribute::kNumProcessors);
  // Two transfers a clock.
  facts.nominal_bandwidth = 2e3 * AttributeOrZero(driver, device, CuAttribute::kMemoryKilohertz) *
                            (AttributeOrZero(driver, device, CuAttribute::kMemoryBits) / 8.0);
  return facts;
}

}  // namespace

const char* NameOf(Kernel kernel) { return kNames[static_cast<size_t>(kernel)]; }

bool DeviceFacts::runs_kernels() const { return capability >= kOldest; }

Result<int> IndexOf(const std::string& device) {
  constexpr std::string_view kPrefix = "cuda:";
  const std::string_view text = device;
  int index = 0;
  if (text.starts_with(kPrefix)) {
    const char* begin = text.data() + kPrefix.size();
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, index);
    if (error == std::errc() && stop == end && index >= 0) return index;
  }
  return Error(Code::kInvalid, "--device %s: expected cpu, cuda:0, cuda:1 ... or auto",
               Quoted(device).c_str());
}

Result<int> CountDevices() {
  HEARTH_ASSIGN(const Driver* driver, LoadDriver());
  int count = 0;
  const CuResult result = driver->device_count(&count);
  if (result == CuResult::kOk) return count;
  return Error(Code::kIo, "cuDeviceGetCount: %s", driver->Describe(result).c_str());
}

Result<std::string> DriverVersion() {
  HEARTH_ASSIGN(const Driver* driver, LoadDriver());
  int version = 0;
  const CuResult result = driver->driver_version(&version);
  if (result == CuResult::kOk) return Printf("%d.%d", version / 1000, version % 1000 / 10);
  return Error(Code::kIo, "cuDriverGetVersion: %s", driver->Describe(result).c_str());
}

Result<DeviceFacts> FactsOf(int index) {
  HEARTH_ASSIGN(const Driver* driver, LoadDriver());
  HEARTH_ASSIGN(const CuDevice device, DeviceAt(*driver, index));
  return ReadFacts(*driver, device);
}

Block& Block::operator=(Block&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(is_host_, other.is_host_);
  std::swap(at_, other.at_);
  std::swap(size_, other.size_);
  return *this;
}

Block::~Block() {
  if (device_ != nullptr) device_->Free(*this);
}

Result<std::unique_ptr<Device>> Device::Open(int index, std::span<const std::byte> image) {
  HEARTH_ASSIGN(const Driver* driver, LoadDriver());
  std::unique_ptr<Device> device(new Device(*driver));
  HEARTH_TRY(device->Load(index, image));
  return device;
}

Status Device::Load(int index, std::span<const std::byte> image) {
  HEARTH_ASSIGN(device_, DeviceAt(driver_, index));
  HEARTH_ASSIGN(facts_, ReadFacts(driver_, device_));
  if (!facts_.runs_kernels()) {
    return Error(Code::kUnsupported, "%s has compute capability %d.%d; at least %d.%d is needed",
                 facts_.name.c_str(), facts_.capability / 10, facts_.capability % 10, kOldest / 10,
                 kOldest % 10);
  }
  HEARTH_TRY(Check(driver_.context_retain(&context_, device_), "cuDevicePrimaryCtxRetain"));
  HEARTH_TRY(Enter());
  HEARTH_TRY(Check(driver_.stream_make(&stream_, kStreamNonBlocking), "cuStreamCreate"));
  HEARTH_TRY(
      Check(driver_.event_make(&event_, kEventBlockingWait | kEventNoTiming), "cuEventCreate"));
  if (image.empty()) return Status();
  HEARTH_TRY(Check(driver_.module_load(&module_, image.data()), "cuModuleLoadData"));
  for (size_t i = 0; i < kNumKernels; ++i) {
    HEARTH_TRY(Check(driver_.module_function(&functions_[i], module_, kNames[i]), kNames[i]));
    shared_bytes_[i] = kUsualShared;
  }
  return Status();
}

// What fails here cannot be helped; a lost device has nothing left to give back.
Device::~Device() {
  if (context_ == nullptr) return;
  driver_.context_set(context_);
  if (stream_ != nullptr) driver_.stream_wait(stream_);
  if (module_ != nullptr) driver_.module_unload(module_);
  if (event_ != nullptr) driver_.event_end(event_);
  if (stream_ != nullptr) driver_.stream_end(stream_);
  driver_.context_release(device_);
}

Status Device::Check(CuResult result, const char* doing) {
  if (result == CuResult::kOk) return Status();
  const std::string why = driver_.Describe(result);
  if (result == CuResult::kOutOfMemory) {
    return Error(Code::kExhausted, "%s: %s", doing, why.c_str());
  }
  if (!IsFinal(result)) return Error(Code::kIo, "%s: %s", doing, why.c_str());
  lost_ = Error(Code::kIo,
                "%s stopped working (%s: %s); restart Hearth, and see the kernel's log if it "
                "happens again",
                facts_.name.c_str(), doing, why.c_str());
  return lost_;
}

Status Device::Enter() {
  HEARTH_TRY(lost_);
  return Check(driver_.context_set(context_), "cuCtxSetCurrent");
}

Result<uint64_t> Device::FreeBytes() {
  size_t free = 0, total = 0;
  HEARTH_TRY(Check(driver_.memory_info(&free, &total), "cuMemGetInfo"));
  return free;
}

Result<DeviceBlock> Device::Take(int64_t bytes, const char* what) {
  HEARTH_TRY(lost_);
  DeviceBlock block;
  const auto size = static_cast<size_t>(bytes > 0 ? bytes : 1);
  HEARTH_TRY(Check(driver_.memory_take(&block.at_, size), "cuMemAlloc")
                 .Within(Printf("%.2f GiB for %s on %s", static_cast<double>(bytes) / (1 << 30),
                                what, facts_.name.c_str())));
  block.device_ = this;
  block.size_ = size;
  return block;
}

Result<PinnedBlock> Device::TakePinned(int64_t bytes, const char* what) {
  HEARTH_TRY(lost_);
  PinnedBlock block;
  const auto size = static_cast<size_t>(bytes > 0 ? bytes : 1);
  void* at = nullptr;
  HEARTH_TRY(Check(driver_.host_take(&at, size, 0), "cuMemHostAlloc")
                 .Within(Printf("%.2f GiB of host memory for %s",
                                static_cast<double>(bytes) / (1 << 30), what)));
  block.at_ = reinterpret_cast<uint64_t>(at);
  block.is_host_ = true;
  block.device_ = this;
  block.size_ = size;
  return block;
}

Result<PinnedBlock> Device::TakeManaged(int64_t bytes, const char* what) {
  HEARTH_TRY(lost_);
  PinnedBlock block;
  const auto size = static_cast<size_t>(bytes > 0 ? bytes : 1);
  HEARTH_TRY(Check(driver_.memory_managed(&block.at_, size, kManagedGlobal), "cuMemAllocManaged")
                 .Within(Printf("%.2f GiB for %s", static_cast<double>(bytes) / (1 << 30), what)));
  block.device_ = this;
  block.size_ = size;
  return block;
}

void Device::Free(const Block& block) {
  driver_.context_set(context_);
  if (block.is_host_) {
    driver_.host_free(reinterpret_cast<void*>(block.at_));
  } else {
    driver_.memory_free(block.at_);
  }
}

Status Device::CopyIn(void* to, const void* from, size_t bytes) {
  HEARTH_TRY(lost_);
  if (bytes == 0) return Status();
  return Check(driver_.copy_in(reinterpret_cast<CuPointer>(to), from, bytes, stream_),
               "cuMemcpyHtoDAsync");
}

Status Device::CopyOut(void* to, const void* from, size_t bytes) {
  HEARTH_TRY(lost_);
  if (bytes == 0) return Status();
  return Check(driver_.copy_out(to, reinterpret_cast<CuPointer>(from), bytes, stream_),
               "cuMemcpyDtoHAsync");
}

Status Device::Fill(void* at, uint8_t byte, size_t bytes) {
  HEARTH_TRY(lost_);
  if (bytes == 0) return Status();
  return Check(driver_.fill(reinterpret_cast<CuPointer>(at), byte, bytes, stream_),
               "cuMemsetD8Async");
}

Status Device::LaunchBytes(Kernel kernel, const Grid& grid, const void* args) {
  HEARTH_TRY(lost_);
  const auto index = static_cast<size_t>(kernel);
  if (grid.shared_bytes > shared_bytes_[index]) {
    HEARTH_TRY(Check(driver_.function_set(functions_[index], kFunctionMaxDynamicShared,
                                          static_cast<int>(grid.shared_bytes)),
                     kNames[index]));
    shared_bytes_[index] = grid.shared_bytes;
  }
  void* params[] = {const_cast<void*>(args)};
  return Check(driver_.launch(functions_[index], static_cast<unsigned>(grid.x),
                              static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z),
                              static_cast<unsigned>(grid.threads), 1, 1,
                              static_cast<unsigned>(grid.shared_bytes), stream_, params, nullptr),
               kNames[index]);
}

LaunchGraph::~LaunchGraph() {
  if (device_ == nullptr) return;
  device_->driver_.context_set(device_->context_);
  device_->driver_.graph_exec_end(executable_);
}

// Whatever fails, the stream must leave its state of writing down.
Result<LaunchGraph> Device::Record(const std::function<Status()>& ask) {
  HEARTH_TRY(lost_);
  HEARTH_TRY(Check(driver_.capture_begin(stream_, kCaptureThreadLocal), "cuStreamBeginCapture"));
  Status asked = ask();
  CuGraph graph = nullptr;
  Status status = Check(driver_.capture_end(stream_, &graph), "cuStreamEndCapture");
  LaunchGraph made;
  if (asked.ok() && status.ok()) {
    status = Check(driver_.graph_make(&made.executable_, graph, 0), "cuGraphInstantiate");
    if (status.ok()) made.device_ = this;
  }
  if (graph != nullptr) driver_.graph_end(graph);
  HEARTH_TRY(asked);
  HEARTH_TRY(status);
  return made;
}

Status Device::Launch(const LaunchGraph& graph) {
  HEARTH_TRY(lost_);
  return Check(driver_.graph_launch(graph.executable_, stream_), "cuGraphLaunch");
}

Status Device::Mark() {
  HEARTH_TRY(lost_);
  return Check(driver_.event_record(event_, stream_), "cuEventRecord");
}

Status Device::Wait() {
  HEARTH_TRY(lost_);
  return Check(driver_.event_wait(event_), "cuEventSynchronize");
}

Result<double> Device::Time(const std::function<Status()>& ask) {
  HEARTH_TRY(lost_);
  CuEvent ends[2] = {};
  float milliseconds = 0;
  const auto measured = [&]() -> Status {
    for (CuEvent& end : ends) HEARTH_TRY(Check(driver_.event_make(&end, 0), "cuEventCreate"));
    HEARTH_TRY(Check(driver_.event_record(ends[0], stream_), "cuEventRecord"));
    HEARTH_TRY(ask());
    HEARTH_TRY(Check(driver_.event_record(ends[1], stream_), "cuEventRecord"));
    HEARTH_TRY(Check(driver_.event_wait(ends[1]), "cuEventSynchronize"));
    return Check(driver_.event_elapsed(&milliseconds, ends[0], ends[1]), "cuEventElapsedTime");
  };
  Status status = measured();
  if (!status.ok()) Drain();
  for (const CuEvent end : ends) {
    if (end != nullptr) driver_.event_end(end);
  }
  HEARTH_TRY(status);
  return double{milliseconds} / 1e3;
}

void Device::Drain() {
  if (lost_.ok()) static_cast<void>(Check(driver_.stream_wait(stream_), "cuStreamSynchronize"));
}

}  // namespace hearth::cuda
