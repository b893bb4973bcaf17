// SPDX-License-Identifier: Apache-2.0
// HMAC-SHA-256, for what must not be made up by anybody without the key.
#pragma once
#include <array>
#include <string>
#include <string_view>

#include "server/access/encrypted_text.h"
namespace hearth {

using KeyedSum = std::array<unsigned char, 32>;

// Throws bad_alloc when OpenSSL has no memory.
KeyedSum SumOf(std::string_view key, std::string_view text);
// Of a text that belongs to a tenant: another tenant's has another sum.
KeyedSum SumOf(const CipherKey& key, const std::string& tenant, std::string_view text);

}  // namespace hearth
