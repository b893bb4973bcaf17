// SPDX-License-Identifier: Apache-2.0
// The settings of a conversation by the names that /set knows.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "talk/answerer.h"
namespace hearth {

// "default" takes a setting back. kInvalid says what was expected; nothing is changed then.
Status SetSetting(std::string_view name, std::string_view value, TalkSettings& settings);
// One line for each setting: its name and value.
std::string ListSettings(const TalkSettings& settings);

// "show", "fold" or "hide"; "low", "medium" or "high".
Result<ReasoningView> ReasoningViewOf(std::string_view word);
Result<ReasoningEffort> EffortOf(std::string_view word);
const char* NameOf(ReasoningView view);
const char* NameOf(ReasoningEffort effort);

}  // namespace hearth
