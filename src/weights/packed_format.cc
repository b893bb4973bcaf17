// SPDX-License-Identifier: Apache-2.0
#include "weights/packed_format.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "base/byte_reader.h"
#include "base/checked.h"

namespace hearth {
namespace {

constexpr uint64_t kSealedBytes = 88;  // of the header, before its own hash
constexpr uint64_t kLine = 64;

template <class T>
void Put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void Put(std::string& out, const ChunkHash& hash) {
  for (const uint32_t sum : hash) Put(out, sum);
}

Result<ChunkHash> ReadHash(ByteReader& reader, const char* what) {
  ChunkHash hash;
  for (uint32_t& sum : hash) {
    HEARTH_ASSIGN(sum, reader.U32(what));
  }
  return hash;
}

bool IsPlainName(std::string_view name) {
  const auto is_plain = [](char c) { return c > 0x20 && c < 0x7f && c != '/' && c != '\\'; };
  return !name.empty() && name.size() <= PackedFormat::kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), is_plain);
}

// Everything in the header that follows from its sizes.
bool SamePlaces(const PackedHeader& a, const PackedHeader& b) {
  return a.file_bytes == b.file_bytes && a.weights_offset == b.weights_offset &&
         a.hashes_offset == b.hashes_offset;
}

Status CheckPlaces(const PackedHeader& header, uint64_t file_bytes) {
  // Bounded by the file before anything is added up, so that no sum below can wrap.
  if (header.sources_bytes > std::min(PackedFormat::kMaxSourcesBytes, file_bytes) ||
      header.weights_bytes > file_bytes || header.extra_bytes > file_bytes) {
    return Error(Code::kCorrupt,
                 "sections of %" PRIu64 ", %" PRIu64 " and %" PRIu64 " bytes in a file of %" PRIu64,
                 header.sources_bytes, header.weights_bytes, header.extra_bytes, file_bytes);
  }
  const PackedHeader want =
      PlaceSections(header.layout, header.sources_bytes, header.weights_bytes, header.extra_bytes);
  if (!SamePlaces(header, want) || header.weights_bytes % kLine != 0) {
    return Error(Code::kCorrupt,
                 "sections end at %" PRIu64 ", expected %" PRIu64 " from their sizes",
                 header.file_bytes, want.file_bytes);
  }
  if (header.file_bytes == file_bytes) return Status();
  return Error(Code::kCorrupt, "the file has %" PRIu64 " bytes, its header says %" PRIu64,
               file_bytes, header.file_bytes);
}

Result<PackedSource> ReadSource(ByteReader& reader) {
  PackedSource source;
  HEARTH_ASSIGN(const uint32_t kind, reader.U32("a source's kind"));
  if (kind > static_cast<uint32_t>(PackedSource::Kind::kSafetensors)) {
    return Error(Code::kCorrupt, "unknown kind %u of a source", kind);
  }
  source.kind = static_cast<PackedSource::Kind>(kind);
  HEARTH_ASSIGN(const uint32_t num_pieces, reader.U32("a source's pieces"));
  HEARTH_ASSIGN(source.size, reader.U64("a source's size"));
  HEARTH_ASSIGN(const std::string_view name,
                reader.String(PackedFormat::kMaxNameBytes, "a source's name"));
  if (!IsPlainName(name))
    return Error(Code::kCorrupt, "source %s: not a valid file name", Quoted(name).c_str());
  source.name = name;
  if (num_pieces > PackedFormat::kMaxPieces) {
    return Error(Code::kCorrupt, "source %s: %u pieces are too many", source.name.c_str(),
                 num_pieces);
  }
  HEARTH_TRY(reader.CanHold(num_pieces, 16, "pieces of a source"));
  uint64_t end = 0;
  for (uint32_t i = 0; i < num_pieces; ++i) {
    PackedSource::Piece piece;
    HEARTH_ASSIGN(piece.offset, reader.U64("a piece's offset"));
    HEARTH_ASSIGN(const uint64_t size, reader.U64("a piece's size"));
    HEARTH_ASSIGN(piece.bytes, reader.Bytes(size, "a piece"));
    if (piece.offset < end || !(Checked(piece.offset) + size).FitsIn(source.size)) {
      return Error(Code::kCorrupt, "source %s: piece %u at %" PRIu64 " of %" PRIu64 " bytes",
                   source.name.c_str(), i, piece.offset, source.size);
    }
    end = piece.offset + size;
    source.pieces.push_back(piece);
  }
  const bool whole = source.pieces.size() == 1 && source.pieces[0].bytes.size() == source.size;
  if (source.kind == PackedSource::Kind::kText && !whole) {
    return Error(Code::kCorrupt, "source %s: a text must be in one piece", source.name.c_str());
  }
  return source;
}

}  // namespace

uint64_t PackedHeader::num_chunks() const {
  return (hashes_offset + PackedFormat::kChunkBytes - 1) / PackedFormat::kChunkBytes;
}
uint64_t PackedHeader::chunk_begin(uint64_t chunk) const {
  return std::max(PackedFormat::kHeaderBytes, chunk * PackedFormat::kChunkBytes);
}
uint64_t PackedHeader::chunk_end(uint64_t chunk) const {
  return std::min(hashes_offset, (chunk + 1) * PackedFormat::kChunkBytes);
}

bool LooksPacked(std::span<const std::byte> file) {
  return file.size() >= PackedFormat::kMagic.size() &&
         std::memcmp(file.data(), PackedFormat::kMagic.data(), PackedFormat::kMagic.size()) == 0;
}

