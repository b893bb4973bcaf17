// SPDX-License-Identifier: Apache-2.0
// What a thread is called in `top -H`, in a debugger, and by the tests that fail the memory or the
// system calls of some threads alone.
#pragma once
#include <pthread.h>
namespace hearth {

// At most 15 characters; longer names are left out. Only a help for readers: it cannot fail.
inline void NameThread(const char* name) { ::pthread_setname_np(::pthread_self(), name); }

}  // namespace hearth
