// SPDX-License-Identifier: Apache-2.0
// What Ollama's routes tell of models: /api/tags, /api/ps, /api/show, /api/pull, /api/version.
#pragma once
#include <vector>

#include "server/turns/dialect.h"
namespace hearth {

// All of them, and the routes that change models, which are answered with 501.
std::vector<DialectRoute> OllamaModelRoutes();

}  // namespace hearth
