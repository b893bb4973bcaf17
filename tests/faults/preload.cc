// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that fails one allocation or one system call of the program, when and
// where a test asks on the page that both share, the file that FAULTS_PAGE names. Not seen from
// here: calls that glibc makes itself (stdio's, malloc's), raw syscall(), and what Rust code
// allocates, which ends the process where it fails.
#include "preload.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <new>

namespace faults {
namespace {

Control* control = nullptr;
std::atomic<bool> is_in_main{false};

// initial-exec: found without an allocation.
[[gnu::tls_model("initial-exec")]] thread_local uint32_t role = kMain;
[[gnu::tls_model("initial-exec")]] thread_local bool is_inside = false;

struct Range {
  uintptr_t from = 0, to = 0;
};
// Code of the C libraries whose allocations may fail.
Range fallible[16];
size_t num_fallible = 0;

int FindLibraries(dl_phdr_info* info, size_t, void*) {
  for (const char* name : {"libsqlite3", "libcrypto", "libssl", "libcurl"}) {
    if (std::strstr(info->dlpi_name, name) == nullptr) continue;
    for (int i = 0; i < info->dlpi_phnum && num_fallible < 16; ++i) {
      const auto& part = info->dlpi_phdr[i];
      if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
      const uintptr_t from = info->dlpi_addr + part.p_vaddr;
      fallible[num_fallible++] = {from, from + part.p_memsz};
    }
  }
  return 0;
}

[[gnu::constructor]] void Open() {
  const char* path = std::getenv("FAULTS_PAGE");
  if (path == nullptr) return;
  const int fd = ::open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void* page = ::mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (page == MAP_FAILED) return;
  ::dl_iterate_phdr(&FindLibraries, nullptr);
  void* warm[4];
  ::backtrace(warm, 4);  // its first call allocates
  control = static_cast<Control*>(page);
}

}  // namespace

bool IsFallible(const void* caller) {
  const auto at = reinterpret_cast<uintptr_t>(caller);
  for (size_t i = 0; i < num_fallible; ++i) {
    if (at >= fallible[i].from && at < fallible[i].to) return true;
  }
  return false;
}

bool Fails(uint32_t mode, uint64_t call, const char* what) {
  if (control == nullptr || is_inside || control->mode.load() != mode) return false;
  if (!is_in_main || (control->threads & role) == 0 || (control->calls & call) == 0) return false;
  const int64_t turn = control->seen.fetch_add(1);
  const int64_t first = control->index;
  if (turn < first || turn >= first + control->repeat) return false;
  is_inside = true;
  if (control->failed.fetch_add(1) == 0) {
    std::strncpy(control->what, what, sizeof control->what - 1);
    control->num_frames = ::backtrace(control->frames, kMaxFrames);
  }
  is_inside = false;
  return true;
}

int ErrorOf() { return control->error; }
int64_t ClockOffset() { return control == nullptr ? 0 : control->clock_offset_s.load(); }

void NameRole(const char* name) {
  struct Row {
    const char* name;
    uint32_t role;
  };
  static constexpr Row kRows[] = {{"http", kHttp},      {"text", kText},       {"engine", kEngine},
                                  {"tier-read", kTier}, {"tier-write", kTier}, {"pings", kBooks},
                                  {"accounts", kBooks}, {"journal", kBooks}};
  role = kOther;
  for (const Row& row : kRows) {
    if (std::strcmp(row.name, name) == 0) role = row.role;
  }
}

void BeginMain() { is_in_main = true; }
void EndMain() { is_in_main = false; }
void BecomeThread() { role = kOther; }

}  // namespace faults

using faults::Fails;

// --- memory --------------------------------------------------------------------------------------

void* operator new(size_t size) {
  void* memory = Fails(faults::kMemory, faults::kNew, "new") ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* operator new(size_t size, std::align_val_t align) {
  const auto step = static_cast<size_t>(align);
  void* memory = Fails(faults::kMemory, faults::kNew, "new aligned")
                     ? nullptr
                     : std::aligned_alloc(step, (size + step - 1) / step * step);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// glibc's own, under names that do not lead back here.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);

static bool FailsHere(const void* caller, const char* what) {
  return faults::IsFallible(caller) && Fails(faults::kMemory, faults::kMalloc, what);
}

void* malloc(size_t size) {
  if (FailsHere(__builtin_return_address(0), "malloc")) return nullptr;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  if (FailsHere(__builtin_return_address(0), "calloc")) return nullptr;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  if (FailsHere(__builtin_return_address(0), "realloc")) return nullptr;
  return __libc_realloc(memory, size);
}

// --- threads and the beginning of the program ----------------------------------------------------

int pthread_setname_np(pthread_t thread, const char* name) {
  static const auto next =
      reinterpret_cast<int (*)(pthread_t, const char*)>(::dlsym(RTLD_NEXT, "pthread_setname_np"));
  if (::pthread_equal(thread, ::pthread_self()) != 0) faults::NameRole(name);
  return next(thread, name);
}

struct Start {
  void* (*run)(void*);
  void* argument;
};

static void* RunThread(void* given) {
  const Start start = *static_cast<Start*>(given);
  std::free(given);
  faults::BecomeThread();
  return start.run(start.argument);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*run)(void*),
                   void* argument) {
  static const auto next =
      reinterpret_cast<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>(
          ::dlsym(RTLD_NEXT, "pthread_create"));
  auto* start = static_cast<Start*>(__libc_malloc(sizeof(Start)));
  *start = {run, argument};
  const int error = next(thread, how, &RunThread, start);
  if (error != 0) std::free(start);
  return error;
}

using Main = int (*)(int, char**, char**);
static Main real_main;

static int RunMain(int argc, char** argv, char** environment) {
  faults::BeginMain();
  const int code = real_main(argc, argv, environment);
  faults::EndMain();
  return code;
}

int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*rtld_fini)(), void* stack_end) {
  const auto next =
      reinterpret_cast<int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*)>(
          ::dlsym(RTLD_NEXT, "__libc_start_main"));
  real_main = main;
  return next(&RunMain, argc, argv, init, fini, rtld_fini, stack_end);
}
}  // extern "C"
