// SPDX-License-Identifier: Apache-2.0
#include "hub/partial_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <optional>
#include <utility>

#include "base/json.h"
#include "platform/file.h"

namespace hearth {
namespace {

constexpr size_t kMaxStateBytes = size_t{16} << 20;

Status OsError(const std::string& path, const char* doing) {
  const int why = errno;
  if (why == ENOSPC || why == EDQUOT || why == EFBIG) {
    return Error(Code::kIo,
                 "%s: the disk is full (%s): %s; free some space, or set HEARTH_MODELS to a folder "
                 "on another disk",
                 path.c_str(), doing, std::strerror(why));
  }
  return Error(Code::kIo, "%s: %s: %s", path.c_str(), doing, std::strerror(why));
}

Json StateOf(const PartialPlan& plan) {
  return JsonObject{{"size", plan.size},
                    {"part_bytes", plan.part_bytes},
                    {"digest", plan.digest.text()},
                    {"identity", plan.identity}};
}

// The size of its parts, when the state is of the same file: an earlier attempt may have cut it
// differently.
std::optional<uint64_t> PartBytesOf(const Json& state, PartialPlan plan) {
  const Json* head = state.Find("file");
  const Json* part_bytes = head != nullptr ? head->Find("part_bytes") : nullptr;
  const auto value = part_bytes != nullptr ? part_bytes->unsigned_integer() : std::nullopt;
  if (!value || *value == 0) return std::nullopt;
  plan.part_bytes = *value;
  return *head == StateOf(plan) ? value : std::nullopt;
}

std::optional<Json> ReadState(const std::string& path) {
  Result<std::string> text = ReadTextFile(path, kMaxStateBytes);
  if (!text.ok()) return std::nullopt;
  Result<Json> json = ParseJson(*text, {.max_depth = 8});
  return json.ok() ? std::optional<Json>(*std::move(json)) : std::nullopt;
}

}  // namespace

PartialFile::PartialFile(std::string path, PartialPlan plan, int descriptor)
    : path_(std::move(path)), plan_(std::move(plan)), descriptor_(descriptor) {}

PartialFile::PartialFile(PartialFile&& other) noexcept
    : path_(std::move(other.path_)),
      plan_(std::move(other.plan_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      parts_(std::move(other.parts_)) {}

PartialFile::~PartialFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string PartialFile::Beside(const std::string& path, const char* end) {
  const size_t slash = path.rfind('/');
  const size_t start = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(0, start) + "." + path.substr(start) + end;
}

uint64_t PartialFile::end(int part) const {
  return std::min(plan_.size, begin(part) + plan_.part_bytes);
}

Result<PartialFile> PartialFile::Open(const std::string& path, const PartialPlan& plan) {
  HEARTH_CHECK(plan.part_bytes > 0);
  PartialFile file(path, plan, -1);
  const std::string name = file.beside(".part");
  // O_NOFOLLOW: a symlink in its place would have us write somewhere else.
  file.descriptor_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file.descriptor_ < 0) return OsError(name, "cannot create");
  file.Resume();
  if (Status status = file.Reserve(); !status.ok()) {
    if (file.DoneBytes() == 0) file.Discard();
    return status;
  }
  return file;
}

Status PartialFile::Reserve() const {
  const auto size = static_cast<off_t>(plan_.size);
  if (size == 0) return Status();
  if (::fallocate(descriptor_, 0, 0, size) == 0) return Status();
  if (errno != EOPNOTSUPP && errno != ENOSYS) return OsError(path_, "reserving its space");
  // Not every file system can; then a full disk shows while writing.
  return ::ftruncate(descriptor_, size) == 0 ? Status() : OsError(path_, "setting its length");
}

void PartialFile::Resume() {
  const bool is_known = plan_.digest.kind != DigestKind::kNone || !plan_.identity.empty();
  const std::optional<Json> state = is_known ? ReadState(beside(".state")) : std::nullopt;
  const auto part_bytes = state ? PartBytesOf(*state, plan_) : std::nullopt;
  if (part_bytes) plan_.part_bytes = *part_bytes;
  parts_.resize((plan_.size + plan_.part_bytes - 1) / plan_.part_bytes);
  const Json* parts = part_bytes ? state->Find("parts") : nullptr;
  if (parts == nullptr || parts->object() == nullptr) return;
  for (int part = 0; part < num_parts(); ++part) {
    const Json* noted = parts->Find(std::to_string(part));
    if (noted == nullptr || noted->string() == nullptr) continue;
    Result<ChunkHash> found = HashPart(part);
    if (!found.ok() || HexOf(*found) != *noted->string()) continue;
    parts_[static_cast<size_t>(part)] = {.is_done = true, .hash = *found};
  }
}

Result<ChunkHash> PartialFile::HashPart(int part) const {
  scratch_.resize(end(part) - begin(part));
  HEARTH_TRY(ReadAt(begin(part), scratch_));
  return HashOf(scratch_);
}

Status PartialFile::WriteState() const {
  JsonObject parts;
  for (int part = 0; part < num_parts(); ++part) {
    if (is_done(part)) parts.emplace_back(std::to_string(part), HexOf(hash(part)));
  }
  const std::string text =
      WriteJson(JsonObject{{"file", StateOf(plan_)}, {"parts", std::move(parts)}}) + "\n";
  // Not synced: a state that is lost or old costs time, never the truth, as parts are hashed again
  // before they are believed. Syncing it would wait for the part's own megabytes.
  const std::string name = beside(".state"), draft = beside(".state.tmp");
  const int fd = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return OsError(draft, "cannot create");
  const bool is_written =
      ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!is_written) errno = ENOSPC;  // regular files take less than all only then
  Status status = is_written ? Status() : OsError(draft, "writing");
  ::close(fd);
  HEARTH_TRY(status);
  return ::rename(draft.c_str(), name.c_str()) == 0 ? Status() : OsError(name, "cannot replace");
}

uint64_t PartialFile::DoneBytes() const {
  uint64_t bytes = 0;
  for (int part = 0; part < num_parts(); ++part) {
    if (is_done(part)) bytes += end(part) - begin(part);
  }
  return bytes;
}

uint64_t PartialFile::Frontier() const {
  for (int part = 0; part < num_parts(); ++part) {
    if (!is_done(part)) return begin(part);
  }
  return plan_.size;
}

// While the bytes are in the processor's cache. Whoever writes keeps to one part at a time.
void PartialFile::AddToHash(uint64_t offset, std::span<const std::byte> bytes) {
  const int number = PartAt(offset);
  Part& part = parts_[static_cast<size_t>(number)];
  if (offset == begin(number)) part.hasher.emplace(end(number) - offset);
  if (!part.hasher) return;
  const bool is_next =
      offset - begin(number) == part.hasher->num_added() && bytes.size() <= end(number) - offset;
  if (is_next) {
    part.hasher->Add(bytes);
  } else {
    part.hasher.reset();
  }
}

Status PartialFile::WriteAt(uint64_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return Status();
  AddToHash(offset, bytes);
  while (!bytes.empty()) {
    const ssize_t wrote =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return OsError(path_, "writing");
    bytes = bytes.subspan(static_cast<size_t>(wrote));
    offset += static_cast<uint64_t>(wrote);
  }
  return Status();
}

Status PartialFile::ReadAt(uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got =
        ::pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return OsError(path_, "reading back");
    if (got == 0) return Error(Code::kCorrupt, "%s: ends too early", path_.c_str());
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return Status();
}

Status PartialFile::Complete(int part) {
  Part& written = parts_[static_cast<size_t>(part)];
  const bool is_hashed = written.hasher && written.hasher->num_added() == end(part) - begin(part);
  if (is_hashed) {
    written.hash = written.hasher->Finish();
  } else {
    HEARTH_ASSIGN(written.hash, HashPart(part));
  }
  written.hasher.reset();
  written.is_done = true;
  // Begins to write it out, so that the sync at the end finds little to do. A hint.
  static_cast<void>(::sync_file_range(descriptor_, static_cast<off_t>(begin(part)),
                                      static_cast<off_t>(end(part) - begin(part)),
                                      SYNC_FILE_RANGE_WRITE));
  return WriteState();
}

Status PartialFile::Place() {
  const std::string name = beside(".part");
  if (::fsync(descriptor_) != 0) return OsError(name, "cannot sync");
  if (::rename(name.c_str(), path_.c_str()) != 0) return OsError(path_, "cannot put in place");
  ::close(std::exchange(descriptor_, -1));
  ::unlink(beside(".state").c_str());
  return Status();
}

void PartialFile::Discard() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  RemoveTraces(path_);
}

void PartialFile::RemoveTraces(const std::string& path) {
  for (const char* end : {".part", ".state", ".state.tmp"}) ::unlink(Beside(path, end).c_str());
}

}  // namespace hearth
