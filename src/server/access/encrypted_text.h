// SPDX-License-Identifier: Apache-2.0
// Text that clients keep for this server and cannot read or change: thoughts of replies that are
// not stored here. Encrypted and authenticated (AES-256-GCM), each for one tenant.
#pragma once
#include <array>
#include <optional>
#include <string>
namespace hearth {

using CipherKey = std::array<unsigned char, 32>;
CipherKey NewCipherKey();

// Thread: any.
class TextCipher {
 public:
  static constexpr size_t kMaxBytes = size_t{2} << 20;  // of the text
  // `root` is nobody else's: what is encrypted has secrets of its own from it (secrets.h).
  explicit TextCipher(const CipherKey& root);
  // The same text of the same tenant is the same encrypted text, so that prompts built from it are
  // comparable; that much is told to who has both. Empty when the text is too long.
  std::string Encrypt(const std::string& text, const std::string& tenant) const;
  // Nothing unless Encrypt made it with this key for this tenant.
  std::optional<std::string> Decrypt(const std::string& encrypted, const std::string& tenant) const;

 private:
  const CipherKey key_, nonce_key_;
  const CipherKey old_key_;  // the root itself, with which earlier versions encrypted
};

}  // namespace hearth
