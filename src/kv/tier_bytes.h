// SPDX-License-Identifier: Apache-2.0
// Bytes that a tier brought, in the memory where it read them: copying them would cost as much as
// reading them out of the operating system's cache.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>
namespace hearth {

// Never changed once made: copies share them. Thread: any.
class TierBytes {
 public:
  TierBytes() = default;
  TierBytes(std::vector<std::byte> bytes) {  // NOLINT(google-explicit-constructor): the usual owner
    auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    bytes_ = *owner;
    owner_ = std::move(owner);
  }
  // `owner` keeps their memory.
  TierBytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}

  const std::byte* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  const std::byte* begin() const { return bytes_.data(); }
  const std::byte* end() const { return bytes_.data() + bytes_.size(); }
  std::vector<std::byte> Copy() const { return {begin(), end()}; }
  friend bool operator==(const TierBytes& a, const TierBytes& b) {
    return std::ranges::equal(a.bytes_, b.bytes_);
  }

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

}  // namespace hearth
