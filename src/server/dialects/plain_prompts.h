// SPDX-License-Identifier: Apache-2.0
// Prompts without a chat's form, as completions and embeddings take them: texts or token ids, one
// or several.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/turns/api_error.h"
#include "server/turns/turn_request.h"
namespace hearth {

// A list of numbers is one prompt; a list of strings or lists is several. `field` is blamed.
ApiStatus ReadPlainPrompts(const Json& given, const std::string& field, size_t max_prompts,
                           std::vector<PlainPrompt>& out);

}  // namespace hearth
