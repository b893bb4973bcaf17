// SPDX-License-Identifier: Apache-2.0
// Ollama's API: chats, prompts and embeddings as lines of JSON, and what it tells of models.
#pragma once
#include <memory>

#include "server/turns/dialect.h"
namespace hearth {

std::shared_ptr<const Dialect> MakeOllamaDialect();

}  // namespace hearth
