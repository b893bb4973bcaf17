// SPDX-License-Identifier: Apache-2.0
// The folders in which a user's programs keep their things, as the XDG Base Directory Specification
// names them.
#pragma once
#include <functional>
#include <string>
namespace hearth {

// A variable of the environment; empty when it is not set. Tests hand in their own.
using Environment = std::function<std::string(const char* name)>;
Environment ProcessEnvironment();

enum class UserFolder : unsigned char { kConfig, kData, kState, kCache };

// $XDG_CONFIG_HOME, or ~/.config when it is not set; and the like. The specification says that a
// relative path counts as none. Without a slash at its end; empty when no home is known either.
std::string PathOf(UserFolder folder, const Environment& environment);

}  // namespace hearth
