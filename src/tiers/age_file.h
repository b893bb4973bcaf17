// SPDX-License-Identifier: Apache-2.0
// The age of a directory in a file of its own (base/age_clock.h), and files in it whose times are
// ages, not dates: a clock that jumps makes none of them old.
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "base/age_clock.h"
#include "base/mutex.h"
namespace hearth {

// Thread: any. Several processes may have the same file.
class AgeFile {
 public:
  explicit AgeFile(std::string path, ClockFn clocks = ReadClocks)
      : path_(std::move(path)), clocks_(std::move(clocks)) {}
  // Reads and writes the file. `oldest_s`: of what is there, for a directory of before it had ages;
  // 0: there is nothing. To be called now and then.
  void Sync(int64_t oldest_s);
  // After a Sync.
  int64_t Age() const;

 private:
  const std::string path_;
  const ClockFn clocks_;
  mutable Mutex mu_;
  AgeClock clock_ HEARTH_GUARDED_BY(mu_);
};

// The time of a file, an age where SetFileAge was called; 0: there is none.
int64_t FileAge(const std::string& path);
void SetFileAge(const std::string& path, int64_t age_s);

}  // namespace hearth
