// SPDX-License-Identifier: Apache-2.0
// Small records in a directory, a file each, written soon after they were handed in and kept for an
// hour, which no clock that jumps makes shorter: what a process that was killed leaves to the next.
// Encrypted and authenticated: a record that was cut or changed is none.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/result.h"
#include "kv/tier.h"
#include "tiers/age_file.h"
#include "tiers/record_seal.h"
namespace hearth {

// What a record of that name is sealed as: 32 hexadecimal digits. None for another name.
std::optional<TierKey> JournalKeyOf(const std::string& name);

struct JournalFilesOptions {
  int64_t max_age_s = 3600;
  size_t max_files = 16'384;
  size_t max_waiting_bytes = size_t{16} << 20;  // then records are dropped
  std::string clock_path = {};                  // empty: a file in the directory
  ClockFn clocks = ReadClocks;
};

// Thread: any.
class JournalFiles {
 public:
  // Makes the directory, its owner's alone.
  static Result<std::unique_ptr<JournalFiles>> Open(const std::string& directory,
                                                    const RecordSeal& seal,
                                                    const JournalFilesOptions& options = {});
  ~JournalFiles();  // writes what waits
  JournalFiles(const JournalFiles&) = delete;
  JournalFiles& operator=(const JournalFiles&) = delete;

  void Put(const std::string& name, std::string record);
  std::optional<std::string> Get(const std::string& name) const;

 private:
  JournalFiles(std::string directory, const RecordSeal& seal, const JournalFilesOptions& options);
  void Run();
  // Waits for records and writes them; false: it is to end.
  bool WriteWaiting();
  void Write(const std::string& name, const std::string& record) const;
  void SyncAge();
  // Removes what is old, and the oldest of what is too much.
  void Tidy() const;

  const std::string directory_;
  const RecordSeal seal_;
  const JournalFilesOptions options_;
  AgeFile age_;
  mutable Mutex mu_;
  CondVar wake_;
  std::map<std::string, std::string> waiting_ HEARTH_GUARDED_BY(mu_);
  size_t waiting_bytes_ HEARTH_GUARDED_BY(mu_) = 0;
  bool stops_ HEARTH_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace hearth
