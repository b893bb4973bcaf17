// SPDX-License-Identifier: Apache-2.0
// Anthropic's API: /v1/messages and /v1/messages/count_tokens.
#pragma once
#include <memory>

#include "server/turns/dialect.h"
namespace hearth {

std::shared_ptr<const Dialect> MakeMessagesDialect();

}  // namespace hearth
