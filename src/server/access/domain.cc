// SPDX-License-Identifier: Apache-2.0
#include "server/access/domain.h"

#include <openssl/evp.h>

#include <array>
#include <cstring>
#include <string>

#include "base/check.h"

namespace hearth {
namespace {

uint64_t Hash(const std::string& text) {
  std::array<unsigned char, 32> digest{};
  HEARTH_CHECK(
      EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr) == 1);
  uint64_t out = 0;
  std::memcpy(&out, digest.data(), sizeof(out));
  return out;
}

}  // namespace

KvDomain DomainOf(std::string_view key_id, std::string_view cache_salt, uint64_t secret) {
  KvDomain domain;
  if (key_id.empty() && cache_salt.empty()) return domain;
  const std::string key(key_id);
  // The length in front keeps ("a", "bc") and ("ab", "c") apart.
  domain.salt = Hash(std::to_string(secret) + ":" + std::to_string(key.size()) + ":" + key +
                     std::string(cache_salt));
  // By name, not by place in the keys file: a reload must not change who is who.
  if (!key.empty()) domain.tenant = static_cast<uint32_t>(Hash(key)) | 1;
  return domain;
}

}  // namespace hearth
