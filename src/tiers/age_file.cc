// SPDX-License-Identifier: Apache-2.0
#include "tiers/age_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <ctime>
#include <span>

#include "platform/file.h"

namespace hearth {

void AgeFile::Sync(int64_t oldest_s) {
  constexpr size_t kMaxBytes = 1024;
  const MutexLock lock(mu_);
  const ClockReading now = clocks_();
  std::optional<AgeRecord> kept;
  if (Result<std::string> text = ReadTextFile(path_, kMaxBytes); text.ok()) {
    kept = AgeRecord::Parse(*text);
  }
  const AgeRecord record = clock_.Sync(now, kept ? *kept : AgeRecord::Begin(now, oldest_s));
  if (kept && !record.IsNews(*kept)) return;
  const std::string text = record.Write() + "\n";
  // Without it the age is right all the same, for this process.
  (void)WriteFileAtomically(path_, std::as_bytes(std::span(text))).ok();
}

int64_t AgeFile::Age() const {
  const MutexLock lock(mu_);
  return clock_.Age(clocks_());
}

int64_t FileAge(const std::string& path) {
  struct stat about{};
  return ::lstat(path.c_str(), &about) == 0 ? about.st_mtime : 0;
}

void SetFileAge(const std::string& path, int64_t age_s) {
  const timespec age{static_cast<std::time_t>(age_s), 0};
  const timespec both[2] = {age, age};
  // One whose time cannot be set has its date, which is the same where no clock jumped.
  (void)::utimensat(AT_FDCWD, path.c_str(), both, AT_SYMLINK_NOFOLLOW);
}

}  // namespace hearth
