// SPDX-License-Identifier: Apache-2.0
// The messages typed before, in a file that its owner alone can read: one JSON string per line,
// added as it is typed, so that several chats at once lose nothing of each other.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
namespace hearth {

// $XDG_STATE_HOME/hearth/history, or ~/.local/state/hearth/history; empty when neither is set.
std::string UsualHistoryPath();

// Thread: one.
class HistoryFile {
 public:
  // A pasted book is no line to be edited again.
  static constexpr size_t kMaxEntryBytes = size_t{16} << 10;
  // An empty path: nothing is kept. A file that is not there is an empty one. Lines that are no
  // JSON strings are passed over.
  static HistoryFile Open(std::string path, size_t max_entries = 1000);
  const std::vector<std::string>& entries() const { return entries_; }  // oldest first
  // What repeats the last entry is not added. A file that cannot be written is said once.
  Status Add(const std::string& entry);

 private:
  HistoryFile(std::string path, size_t max_entries)
      : path_(std::move(path)), max_entries_(max_entries) {}
  Status Rewrite() const;

  std::string path_;
  size_t max_entries_;
  size_t num_lines_ = 0;  // of the file, when it was read
  std::vector<std::string> entries_;
};

}  // namespace hearth
