// SPDX-License-Identifier: Apache-2.0
// libcurl, libpq and libzmq without being linked to them: whoever includes their headers and links
// this room calls functions of the same names here, which load the library at the first call. Only
// those functions that Hearth uses are there; a further one is a line in late_*.cc.
#pragma once
#include "base/result.h"
namespace hearth {

// Called before anything else of the library, so that a missing one is an error that says what to
// install: where the functions themselves do not find it, the program stops. A server does it
// before it is confined. libcurl is initialised, too. kUnsupported or kIo.
Status LoadCurl();
Status LoadLibpq();
Status LoadZmq();

}  // namespace hearth
