// SPDX-License-Identifier: Apache-2.0
// The words after a status code. Clients ignore them; people with curl read them.
#pragma once
#include <string_view>
namespace hearth {
std::string_view ReasonOf(int status);
}  // namespace hearth
