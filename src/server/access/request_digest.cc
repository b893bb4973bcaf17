// SPDX-License-Identifier: Apache-2.0
#include "server/access/request_digest.h"

#include <openssl/evp.h>

#include <cstring>
#include <memory>
#include <new>

#include "server/access/or_no_memory.h"

namespace hearth {

std::array<uint64_t, 2> DigestOfRequest(std::string_view path, std::string_view body) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  if (context == nullptr) throw std::bad_alloc();
  std::array<unsigned char, 32> digest{};
  const unsigned char separator = 0;  // no path contains it
  OrNoMemory(EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1 &&
             EVP_DigestUpdate(context.get(), path.data(), path.size()) == 1 &&
             EVP_DigestUpdate(context.get(), &separator, 1) == 1 &&
             EVP_DigestUpdate(context.get(), body.data(), body.size()) == 1 &&
             EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1);
  std::array<uint64_t, 2> first{};
  std::memcpy(first.data(), digest.data(), sizeof first);
  return first;
}

}  // namespace hearth
