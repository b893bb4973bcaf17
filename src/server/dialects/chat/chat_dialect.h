// SPDX-License-Identifier: Apache-2.0
// OpenAI's chat completions: POST /v1/chat/completions.
#pragma once
#include <memory>

#include "server/turns/dialect.h"
namespace hearth {

std::shared_ptr<const Dialect> MakeChatDialect();

}  // namespace hearth
