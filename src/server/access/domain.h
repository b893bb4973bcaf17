// SPDX-License-Identifier: Apache-2.0
// Whose cached work a request may see: its key's alone, and of that only what was asked for under
// the same salt.
#pragma once
#include <cstdint>
#include <string_view>

#include "engine/request.h"
namespace hearth {

// `secret` is the process's, or that of a cache which outlives it: nobody outside can aim for
// another's salt. Without a key and a salt everybody shares.
KvDomain DomainOf(std::string_view key_id, std::string_view cache_salt, uint64_t secret);

}  // namespace hearth
