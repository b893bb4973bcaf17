// SPDX-License-Identifier: Apache-2.0
// Records for stores that others can read or change: encrypted and authenticated with a secret, so
// that what is stored tells nothing, and what comes back is what was stored under that key.
#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kv/tier.h"
namespace hearth {

// Thread: any.
class RecordSeal {
 public:
  // The key is derived from the secret, which may have any length.
  explicit RecordSeal(std::string_view secret);

  // What sealing adds.
  static constexpr size_t kExtraBytes = 1 + 12 + 16;

  // Empty: there is no memory or no randomness for it.
  std::vector<std::byte> Seal(const TierKey& key, std::span<const std::byte> record) const;
  // None: it was not sealed with this secret under this key, or it was changed since.
  std::optional<std::vector<std::byte>> Open(const TierKey& key,
                                             std::span<const std::byte> sealed) const;
  // The same into memory of `sealed.size() - kExtraBytes`; false: no, and what is there now is
  // worth nothing.
  bool OpenTo(const TierKey& key, std::span<const std::byte> sealed, std::byte* out) const;
  // The same in the memory where it is: which part of it is the record.
  std::optional<std::span<std::byte>> OpenInPlace(const TierKey& key,
                                                  std::span<std::byte> sealed) const;

 private:
  std::array<unsigned char, 32> key_{};
};

}  // namespace hearth
