// SPDX-License-Identifier: Apache-2.0
// A file system for SQLite that lives in memory and can lose power: what was not synced is then
// kept in part, out of order, and torn in the middle, as a disk may keep it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>
struct sqlite3_vfs;

// One at a time, and the default one of the process while it lives. Thread: one.
class LosingVfs {
 public:
  LosingVfs();
  ~LosingVfs();
  LosingVfs(const LosingVfs&) = delete;
  LosingVfs& operator=(const LosingVfs&) = delete;

  // From now on nothing reaches the disk: the program is dead and does not know it. Until LosePower
  // or Keep.
  void Die() { is_dead = true; }
  // Each change since the last sync of its file: kept, lost, or kept up to some byte.
  void LosePower(std::mt19937_64& random);
  // Nothing of what was written is lost: a process that was killed.
  void Keep();
  // Calls of xSync so far, on files whose names end so.
  int64_t num_syncs(const std::string& ending) const;
  int64_t num_changes_lost() const { return num_lost_; }

  struct Change {
    int64_t at = 0;
    std::vector<char> bytes;
    bool truncates = false;  // to `at`
  };
  struct Data {
    std::vector<char> now, synced;
    std::vector<Change> unsynced;
    std::vector<std::unique_ptr<char[]>> shared;  // of a WAL index; never on the disk
    int64_t num_syncs = 0;
  };
  std::map<std::string, Data> files;
  bool is_dead = false;

 private:
  std::unique_ptr<sqlite3_vfs> vfs_;
  int64_t num_lost_ = 0;
};
