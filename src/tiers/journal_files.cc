// SPDX-License-Identifier: Apache-2.0
#include "tiers/journal_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "base/thread_name.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNameDigits = 32;
constexpr size_t kMaxRecordBytes = size_t{8} << 20;
constexpr int kJournalGroup = -1;  // no group of blocks has it
constexpr std::chrono::minutes kTidyEvery{5};

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Each for itself: a file that cannot be looked at is left alone.
struct OldFile {
  std::string path;
  int64_t changed_s = 0;  // an age
};
std::vector<OldFile> FilesIn(const std::string& directory) {
  std::vector<OldFile> out;
  std::error_code error;
  // Not with a range's ++, which throws what a disk fails with.
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    struct stat about{};
    const std::string path = at->path().string();
    if (::lstat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) continue;
    if (JournalKeyOf(at->path().filename().string())) out.push_back({path, FileAge(path)});
  }
  return out;
}

}  // namespace

std::optional<TierKey> JournalKeyOf(const std::string& name) {
  if (name.size() != kNameDigits) return std::nullopt;
  if (name.find_first_not_of("0123456789abcdef") != std::string::npos) return std::nullopt;
  TierKey key;
  std::from_chars(name.data(), name.data() + 16, key.block.hi, 16);
  std::from_chars(name.data() + 16, name.data() + kNameDigits, key.block.lo, 16);
  key.group = kJournalGroup;
  return key;
}

Result<std::unique_ptr<JournalFiles>> JournalFiles::Open(const std::string& directory,
                                                         const RecordSeal& seal,
                                                         const JournalFilesOptions& options) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return Error(Code::kIo, "%s: %s", directory.c_str(), std::strerror(errno));
  }
  return std::unique_ptr<JournalFiles>(new JournalFiles(directory, seal, options));
}

JournalFiles::JournalFiles(std::string directory, const RecordSeal& seal,
                           const JournalFilesOptions& options)
    : directory_(std::move(directory)),
      seal_(seal),
      options_(options),
      age_(options.clock_path.empty() ? directory_ + "/clock" : options.clock_path,
           options.clocks) {
  SyncAge();
  thread_ = std::thread([this] { Run(); });
}

JournalFiles::~JournalFiles() {
  {
    const MutexLock lock(mu_);
    stops_ = true;
  }
  wake_.NotifyAll();
  thread_.join();
}

void JournalFiles::Put(const std::string& name, std::string record) {
  if (!JournalKeyOf(name) || record.size() > kMaxRecordBytes) return;
  {
    const MutexLock lock(mu_);
    if (waiting_bytes_ + record.size() > options_.max_waiting_bytes) return;
    std::string& place = waiting_[name];
    waiting_bytes_ += record.size();
    waiting_bytes_ -= place.size();
    place = std::move(record);
  }
  wake_.NotifyOne();
}

std::optional<std::string> JournalFiles::Get(const std::string& name) const {
  const auto key = JournalKeyOf(name);
  if (!key) return std::nullopt;
  {
    const MutexLock lock(mu_);
    const auto found = waiting_.find(name);
    if (found != waiting_.end()) return found->second;
  }
  const std::string path = directory_ + "/" + name;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return std::nullopt;
  struct stat about{};
  std::vector<std::byte> sealed;
  const bool is_fresh =
      ::fstat(file, &about) == 0 && age_.Age() - FileAge(path) <= options_.max_age_s;
  if (is_fresh && about.st_size > 0 && static_cast<size_t>(about.st_size) <= 2 * kMaxRecordBytes) {
    sealed.resize(static_cast<size_t>(about.st_size));
    const ssize_t size = ::pread(file, sealed.data(), sealed.size(), 0);
    sealed.resize(size < 0 ? 0 : static_cast<size_t>(size));
  }
  ::close(file);
  const auto record = seal_.Open(*key, sealed);
  if (!record) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(record->data()), record->size());
}

// In place: renaming a file over another makes some file systems write to the disk at once. One
// that is cut by the process's end is a record less.
void JournalFiles::Write(const std::string& name, const std::string& record) const {
  const std::vector<std::byte> sealed = seal_.Seal(*JournalKeyOf(name), BytesOf(record));
  if (sealed.empty()) return;
  const std::string path = directory_ + "/" + name;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return;
  const ssize_t size = ::pwrite(file, sealed.data(), sealed.size(), 0);
  const bool is_whole = size == static_cast<ssize_t>(sealed.size()) &&
                        ::ftruncate(file, static_cast<off_t>(sealed.size())) == 0;
  ::close(file);
  if (!is_whole) ::unlink(path.c_str());
  if (is_whole) SetFileAge(path, age_.Age());
}

void JournalFiles::SyncAge() {
  int64_t oldest_s = 0;
  for (const OldFile& file : FilesIn(directory_)) {
    oldest_s = oldest_s == 0 ? file.changed_s : std::min(oldest_s, file.changed_s);
  }
  age_.Sync(oldest_s);
}

void JournalFiles::Run() {
  NameThread("journal");
  auto tidied_at = std::chrono::steady_clock::time_point();
  while (true) {
    try {
      const auto now = std::chrono::steady_clock::now();
      if (now - tidied_at > kTidyEvery) {
        tidied_at = now;
        SyncAge();
        Tidy();
      }
      if (!WriteWaiting()) return;
    } catch (const std::bad_alloc&) {  // records less, and memory more
      const MutexLock lock(mu_);
      waiting_.clear();
      waiting_bytes_ = 0;
    }
  }
}

bool JournalFiles::WriteWaiting() {
  std::map<std::string, std::string> taken;
  {
    const MutexLock lock(mu_);
    wake_.WaitFor(mu_, std::chrono::milliseconds(60'000),
                  [this]() HEARTH_REQUIRES(mu_) { return stops_ || !waiting_.empty(); });
    if (stops_ && waiting_.empty()) return false;
    taken = waiting_;  // stays readable until it is written
  }
  for (const auto& [name, record] : taken) Write(name, record);
  const MutexLock lock(mu_);
  for (const auto& [name, record] : taken) {
    const auto found = waiting_.find(name);
    if (found == waiting_.end() || found->second != record) continue;  // a newer one waits
    waiting_bytes_ -= found->second.size();
    waiting_.erase(found);
  }
  return true;
}

void JournalFiles::Tidy() const {
  std::vector<OldFile> files = FilesIn(directory_);
  std::sort(files.begin(), files.end(),
            [](const OldFile& a, const OldFile& b) { return a.changed_s < b.changed_s; });
  const int64_t now_s = age_.Age();
  const size_t too_many = files.size() - std::min(files.size(), options_.max_files);
  for (size_t i = 0; i < files.size(); ++i) {
    if (i >= too_many && now_s - files[i].changed_s <= options_.max_age_s) break;
    ::unlink(files[i].path.c_str());
  }
}

}  // namespace hearth
