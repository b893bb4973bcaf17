// SPDX-License-Identifier: Apache-2.0
// A hash that tells whether bytes are still those that were written. It finds torn writes and rot,
// not forgery.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
namespace hearth {

// Four CRC-32C sums side by side, each over a quarter of the bytes: one sum waits for itself three
// cycles a word, four keep the processor's one unit for it busy. Quarters are multiples of 8 bytes;
// what is left over belongs to the last. A change of up to 32 bits in a row is always found.
using ChunkHash = std::array<uint32_t, 4>;
ChunkHash HashOf(std::span<const std::byte> bytes);
std::string HexOf(const ChunkHash& hash);

// The same of bytes that come one after the other, in pieces of any size.
class ChunkHasher {
 public:
  explicit ChunkHasher(uint64_t num_bytes);  // in all
  void Add(std::span<const std::byte> bytes);
  uint64_t num_added() const { return num_added_; }
  // Once all bytes were added.
  ChunkHash Finish() const;

 private:
  uint64_t num_bytes_, quarter_;
  uint64_t num_added_ = 0;
  ChunkHash sums_;
};

// The plain CRC-32C (Castagnoli) of `bytes`, a bit at a time by table: the definition, and what
// runs where the processor has no instruction for it.
uint32_t PlainCrc32c(std::span<const std::byte> bytes);

}  // namespace hearth
