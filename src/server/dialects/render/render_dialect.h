// SPDX-License-Identifier: Apache-2.0
// The tokens that a request would begin with: what endpoint pickers ask before they choose a
// replica by its cache.
#pragma once
#include <memory>

#include "server/turns/dialect.h"
namespace hearth {

std::shared_ptr<const Dialect> MakeRenderDialect();

}  // namespace hearth
