// SPDX-License-Identifier: Apache-2.0
// POST /models/load and /models/unload: for whoever runs the server.
#pragma once
#include <memory>

#include "server/turns/dialect.h"
namespace hearth {

// `auth`: whose key may do that.
std::shared_ptr<const Dialect> MakeModelsDialect(Auth auth);

}  // namespace hearth
