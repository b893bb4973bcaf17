// SPDX-License-Identifier: Apache-2.0
#include "server/access/keyed_sum.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "server/access/or_no_memory.h"

namespace hearth {

KeyedSum SumOf(std::string_view key, std::string_view text) {
  KeyedSum sum{};
  unsigned size = 0;
  OrNoMemory(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                  reinterpret_cast<const unsigned char*>(text.data()), text.size(), sum.data(),
                  &size) != nullptr);
  return sum;
}

KeyedSum SumOf(const CipherKey& key, const std::string& tenant, std::string_view text) {
  // The length in front keeps the tenant and what follows apart.
  const std::string all = std::to_string(tenant.size()) + ":" + tenant + std::string(text);
  return SumOf({reinterpret_cast<const char*>(key.data()), key.size()}, all);
}

}  // namespace hearth
