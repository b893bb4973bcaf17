// SPDX-License-Identifier: Apache-2.0
#include "losing_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <ctime>

namespace {

struct File {
  sqlite3_file base;
  LosingVfs::Data* data;
  const LosingVfs* disk;
};

LosingVfs::Data& DataOf(sqlite3_file* file) { return *reinterpret_cast<File*>(file)->data; }

bool IsDead(sqlite3_file* file) { return reinterpret_cast<File*>(file)->disk->is_dead; }

void Apply(std::vector<char>& bytes, const LosingVfs::Change& change, size_t count) {
  const auto at = static_cast<size_t>(change.at);
  if (change.truncates) return bytes.resize(at);
  if (bytes.size() < at + count) bytes.resize(at + count);
  std::copy_n(change.bytes.begin(), count, bytes.begin() + static_cast<int64_t>(at));
}

int Close(sqlite3_file*) { return SQLITE_OK; }

int Read(sqlite3_file* file, void* into, int count, sqlite3_int64 at) {
  const std::vector<char>& bytes = DataOf(file).now;
  const auto size = static_cast<int64_t>(bytes.size());
  const int64_t there = std::clamp<int64_t>(size - at, 0, count);
  std::memset(into, 0, static_cast<size_t>(count));
  if (there > 0) std::memcpy(into, bytes.data() + at, static_cast<size_t>(there));
  return there == count ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

int Write(sqlite3_file* file, const void* from, int count, sqlite3_int64 at) {
  if (IsDead(file)) return SQLITE_OK;
  const char* first = static_cast<const char*>(from);
  LosingVfs::Data& data = DataOf(file);
  data.unsynced.push_back({at, {first, first + count}});
  Apply(data.now, data.unsynced.back(), static_cast<size_t>(count));
  return SQLITE_OK;
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (IsDead(file)) return SQLITE_OK;
  LosingVfs::Data& data = DataOf(file);
  data.unsynced.push_back({size, {}, true});
  Apply(data.now, data.unsynced.back(), 0);
  return SQLITE_OK;
}

int Sync(sqlite3_file* file, int) {
  if (IsDead(file)) return SQLITE_OK;
  LosingVfs::Data& data = DataOf(file);
  data.unsynced.clear();
  data.synced = data.now;
  ++data.num_syncs;
  return SQLITE_OK;
}

int Size(sqlite3_file* file, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>(DataOf(file).now.size());
  return SQLITE_OK;
}

int Lock(sqlite3_file*, int) { return SQLITE_OK; }
int IsReserved(sqlite3_file*, int* is_reserved) {
  *is_reserved = 0;
  return SQLITE_OK;
}
int Control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int SectorSize(sqlite3_file*) { return 512; }
int Characteristics(sqlite3_file*) { return 0; }

int MapShared(sqlite3_file* file, int region, int size, int, void volatile** out) {
  auto& shared = DataOf(file).shared;
  while (shared.size() <= static_cast<size_t>(region)) {
    shared.push_back(std::make_unique<char[]>(static_cast<size_t>(size)));
  }
  *out = shared[static_cast<size_t>(region)].get();
  return SQLITE_OK;
}
int LockShared(sqlite3_file*, int, int, int) { return SQLITE_OK; }
void Barrier(sqlite3_file*) {}
int UnmapShared(sqlite3_file* file, int) {
  DataOf(file).shared.clear();
  return SQLITE_OK;
}

const sqlite3_io_methods kMethods = {
    2,           Close,      Read,    Write,      Truncate,        Sync,      Size,       Lock,
    Lock,        IsReserved, Control, SectorSize, Characteristics, MapShared, LockShared, Barrier,
    UnmapShared, nullptr,    nullptr};

std::map<std::string, LosingVfs::Data>& FilesOf(sqlite3_vfs* vfs) {
  return static_cast<LosingVfs*>(vfs->pAppData)->files;
}

int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  auto* opened = reinterpret_cast<File*>(file);
  opened->base.pMethods = &kMethods;
  opened->disk = static_cast<LosingVfs*>(vfs->pAppData);
  opened->data = &FilesOf(vfs)[name == nullptr ? "temporary" : name];
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

// A folder is synced with its file here: SQLite asks for it before it relies on a deletion.
int Delete(sqlite3_vfs* vfs, const char* name, int) {
  if (!static_cast<LosingVfs*>(vfs->pAppData)->is_dead) FilesOf(vfs).erase(name);
  return SQLITE_OK;
}

int Access(sqlite3_vfs* vfs, const char* name, int, int* is_there) {
  *is_there = FilesOf(vfs).contains(name) ? 1 : 0;
  return SQLITE_OK;
}

int FullName(sqlite3_vfs*, const char* name, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", name);
  return SQLITE_OK;
}

int Randomness(sqlite3_vfs*, int size, char* out) {
  std::memset(out, 7, static_cast<size_t>(size));
  return size;
}
int Sleep(sqlite3_vfs*, int us) { return us; }
int Now(sqlite3_vfs*, double* days) {
  *days = 2440587.5 + static_cast<double>(std::time(nullptr)) / 86400;
  return SQLITE_OK;
}
int LastError(sqlite3_vfs*, int, char*) { return 0; }

}  // namespace

LosingVfs::LosingVfs() : vfs_(std::make_unique<sqlite3_vfs>()) {
  vfs_->iVersion = 1;
  vfs_->szOsFile = sizeof(File);
  vfs_->mxPathname = 512;
  vfs_->zName = "losing";
  vfs_->pAppData = this;
  vfs_->xOpen = Open;
  vfs_->xDelete = Delete;
  vfs_->xAccess = Access;
  vfs_->xFullPathname = FullName;
  vfs_->xRandomness = Randomness;
  vfs_->xSleep = Sleep;
  vfs_->xCurrentTime = Now;
  vfs_->xGetLastError = LastError;
  sqlite3_vfs_register(vfs_.get(), 1);
}

LosingVfs::~LosingVfs() { sqlite3_vfs_unregister(vfs_.get()); }

void LosingVfs::LosePower(std::mt19937_64& random) {
  is_dead = false;
  for (auto& [name, data] : files) {
    data.shared.clear();
    for (const Change& change : data.unsynced) {
      const uint64_t fate = random() % 4;
      if (fate == 0) {
        ++num_lost_;
      } else if (fate == 1 && !change.truncates && !change.bytes.empty()) {
        ++num_lost_;
        Apply(data.synced, change, random() % change.bytes.size());
      } else {
        Apply(data.synced, change, change.bytes.size());
      }
    }
    data.unsynced.clear();
    data.now = data.synced;
  }
}

void LosingVfs::Keep() {
  is_dead = false;
  for (auto& [name, data] : files) {
    data.shared.clear();
    data.unsynced.clear();
    data.synced = data.now;
  }
}

int64_t LosingVfs::num_syncs(const std::string& ending) const {
  int64_t sum = 0;
  for (const auto& [name, data] : files) {
    if (name.ends_with(ending)) sum += data.num_syncs;
  }
  return sum;
}
