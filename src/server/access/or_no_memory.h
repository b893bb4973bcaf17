// SPDX-License-Identifier: Apache-2.0
// Sums and keyed sums of OpenSSL fail for want of memory alone: then the request ends, and nothing
// else does.
#pragma once
#include <new>
namespace hearth {

inline void OrNoMemory(bool is_done) {
  if (!is_done) throw std::bad_alloc();
}

}  // namespace hearth
