// SPDX-License-Identifier: Apache-2.0
// The packed file, byte for byte (docs/loading.md draws it): what `hearth pack` writes. It keeps a
// checkpoint's own descriptions verbatim and, in place of its tensors, the weights as a backend
// arranged them. Everything is under a hash.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "platform/chunk_hash.h"
namespace hearth {

struct PackedFormat {
  static constexpr std::string_view kMagic = "HRTHPACK";
  static constexpr uint32_t kVersion = 1;
  static constexpr uint64_t kHeaderBytes = 4096;  // 104 are used, the rest is zero
  // A quarter of an L2 cache or less, so that a chunk is still there when it was just touched; 12
  // GB have 12,000 of them.
  static constexpr uint64_t kChunkBytes = uint64_t{1} << 20;
  static constexpr uint64_t kWeightsAlignment = uint64_t{2} << 20;  // huge pages
  static constexpr uint64_t kMaxSourcesBytes = uint64_t{1} << 30;
  static constexpr uint64_t kMaxSources = 4096, kMaxPieces = 65536, kMaxNameBytes = 255;
};

// A file of the checkpoint, or as much of it as was kept.
struct PackedSource {
  enum class Kind : uint32_t { kText = 0, kGguf = 1, kSafetensors = 2 };
  struct Piece {
    uint64_t offset = 0;
    std::span<const std::byte> bytes;
  };
  Kind kind = Kind::kText;
  std::string name;           // plain: printable, no folder
  uint64_t size = 0;          // of the whole file
  std::vector<Piece> pieces;  // ascending, apart, inside `size`; a text is one whole piece
};

// Where everything lies. Offsets and sizes were checked against each other and the file.
struct PackedHeader {
  uint32_t layout = 0;
  uint64_t file_bytes = 0, sources_bytes = 0;
  uint64_t weights_offset = 0, weights_bytes = 0;
  uint64_t extra_bytes = 0;  // right after the weights
  uint64_t hashes_offset = 0;
  ChunkHash hash_of_hashes{};

  // Chunk i is [i, i + 1) * kChunkBytes of the file, without header and hashes.
  uint64_t num_chunks() const;
  uint64_t chunk_begin(uint64_t chunk) const;
  uint64_t chunk_end(uint64_t chunk) const;
};

bool LooksPacked(std::span<const std::byte> file);
// The first PackedFormat::kHeaderBytes of a file, and back. kCorrupt when any byte of them is
// wrong.
std::string WriteHeader(const PackedHeader& header);
Result<PackedHeader> ReadHeader(std::span<const std::byte> file);
// Fills in what follows from the sizes: offsets and the size of the file.
PackedHeader PlaceSections(uint32_t layout, uint64_t sources_bytes, uint64_t weights_bytes,
                           uint64_t extra_bytes);

std::string WriteSources(std::span<const PackedSource> sources);
// Pieces are views into `bytes`.
Result<std::vector<PackedSource>> ReadSources(std::span<const std::byte> bytes);

}  // namespace hearth
