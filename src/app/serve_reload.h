// SPDX-License-Identifier: Apache-2.0
// What a server says on standard error when it was told to read its files again (SIGHUP).
#pragma once
#include "base/result.h"
namespace hearth {

// `what` is a plural: "keys".
void SayReloaded(const char* what, const Status& status);
void SayReopened(const char* what, const Status& status);

}  // namespace hearth