PackedHeader PlaceSections(uint32_t layout, uint64_t sources_bytes, uint64_t weights_bytes,
                           uint64_t extra_bytes) {
  const auto up = [](uint64_t at, uint64_t unit) { return (at + unit - 1) / unit * unit; };
  PackedHeader header;
  header.layout = layout;
  header.sources_bytes = sources_bytes;
  header.weights_bytes = weights_bytes;
  header.extra_bytes = extra_bytes;
  header.weights_offset =
      up(PackedFormat::kHeaderBytes + sources_bytes, PackedFormat::kWeightsAlignment);
  header.hashes_offset = up(header.weights_offset + weights_bytes + extra_bytes, kLine);
  header.file_bytes = header.hashes_offset + header.num_chunks() * sizeof(ChunkHash);
  return header;
}

std::string WriteHeader(const PackedHeader& header) {
  std::string out(PackedFormat::kMagic);
  Put(out, PackedFormat::kVersion);
  Put(out, header.layout);
  for (const uint64_t number : {header.file_bytes, header.sources_bytes, header.weights_offset,
                                header.weights_bytes, header.extra_bytes, header.hashes_offset}) {
    Put(out, number);
  }
  Put(out, PackedFormat::kChunkBytes);
  Put(out, header.hash_of_hashes);
  HEARTH_CHECK(out.size() == kSealedBytes);
  Put(out, HashOf(std::as_bytes(std::span(out))));
  out.resize(PackedFormat::kHeaderBytes);
  return out;
}

Result<PackedHeader> ReadHeader(std::span<const std::byte> file) {
  if (file.size() < PackedFormat::kHeaderBytes || !LooksPacked(file)) {
    return Error(Code::kCorrupt, "this file of %zu bytes is not a packed file", file.size());
  }
  ByteReader reader(file.first(PackedFormat::kHeaderBytes));
  HEARTH_TRY(reader.Bytes(PackedFormat::kMagic.size(), "magic").status());
  HEARTH_ASSIGN(const uint32_t version, reader.U32("version"));
  // Before the hash: another version may keep it elsewhere.
  if (version != PackedFormat::kVersion) {
    return Error(Code::kUnsupported,
                 "packed format %u is not supported, this version of Hearth reads %u; run `hearth "
                 "pack` again",
                 version, PackedFormat::kVersion);
  }
  PackedHeader header;
  HEARTH_ASSIGN(header.layout, reader.U32("layout"));
  for (uint64_t* number : {&header.file_bytes, &header.sources_bytes, &header.weights_offset,
                           &header.weights_bytes, &header.extra_bytes, &header.hashes_offset}) {
    HEARTH_ASSIGN(*number, reader.U64("a section"));
  }
  HEARTH_ASSIGN(const uint64_t chunk_bytes, reader.U64("chunk size"));
  HEARTH_ASSIGN(header.hash_of_hashes, ReadHash(reader, "hash of hashes"));
  const ChunkHash actual = HashOf(file.first(kSealedBytes));
  HEARTH_ASSIGN(const ChunkHash expected, ReadHash(reader, "hash of the header"));
  if (actual != expected) {
    return Error(Code::kCorrupt, "header: expected hash %s, found %s", HexOf(expected).c_str(),
                 HexOf(actual).c_str());
  }
  const auto rest = file.subspan(reader.position(), PackedFormat::kHeaderBytes - reader.position());
  if (std::any_of(rest.begin(), rest.end(), [](std::byte b) { return b != std::byte{0}; })) {
    return Error(Code::kCorrupt, "header: bytes that must be zero are not");
  }
  if (chunk_bytes != PackedFormat::kChunkBytes) {
    return Error(Code::kCorrupt, "chunks of %" PRIu64 " bytes, expected %" PRIu64, chunk_bytes,
                 PackedFormat::kChunkBytes);
  }
  HEARTH_TRY(CheckPlaces(header, file.size()));
  return header;
}

std::string WriteSources(std::span<const PackedSource> sources) {
  std::string out;
  Put(out, static_cast<uint32_t>(sources.size()));
  for (const PackedSource& source : sources) {
    Put(out, static_cast<uint32_t>(source.kind));
    Put(out, static_cast<uint32_t>(source.pieces.size()));
    Put(out, source.size);
    Put(out, uint64_t{source.name.size()});
    out += source.name;
    for (const PackedSource::Piece& piece : source.pieces) {
      Put(out, piece.offset);
      Put(out, uint64_t{piece.bytes.size()});
      out.append(reinterpret_cast<const char*>(piece.bytes.data()), piece.bytes.size());
    }
  }
  return out;
}

Result<std::vector<PackedSource>> ReadSources(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  HEARTH_ASSIGN(const uint32_t count, reader.U32("the number of sources"));
  if (count == 0 || count > PackedFormat::kMaxSources) {
    return Error(Code::kCorrupt, "invalid number of sources: %u", count);
  }
  HEARTH_TRY(reader.CanHold(count, 24, "sources"));
  std::vector<PackedSource> sources;
  for (uint32_t i = 0; i < count; ++i) {
    HEARTH_ASSIGN(PackedSource source, ReadSource(reader));
    for (const PackedSource& before : sources) {
      if (before.name == source.name) {
        return Error(Code::kCorrupt, "source %s appears twice", source.name.c_str());
      }
    }
    sources.push_back(std::move(source));
  }
  if (reader.remaining() == 0) return sources;
  return Error(Code::kCorrupt, "%zu bytes after the last source", reader.remaining());
}

}  // namespace hearth
