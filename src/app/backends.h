// SPDX-License-Identifier: Apache-2.0
// The backends that this program was built with.
#pragma once
#include <span>

#include "backend/backend_factory.h"
namespace hearth {

// The first one is the default.
std::span<const BackendFactory* const> Backends();

}  // namespace hearth
