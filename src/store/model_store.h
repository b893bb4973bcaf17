// SPDX-License-Identifier: Apache-2.0
// Hearth's own store: a folder per model, named as the model, with the model's files and a
// manifest. A model is there once its manifest says that it is complete. Nothing outside the store
// is touched.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/manifest.h"
namespace hearth {

// Holds a model's place against other processes. The kernel gives it up when the process ends, in
// whatever way. Thread: one.
class ModelLock {
 public:
  ModelLock(ModelLock&& other) noexcept;
  ModelLock& operator=(ModelLock&&) = delete;
  ~ModelLock();

 private:
  friend class ModelStore;
  explicit ModelLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;  // -1 once moved away
};

// Thread: any, but writers of one model hold its lock.
class ModelStore {
 public:
  // The folder need not exist.
  explicit ModelStore(std::string root) : root_(std::move(root)) {}
  const std::string& root() const { return root_; }

  // By name. A folder without a readable manifest is not listed; `problems`, when given, says why.
  std::vector<Manifest> List(std::vector<std::string>* problems = nullptr) const;
  // kNotFound when there is no such model. `name` must be a model's name.
  Result<Manifest> Read(std::string_view name) const;
  // What opens the model: its folder or its first file.
  std::string PathOf(const Manifest& manifest) const;
  std::string FolderOf(std::string_view name) const;
  // Bytes of a model's folder that are on the disk, a begun download included.
  uint64_t BytesHeld(std::string_view name) const;

  // Makes the model's folder, and the store if need be.
  Status MakeFolder(std::string_view name) const;
  // Whole or not at all, and on the disk when it returns.
  Status Write(const Manifest& manifest) const;
  // Makes the names in the model's folder durable.
  Status SyncFolder(std::string_view name) const;
  // kExhausted when another process holds it.
  Result<ModelLock> TryLock(std::string_view name) const;
  // The manifest goes first, so that a half-removed model is none. kExhausted as for TryLock; or
  // with the lock that the caller holds.
  Status Remove(std::string_view name) const;
  Status Remove(std::string_view name, const ModelLock& held) const;

 private:
  std::string root_;
};

// The disk that holds `folder`, or the nearest folder above it that exists.
Result<uint64_t> FreeDiskBytes(const std::string& folder);

}  // namespace hearth
