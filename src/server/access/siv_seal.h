// SPDX-License-Identifier: Apache-2.0
// Short texts that clients carry for the server and can neither read nor change: AES-256-SIV (RFC
// 5297), each for one tenant. The same content of the same tenant has the same text, which is all
// that it tells: there is no nonce that could be used twice, whoever shares the key.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct evp_cipher_ctx_st;
namespace hearth {

// Copies share what was made of the key. Thread: any.
class SivSeal {
 public:
  using Key = std::array<unsigned char, 64>;
  static constexpr size_t kExtraBytes = 16;
  explicit SivSeal(const Key& key);

  // As base64: without padding when the content and kExtraBytes are a multiple of three.
  std::string Seal(std::string_view content, std::string_view tenant) const;
  // Nothing unless Seal made it with this key for this tenant.
  std::optional<std::string> Open(std::string_view sealed, std::string_view tenant) const;

 private:
  // With the key in them; copied for each use, which is cheaper than the key's schedule.
  std::shared_ptr<const evp_cipher_ctx_st> to_seal_, to_open_;
};

}  // namespace hearth
