// SPDX-License-Identifier: Apache-2.0
// Text that clients keep for this server and cannot read or change: thoughts of replies that are
// not stored here. Encrypted and authenticated (AES-256-GCM), each for one tenant.
#pragma once
#include <array>
#include <optional>
#include <string>
namespace hearth {

using SealKey = std::array<unsigned char, 32>;
SealKey NewSealKey();

// Thread: any.
class TextSealer {
 public:
  static constexpr size_t kMaxBytes = size_t{2} << 20;  // of the text
  explicit TextSealer(const SealKey& key) : key_(key) {}
  // The same text of the same tenant is the same sealed text, so that prompts built from it are
  // comparable; that much is told to who has both. Empty when the text is too long.
  std::string Seal(const std::string& text, const std::string& tenant) const;
  // Nothing unless Seal made it with this key for this tenant.
  std::optional<std::string> Open(const std::string& sealed, const std::string& tenant) const;

 private:
  const SealKey key_;
};

}  // namespace hearth
