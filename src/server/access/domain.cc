// SPDX-License-Identifier: Apache-2.0
#include "server/access/domain.h"

#include <openssl/evp.h>

#include <array>
#include <cstring>
#include <string>

#include "base/check.h"
#include "server/access/keyed_sum.h"

namespace hearth {
namespace {

template <class Digest>
uint64_t FirstOf(const Digest& digest) {
  uint64_t out = 0;
  std::memcpy(&out, digest.data(), sizeof(out));
  return out;
}

uint32_t TenantOf(const std::string& key_id) {
  std::array<unsigned char, 32> digest{};
  HEARTH_CHECK(
      EVP_Digest(key_id.data(), key_id.size(), digest.data(), nullptr, EVP_sha256(), nullptr) == 1);
  return static_cast<uint32_t>(FirstOf(digest)) | 1;
}

}  // namespace

KvDomain DomainOf(const std::string& key_id, std::string_view cache_salt, const CipherKey& secret) {
  KvDomain domain;
  if (key_id.empty() && cache_salt.empty()) return domain;
  domain.salt = FirstOf(SumOf(secret, key_id, cache_salt));
  // By name, not by place in the keys file: a reload must not change who is who.
  if (!key_id.empty()) domain.tenant = TenantOf(key_id);
  return domain;
}

}  // namespace hearth
