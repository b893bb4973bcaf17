// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace hearth {

void Die(const char* file, int line, const char* what) {
  std::fprintf(stderr, "hearth: bug at %s:%d: %s\n", file, line, what);
  std::abort();
}

}  // namespace hearth
