// SPDX-License-Identifier: Apache-2.0
#include "app/serve_reload.h"

#include <cstdio>

#include "base/terminal.h"

namespace hearth {

void SayReloaded(const char* what, const Status& status) {
  if (status.ok()) {
    PrintError("%s reloaded\n", what);
  } else {
    PrintError("%s not reloaded: %s; the previous %s stay in use\n", what, status.message().c_str(),
               what);
  }
}

void SayReopened(const char* what, const Status& status) {
  if (status.ok()) {
    PrintError("%s reopened\n", what);
  } else {
    PrintError("%s not reopened: %s\n", what, status.message().c_str());
  }
}

}  // namespace hearth
