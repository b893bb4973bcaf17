// SPDX-License-Identifier: Apache-2.0
#include "server/access/siv_seal.h"

#include <openssl/evp.h>

#include <vector>

#include "server/access/base64.h"
#include "server/access/or_no_memory.h"

namespace hearth {
namespace {

using Bytes = std::vector<unsigned char>;
using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

Context NewContext() {
  Context context(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  OrNoMemory(context != nullptr);
  return context;
}

std::shared_ptr<const EVP_CIPHER_CTX> WithKey(const SivSeal::Key& key, int seals) {
  const std::unique_ptr<EVP_CIPHER, decltype(&EVP_CIPHER_free)> siv(
      EVP_CIPHER_fetch(nullptr, "AES-256-SIV", nullptr), &EVP_CIPHER_free);
  OrNoMemory(siv != nullptr);
  Context context = NewContext();
  OrNoMemory(EVP_CipherInit_ex2(context.get(), siv.get(), key.data(), nullptr, seals, nullptr) ==
             1);
  return {context.release(), &EVP_CIPHER_CTX_free};
}

const unsigned char* Raw(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Never empty: an empty part is left out by some versions of the library.
std::string AboutOf(std::string_view tenant) { return "tenant:" + std::string(tenant); }

// A context with the key that has seen the tenant.
Context Begin(const EVP_CIPHER_CTX* keyed, std::string_view tenant) {
  Context context = NewContext();
  const std::string about = AboutOf(tenant);
  int size = 0;
  OrNoMemory(EVP_CIPHER_CTX_copy(context.get(), keyed) == 1 &&
             EVP_CipherUpdate(context.get(), nullptr, &size, Raw(about),
                              static_cast<int>(about.size())) == 1);
  return context;
}

}  // namespace

SivSeal::SivSeal(const Key& key) : to_seal_(WithKey(key, 1)), to_open_(WithKey(key, 0)) {}

std::string SivSeal::Seal(std::string_view content, std::string_view tenant) const {
  const Context context = Begin(to_seal_.get(), tenant);
  Bytes out(kExtraBytes + content.size());
  int size = 0;
  OrNoMemory(EVP_CipherUpdate(context.get(), out.data() + kExtraBytes, &size, Raw(content),
                              static_cast<int>(content.size())) == 1 &&
             EVP_CipherFinal_ex(context.get(), out.data(), &size) == 1 &&
             EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, kExtraBytes, out.data()) ==
                 1);
  return AsBase64(out);
}

std::optional<std::string> SivSeal::Open(std::string_view sealed, std::string_view tenant) const {
  std::optional<Bytes> bytes = FromBase64(sealed);
  if (!bytes || bytes->size() <= kExtraBytes) return std::nullopt;
  const Context context = Begin(to_open_.get(), tenant);
  std::string out(bytes->size() - kExtraBytes, '\0');
  int size = 0;
  const bool is_ours =
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, kExtraBytes, bytes->data()) == 1 &&
      EVP_CipherUpdate(context.get(), reinterpret_cast<unsigned char*>(out.data()), &size,
                       bytes->data() + kExtraBytes, static_cast<int>(out.size())) == 1 &&
      EVP_CipherFinal_ex(context.get(), bytes->data(), &size) == 1;
  if (!is_ours) return std::nullopt;
  return out;
}

}  // namespace hearth
