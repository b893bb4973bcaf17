// SPDX-License-Identifier: Apache-2.0
// The API key that commands send to a server.
#pragma once
#include <string>

#include "base/result.h"
namespace hearth {

// What the file of --key-file contains, or without one the variable HEARTH_API_KEY; may be empty.
Result<std::string> ServerKey(const std::string& key_path);

}  // namespace hearth
