// SPDX-License-Identifier: Apache-2.0
// Files with what clients wrote, or about them: their owner's alone.
#pragma once
#include <string>

#include "base/result.h"
namespace hearth {

// The file exists afterwards and only its owner can read and write it; one that others could read
// is closed to them. What is made beside it by SQLite takes its mode.
Status MakePrivate(const std::string& path);

// Opens for appending; a new file is its owner's alone, an old one keeps the mode that it was
// given.
Result<int> OpenPrivateForAppend(const std::string& path);

}  // namespace hearth
