// SPDX-License-Identifier: Apache-2.0
// Whose cached work a request may see: its key's alone, and of that only what was asked for under
// the same salt.
#pragma once
#include <string>
#include <string_view>

#include "engine/request.h"
#include "server/access/encrypted_text.h"
namespace hearth {

// The salt is a keyed sum (secrets.h, Purpose::kCacheDomains): without the secret nobody can aim
// for another's. Without a key and a salt everybody shares.
KvDomain DomainOf(const std::string& key_id, std::string_view cache_salt, const CipherKey& secret);

}  // namespace hearth
