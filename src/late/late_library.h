// SPDX-License-Identifier: Apache-2.0
// A shared library that the program does not link, loaded when it is first used. A server that
// sends no traces and shares no database then maps neither libcurl nor libpq, nor the forty
// libraries that those bring along (LDAP, Kerberos, SSH, RTMP, GnuTLS). Internal to the room.
#pragma once
#include "base/mutex.h"
#include "base/result.h"
namespace hearth {

// Thread: any. Never unloaded: such libraries keep threads and handlers at exit.
class LateLibrary {
 public:
  // `file` as the loader looks for it; `package` is what Debian calls the package that has it.
  LateLibrary(const char* file, const char* package) : file_(file), package_(package) {}
  // kUnsupported, with what to install, when there is none.
  Status Load() HEARTH_EXCLUDES(mu_);
  // Loads it if need be. REQUIRES: it can be loaded, and has a function of this name.
  template <typename Function>
  Function* Find(const char* name) {
    return reinterpret_cast<Function*>(Look(name));
  }

 private:
  void* Look(const char* name) HEARTH_EXCLUDES(mu_);

  const char* const file_;
  const char* const package_;
  Mutex mu_;
  void* handle_ HEARTH_GUARDED_BY(mu_) = nullptr;
};

}  // namespace hearth
