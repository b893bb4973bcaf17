// SPDX-License-Identifier: Apache-2.0
#include "server/access/secrets.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <memory>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/fresh_random.h"
#include "server/access/or_no_memory.h"

namespace hearth {
namespace {

constexpr std::string_view kSalt = "hearth secrets, version 1";

std::string_view NameOf(Purpose purpose) {
  switch (purpose) {
    case Purpose::kEventIds:
      return "event ids, version 2";
    case Purpose::kCacheDomains:
      return "cache domains, version 1";
    case Purpose::kBlockNames:
      return "block names, version 1";
    case Purpose::kBlockRecords:
      return "block records, version 1";
    case Purpose::kJournalRecords:
      return "journal records, version 1";
    case Purpose::kThoughts:
      return "thoughts, version 2";
    case Purpose::kThoughtNonces:
      return "nonces of thoughts, version 2";
  }
  HEARTH_CHECK(false);
}

using Kdf = std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)>;
using KdfContext = std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)>;

OSSL_PARAM Bytes(const char* name, std::string_view bytes) {
  // The library only reads it, and has one type for both ways.
  return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(bytes.data()), bytes.size());
}

}  // namespace

Secrets::Secrets(std::string root) : root_(std::move(root)) { HEARTH_CHECK(!root_.empty()); }

Secrets Secrets::Fresh() {
  std::string root(32, '\0');
  FillRandom({reinterpret_cast<unsigned char*>(root.data()), root.size()});
  return Secrets(std::move(root));
}

std::string Secrets::TextFor(Purpose purpose) const {
  const auto bytes = For(purpose);
  return {bytes.begin(), bytes.end()};
}

void Secrets::Fill(Purpose purpose, std::span<unsigned char> out) const {
  const Kdf kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr), &EVP_KDF_free);
  OrNoMemory(kdf != nullptr);
  const KdfContext context(EVP_KDF_CTX_new(kdf.get()), &EVP_KDF_CTX_free);
  OrNoMemory(context != nullptr);
  char digest[] = "SHA256";
  const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
                               Bytes(OSSL_KDF_PARAM_KEY, root_), Bytes(OSSL_KDF_PARAM_SALT, kSalt),
                               Bytes(OSSL_KDF_PARAM_INFO, NameOf(purpose)),
                               OSSL_PARAM_construct_end()};
  OrNoMemory(EVP_KDF_derive(context.get(), out.data(), out.size(), params) == 1);
}

}  // namespace hearth
