// SPDX-License-Identifier: Apache-2.0
#include "app/serve_reload.h"

#include <cstdio>

namespace hearth {

void SayReloaded(const char* what, const Status& status) {
  if (status.ok()) {
    std::fprintf(stderr, "%s reloaded\n", what);
  } else {
    std::fprintf(stderr, "%s not reloaded: %s; the previous %s stay in use\n", what,
                 status.message().c_str(), what);
  }
}

void SayReopened(const char* what, const Status& status) {
  if (status.ok()) {
    std::fprintf(stderr, "%s reopened\n", what);
  } else {
    std::fprintf(stderr, "%s not reopened: %s\n", what, status.message().c_str());
  }
}

}  // namespace hearth
