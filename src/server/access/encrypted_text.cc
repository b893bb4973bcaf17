// SPDX-License-Identifier: Apache-2.0
#include "server/access/encrypted_text.h"

#include <openssl/evp.h>

#include <memory>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/fresh_random.h"
#include "server/access/base64.h"
#include "server/access/keyed_sum.h"
#include "server/access/secrets.h"

namespace hearth {
namespace {

// The first mark's text is read, and no longer written: its key was the root itself.
constexpr std::string_view kMark = "hearth2.", kOldMark = "hearth1.";
constexpr size_t kNonceBytes = 12, kTagBytes = 16;

using Bytes = std::vector<unsigned char>;
struct FreeCipher {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, FreeCipher>;

const unsigned char* Raw(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// The nonce is a keyed hash of all that is encrypted: two different texts never share one, and it
// needs no counter that would have to outlive the process.
Bytes NonceOf(const CipherKey& key, const std::string& text, const std::string& tenant) {
  const KeyedSum sum = SumOf(key, tenant, text);
  return Bytes(sum.begin(), sum.begin() + kNonceBytes);
}

Secrets SecretsOf(const CipherKey& root) { return Secrets({root.begin(), root.end()}); }

}  // namespace

TextCipher::TextCipher(const CipherKey& root)
    : key_(SecretsOf(root).For(Purpose::kThoughts)),
      nonce_key_(SecretsOf(root).For(Purpose::kThoughtNonces)),
      old_key_(root) {}

CipherKey NewCipherKey() {
  CipherKey key;
  FillRandom(key);
  return key;
}

std::string TextCipher::Encrypt(const std::string& text, const std::string& tenant) const {
  if (text.size() > kMaxBytes) return "";
  const Bytes nonce = NonceOf(nonce_key_, text, tenant);
  const Cipher cipher(EVP_CIPHER_CTX_new());
  Bytes out = nonce;
  out.resize(kNonceBytes + kTagBytes + text.size());
  unsigned char* body = out.data() + kNonceBytes + kTagBytes;
  int size = 0;
  bool ok =
      EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, key_.data(), nonce.data()) == 1;
  ok = ok && EVP_EncryptUpdate(cipher.get(), nullptr, &size, Raw(tenant),
                               static_cast<int>(tenant.size())) == 1;
  ok = ok &&
       EVP_EncryptUpdate(cipher.get(), body, &size, Raw(text), static_cast<int>(text.size())) == 1;
  ok = ok && EVP_EncryptFinal_ex(cipher.get(), body + size, &size) == 1;
  ok = ok && EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes,
                                 out.data() + kNonceBytes) == 1;
  HEARTH_CHECK(ok);
  return std::string(kMark) + AsBase64(out);
}

std::optional<std::string> TextCipher::Decrypt(const std::string& encrypted,
                                               const std::string& tenant) const {
  const bool is_old = encrypted.starts_with(kOldMark);
  if (!is_old && !encrypted.starts_with(kMark)) return std::nullopt;
  if (encrypted.size() > kMaxBytes * 3 / 2) return std::nullopt;
  static_assert(kMark.size() == kOldMark.size());
  const CipherKey& key = is_old ? old_key_ : key_;
  std::optional<Bytes> bytes = FromBase64(std::string_view(encrypted).substr(kMark.size()));
  if (!bytes || bytes->size() < kNonceBytes + kTagBytes) return std::nullopt;
  const unsigned char* body = bytes->data() + kNonceBytes + kTagBytes;
  const auto body_size = static_cast<int>(bytes->size() - kNonceBytes - kTagBytes);
  std::string text(static_cast<size_t>(body_size) + 1, '\0');
  auto* out = reinterpret_cast<unsigned char*>(text.data());
  const Cipher cipher(EVP_CIPHER_CTX_new());
  int size = 0, last = 0;
  bool ok =
      EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, key.data(), bytes->data()) == 1;
  ok = ok && EVP_DecryptUpdate(cipher.get(), nullptr, &size, Raw(tenant),
                               static_cast<int>(tenant.size())) == 1;
  ok = ok && EVP_DecryptUpdate(cipher.get(), out, &size, body, body_size) == 1;
  ok = ok && EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes,
                                 bytes->data() + kNonceBytes) == 1;
  ok = ok && EVP_DecryptFinal_ex(cipher.get(), out + size, &last) == 1;
  if (!ok) return std::nullopt;
  text.resize(static_cast<size_t>(size));
  return text;
}

}  // namespace hearth
