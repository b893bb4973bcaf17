// SPDX-License-Identifier: Apache-2.0
// The sums that the Hub gives for its files: SHA-256 of large ones, git's object name of small
// ones.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
namespace hearth {

enum class DigestKind : unsigned char { kNone, kSha256, kGitBlob };

// What a file must come to. Written "sha256:<64 hex>", "git:<40 hex>" or "".
struct Digest {
  DigestKind kind = DigestKind::kNone;
  std::string hex{};  // lower case
  bool operator==(const Digest&) const = default;
  std::string text() const;
};

// None when it is not one of the two, or not in hex.
std::optional<Digest> ParseDigest(DigestKind kind, std::string_view hex);

// Adds bytes up. Thread: one at a time.
class Digester {
 public:
  // git's sum begins with the length, so it must be known. kNone adds nothing up.
  Digester(DigestKind kind, uint64_t file_bytes);
  ~Digester();
  Digester(const Digester&) = delete;
  Digester& operator=(const Digester&) = delete;
  void Add(std::span<const std::byte> bytes);
  // Once, at the end.
  Digest Finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth
