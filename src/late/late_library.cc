// SPDX-License-Identifier: Apache-2.0
#include "late/late_library.h"

#include <dlfcn.h>

#include "base/check.h"

namespace hearth {

Status LateLibrary::Load() {
  const MutexLock lock(mu_);
  // All of its symbols now: once a server is confined, the loader may map no more code.
  if (handle_ == nullptr) handle_ = ::dlopen(file_, RTLD_NOW | RTLD_LOCAL);
  if (handle_ != nullptr) return Status();
  const char* why = ::dlerror();
  return Error(Code::kUnsupported, "%s cannot be loaded: install it (Debian: %s): %s", file_,
               package_, why != nullptr ? why : "no reason given");
}

void* LateLibrary::Look(const char* name) {
  HEARTH_CHECK(Load().ok());
  const MutexLock lock(mu_);
  void* const found = ::dlsym(handle_, name);
  HEARTH_CHECK(found != nullptr);
  return found;
}

}  // namespace hearth
