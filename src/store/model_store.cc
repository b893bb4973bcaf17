// SPDX-License-Identifier: Apache-2.0
#include "store/model_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

#include "platform/file.h"
#include "store/folders.h"
#include "store/reference.h"

namespace hearth {
namespace {

constexpr size_t kMaxManifestBytes = size_t{4} << 20;

Status OsError(const std::string& path, const char* doing) {
  return Error(Code::kIo, "%s: %s: %s", path.c_str(), doing, std::strerror(errno));
}

// A folder of ours, and not a symlink to one of somebody else's.
bool IsRealFolder(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Status SyncPath(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY);
  if (fd < 0) return OsError(path, "cannot open");
  const bool is_synced = ::fsync(fd) == 0;
  const int why = errno;
  ::close(fd);
  errno = why;
  return is_synced ? Status() : OsError(path, "cannot sync");
}

Status MakeFolders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return Status();
  return Error(Code::kIo,
               "%s: cannot create: %s; set HEARTH_MODELS to a folder that can be written",
               path.c_str(), error.message().c_str());
}

}  // namespace

ModelLock::ModelLock(ModelLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

ModelLock::~ModelLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string ModelStore::FolderOf(std::string_view name) const {
  HEARTH_CHECK(IsModelName(name));
  return root_ + "/" + std::string(name);
}

std::string ModelStore::PathOf(const Manifest& manifest) const {
  const std::string folder = FolderOf(manifest.name);
  return manifest.is_directory ? folder : folder + "/" + manifest.files[0].name;
}

Result<Manifest> ModelStore::Read(std::string_view name) const {
  const std::string folder = FolderOf(name);
  const std::string path = folder + "/" + std::string(kManifestName);
  if (!IsRealFolder(folder) || !FileExists(path)) {
    return Error(Code::kNotFound, "%s is not in the store", Quoted(name).c_str());
  }
  HEARTH_ASSIGN(const std::string text, ReadTextFile(path, kMaxManifestBytes));
  HEARTH_ASSIGN(Manifest manifest, ParseManifest(text).Within(path));
  if (manifest.name != name) {
    return Error(Code::kCorrupt, "%s: is the manifest of %s", path.c_str(),
                 Quoted(manifest.name).c_str());
  }
  return manifest;
}

std::vector<Manifest> ModelStore::List(std::vector<std::string>* problems) const {
  std::vector<Manifest> manifests;
  for (const std::string& name : NamesIn(root_)) {
    if (!IsModelName(name) || !IsRealFolder(root_ + "/" + name)) continue;
    Result<Manifest> manifest = Read(name);
    if (manifest.ok()) {
      manifests.push_back(*std::move(manifest));
    } else if (problems != nullptr && manifest.status().code() != Code::kNotFound) {
      problems->push_back(manifest.status().message());
    }
  }
  return manifests;
}

uint64_t ModelStore::BytesHeld(std::string_view name) const {
  uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(FolderOf(name), error)) {
    struct stat info;
    // Blocks, not the length: the file of a download has its length from the start.
    if (::lstat(entry.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    bytes += static_cast<uint64_t>(info.st_blocks) * 512;
  }
  return bytes;
}

Status ModelStore::MakeFolder(std::string_view name) const {
  HEARTH_TRY(MakeFolders(root_ + "/.locks"));
  const std::string folder = FolderOf(name);
  if (!FileExists(folder)) HEARTH_TRY(MakeFolders(folder));
  if (!IsRealFolder(folder)) {
    return Error(Code::kInvalid, "%s is not a folder of its own; remove it", folder.c_str());
  }
  return SyncPath(root_);
}

Status ModelStore::SyncFolder(std::string_view name) const { return SyncPath(FolderOf(name)); }

Status ModelStore::Write(const Manifest& manifest) const {
  const std::string text = WriteManifest(manifest);
  const std::string path = FolderOf(manifest.name) + "/" + std::string(kManifestName);
  HEARTH_TRY(WriteFileAtomically(path, std::as_bytes(std::span(text))));
  return SyncFolder(manifest.name);
}

Result<ModelLock> ModelStore::TryLock(std::string_view name) const {
  HEARTH_CHECK(IsModelName(name));
  HEARTH_TRY(MakeFolders(root_ + "/.locks"));
  const std::string path = root_ + "/.locks/" + std::string(name);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return OsError(path, "cannot create");
  ModelLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return OsError(path, "cannot lock");
  return Error(Code::kExhausted, "another process is downloading or removing %s",
               std::string(name).c_str());
}

Status ModelStore::Remove(std::string_view name) const {
  const std::string folder = FolderOf(name);
  if (!IsRealFolder(folder)) {
    return Error(Code::kNotFound, "%s is not in the store", Quoted(name).c_str());
  }
  HEARTH_ASSIGN(const ModelLock lock, TryLock(name));
  return Remove(name, lock);
}

Status ModelStore::Remove(std::string_view name, const ModelLock&) const {
  const std::string folder = FolderOf(name);
  const std::string manifest = folder + "/" + std::string(kManifestName);
  if (::unlink(manifest.c_str()) != 0 && errno != ENOENT) return OsError(manifest, "cannot remove");
  std::error_code error;
  std::filesystem::remove_all(folder, error);  // follows no symlinks
  if (error) {
    return Error(Code::kIo, "%s: cannot remove: %s", folder.c_str(), error.message().c_str());
  }
  return SyncPath(root_);
}

Result<uint64_t> FreeDiskBytes(const std::string& folder) {
  std::string path = folder;
  struct statvfs info;
  while (::statvfs(path.c_str(), &info) != 0) {
    const size_t slash = path.rfind('/');
    if (errno != ENOENT || path == "/" || path == ".") return OsError(path, "cannot ask for space");
    path = slash == std::string::npos ? "." : (slash == 0 ? "/" : path.substr(0, slash));
  }
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

}  // namespace hearth
