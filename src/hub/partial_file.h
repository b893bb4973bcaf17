// SPDX-License-Identifier: Apache-2.0
// A file on its way here, in parts: which have arrived is noted on disk beside it, with a hash of
// each, so that a download goes on after whatever ended it, and a torn write is noticed.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/digest.h"
#include "platform/chunk_hash.h"
namespace hearth {

// What the file will be. Parts of an earlier attempt are used only if all of it is the same.
struct PartialPlan {
  uint64_t size = 0;
  uint64_t part_bytes = 0;
  Digest digest{};
  std::string identity{};  // a commit or ETag; with neither this nor a digest nothing is resumed
};

// `path` is where the file will be; until then there are .NAME.part and .NAME.state beside it.
// Thread: one; Read may be called by another.
class PartialFile {
 public:
  // Continues what is there, or begins anew with the whole space reserved. kIo for a full disk.
  static Result<PartialFile> Open(const std::string& path, const PartialPlan& plan);
  PartialFile(PartialFile&& other) noexcept;
  PartialFile& operator=(PartialFile&&) = delete;
  ~PartialFile();

  int num_parts() const { return static_cast<int>(parts_.size()); }
  uint64_t size() const { return plan_.size; }
  uint64_t begin(int part) const { return static_cast<uint64_t>(part) * plan_.part_bytes; }
  uint64_t end(int part) const;
  int PartAt(uint64_t offset) const { return static_cast<int>(offset / plan_.part_bytes); }
  bool is_done(int part) const { return parts_[static_cast<size_t>(part)].is_done; }
  ChunkHash hash(int part) const { return parts_[static_cast<size_t>(part)].hash; }
  uint64_t DoneBytes() const;
  // Bytes from the start that are all here.
  uint64_t Frontier() const;

  Status WriteAt(uint64_t offset, std::span<const std::byte> bytes);
  Status ReadAt(uint64_t offset, std::span<std::byte> bytes) const;
  // All bytes of the part were written.
  Status Complete(int part);
  // It is to be fetched again.
  void Forget(int part) { parts_[static_cast<size_t>(part)].is_done = false; }
  // To disk, under its own name; the state goes away.
  Status Place();
  // Nothing of it stays.
  void Discard();
  // What an attempt that was killed may have left beside a file that is whole.
  static void RemoveTraces(const std::string& path);

 private:
  struct Part {
    bool is_done = false;
    ChunkHash hash{};
    // Of its bytes while they are written in order; those that are not are read back.
    std::optional<ChunkHasher> hasher{};
  };
  PartialFile(std::string path, PartialPlan plan, int descriptor);
  Status Reserve() const;
  // The parts of an earlier attempt whose bytes are still what they were.
  void Resume();
  Status WriteState() const;
  Result<ChunkHash> HashPart(int part) const;
  void AddToHash(uint64_t offset, std::span<const std::byte> bytes);
  std::string beside(const char* end) const { return Beside(path_, end); }
  static std::string Beside(const std::string& path, const char* end);

  std::string path_;
  PartialPlan plan_;
  int descriptor_;  // -1 once placed, discarded or moved away
  std::vector<Part> parts_;
  mutable std::vector<std::byte> scratch_;  // of HashPart: as long as a part, and used for each
};

}  // namespace hearth
