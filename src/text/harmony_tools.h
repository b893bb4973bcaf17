// SPDX-License-Identifier: Apache-2.0
// How harmony shows tools to the model: JSON schemas written as TypeScript-like signatures.
#pragma once
#include <string>
#include <vector>

#include "text/conversation.h"
namespace hearth {

// The "# Tools" section of the developer message, without a newline at its end. The layout is the
// one gpt-oss was trained on, including its oddities: see docs/harmony.md.
std::string HarmonyToolsSection(const std::vector<ToolDefinition>& tools);

}  // namespace hearth
