// SPDX-License-Identifier: Apache-2.0
#include "talk/history_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

#include "base/json.h"
#include "platform/file.h"
#include "platform/user_folders.h"

namespace hearth {
namespace {

constexpr size_t kMaxFileBytes = size_t{16} << 20;

Status Trouble(const std::string& path) {
  return Error(Code::kIo, "cannot keep the history in %s: %s", path.c_str(), std::strerror(errno));
}

Status AppendTo(const std::string& path, const std::string& line) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return Trouble(path);
  fchmod(file, 0600);  // also one that was there before
  const bool is_whole = write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const Status status = is_whole ? Status() : Trouble(path);
  close(file);
  return status;
}

}  // namespace

std::string UsualHistoryPath() {
  const std::string state = PathOf(UserFolder::kState, ProcessEnvironment());
  return state.empty() ? "" : state + "/hearth/history";
}

HistoryFile HistoryFile::Open(std::string path, size_t max_entries) {
  HistoryFile history(std::move(path), max_entries);
  if (history.path_.empty()) return history;
  Result<std::string> text = ReadTextFile(history.path_, kMaxFileBytes);
  if (!text.ok()) return history;
  for (std::string_view rest = *text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    ++history.num_lines_;
    Result<Json> json = ParseJson(line);
    if (json.ok() && json->string() != nullptr) history.entries_.push_back(*json->string());
  }
  if (history.entries_.size() > max_entries) {
    history.entries_.erase(history.entries_.begin(), history.entries_.end() - max_entries);
  }
  // Twice what is kept: the file is written anew seldom, and another chat's lines are rarely lost.
  if (history.num_lines_ > 2 * max_entries && !history.Rewrite().ok()) history.path_.clear();
  return history;
}

Status HistoryFile::Rewrite() const {
  std::string text;
  for (const std::string& entry : entries_) text += WriteJson(entry) + "\n";
  return WriteFileAtomically(path_, std::as_bytes(std::span(text)), FileReaders::kOwner);
}

Status HistoryFile::Add(const std::string& entry) {
  if (entry.empty() || entry.size() > kMaxEntryBytes) return Status();
  if (!entries_.empty() && entries_.back() == entry) return Status();
  entries_.push_back(entry);
  if (path_.empty()) return Status();
  Status status = AppendTo(path_, WriteJson(entry) + "\n");
  if (!status.ok()) path_.clear();
  return status;
}

}  // namespace hearth
