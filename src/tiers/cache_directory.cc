// SPDX-License-Identifier: Apache-2.0
#include "tiers/cache_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/fresh_random.h"
#include "platform/file.h"
#include "tiers/age_file.h"
#include "tiers/disk_store.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

constexpr char kMark[] = "hearth-cache-1";
constexpr std::string_view kAnyMark = "hearth-cache-";
constexpr char kMarkText[] =
    "A cache of Hearth (docs/cache-disk.md). It may be removed at any time.\n";
constexpr size_t kSecretDigits = 64;
constexpr size_t kMaxText = 1 << 20;
constexpr size_t kMaxDigests = 64;

std::string HexOf(uint64_t value) {
  return Printf("%016llx", static_cast<unsigned long long>(value));
}
std::optional<uint64_t> FromHex(std::string_view text) {
  if (text.size() != 16) return std::nullopt;
  uint64_t value = 0;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9', is_letter = c >= 'a' && c <= 'f';
    if (!is_digit && !is_letter) return std::nullopt;
    value = value << 4 | static_cast<uint64_t>(is_digit ? c - '0' : c - 'a' + 10);
  }
  return value;
}

Status WriteText(const std::string& path, const std::string& text, FileReaders readers) {
  return WriteFileAtomically(path, std::as_bytes(std::span(text)), readers);
}

int64_t SizeBelow(const fs::path& folder) {
  int64_t sum = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;  // files come and go while a server runs
    if (at->is_regular_file(gone) && !gone) {
      const uintmax_t size = at->file_size(gone);
      if (!gone) sum += static_cast<int64_t>(size);
    }
  }
  return sum;
}

// The mark in the directory, empty when there is none; kInvalid when it holds something else.
Result<std::string> MarkIn(const std::string& path) {
  std::error_code error;
  bool is_empty = true;
  std::string mark;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    is_empty = false;
    if (name.starts_with(kAnyMark) && !name.ends_with(".tmp") && mark != kMark) mark = name;
  }
  if (error) return Error(Code::kIo, "%s: %s", path.c_str(), error.message().c_str());
  if (mark.empty() && !is_empty) {
    return Error(Code::kInvalid,
                 "%s is not a cache of Hearth, and not empty: expected an empty directory, or one "
                 "that does not exist",
                 path.c_str());
  }
  return mark;
}

}  // namespace

Result<CacheDirectory> CacheDirectory::Find(const std::string& path) {
  if (!IsDirectory(path)) return Error(Code::kNotFound, "%s: no such directory", path.c_str());
  HEARTH_ASSIGN(const std::string mark, MarkIn(path));
  if (mark.empty()) return Error(Code::kNotFound, "%s: there is no cache in it", path.c_str());
  if (mark != kMark) {
    return Error(Code::kUnsupported,
                 "%s was made by another version of Hearth (%s): remove it, or use another",
                 path.c_str(), Quoted(mark).c_str());
  }
  return CacheDirectory(path);
}

Result<CacheDirectory> CacheDirectory::Open(const std::string& path) {
  if (!IsDirectory(path)) {
    std::error_code error;
    const fs::path parent = fs::path(path).parent_path();
    if (!parent.empty()) fs::create_directories(parent, error);
    // What is inside tells what somebody asked.
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      return Error(Code::kIo, "making %s: %s", path.c_str(),
                   std::error_code(errno, std::generic_category()).message().c_str());
    }
  }
  HEARTH_ASSIGN(const std::string mark, MarkIn(path));
  if (mark.empty()) {
    HEARTH_TRY(WriteText(path + "/" + kMark, kMarkText, FileReaders::kAll));
  }
  return Find(path);
}

Result<std::string> CacheDirectory::Secret() const {
  const std::string path = path_ + "/key";
  if (!FileExists(path)) {
    // Whoever is first gives it its name; the others read what is there then.
    const std::string draft = path + "-" + std::to_string(getpid());
    HEARTH_TRY(WriteText(draft, FreshHex(kSecretDigits / 2) + "\n", FileReaders::kOwner));
    const bool is_linked = link(draft.c_str(), path.c_str()) == 0 || errno == EEXIST;
    const int why = errno;
    unlink(draft.c_str());
    if (!is_linked) {
      return Error(Code::kIo, "making %s: %s", path.c_str(),
                   std::error_code(why, std::generic_category()).message().c_str());
    }
  }
  HEARTH_ASSIGN(std::string text, ReadTextFile(path, kMaxText));
  while (text.ends_with('\n')) text.pop_back();
  const bool is_good = text.size() == kSecretDigits &&
                       text.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_good) {
    return Error(Code::kCorrupt, "%s: expected %zu hexadecimal digits; remove it with the cache",
                 path.c_str(), kSecretDigits);
  }
  return text;
}

std::vector<CacheDirectory::Store> CacheDirectory::Stores() const {
  std::vector<Store> stores;
  std::error_code error;
  for (fs::directory_iterator at(path_ + "/models", error), end; !error && at != end;
       at.increment(error)) {
    Store store;
    store.name = at->path().filename().string();
    if (!FromHex(store.name)) continue;
    const std::string folder = at->path().string();
    store.blocks = folder + "/blocks";
    Result<std::string> about = ReadTextFile(folder + "/about", kMaxText);
    if (about.ok()) store.about = about->substr(0, about->find('\n'));
    store.used_at_s = FileAge(folder + "/about");
    store.num_bytes = SizeBelow(folder);
    stores.push_back(std::move(store));
  }
  std::ranges::sort(stores, [](const Store& a, const Store& b) {
    return std::pair(-a.used_at_s, a.name) < std::pair(-b.used_at_s, b.name);
  });
  return stores;
}

int64_t CacheDirectory::Age(const ClockFn& clocks) const {
  int64_t oldest_s = 0;
  for (const Store& store : Stores()) {
    if (store.used_at_s > 0) {
      oldest_s = oldest_s == 0 ? store.used_at_s : std::min(oldest_s, store.used_at_s);
    }
  }
  AgeFile age(clock_path(), clocks);
  age.Sync(oldest_s);
  return age.Age();
}

Result<std::string> CacheDirectory::UseStore(uint64_t content, const std::string& about,
                                             const ClockFn& clocks) const {
  const int64_t age_s = Age(clocks);
  const std::string folder = path_ + "/models/" + HexOf(content);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Error(Code::kIo, "making %s: %s", folder.c_str(), error.message().c_str());
  HEARTH_TRY(WriteText(folder + "/about", about + "\n", FileReaders::kAll));
  SetFileAge(folder + "/about", age_s);
  return folder + "/blocks";
}

Status CacheDirectory::Remove(const Store& store) const {
  HEARTH_TRY(DiskStore::Discard(store.blocks));
  std::error_code error;
  fs::remove_all(path_ + "/models/" + store.name, error);
  if (error) return Error(Code::kIo, "%s: %s", store.name.c_str(), error.message().c_str());
  return Status();
}

std::optional<uint64_t> CacheDirectory::DigestOf(const std::string& identity) const {
  Result<std::string> text = ReadTextFile(path_ + "/digests", kMaxText);
  if (!text.ok()) return std::nullopt;
  const std::string wanted = "\n" + identity + " ";
  const std::string lines = "\n" + *text;
  const size_t at = lines.rfind(wanted);
  if (at == std::string::npos) return std::nullopt;
  return FromHex(std::string_view(lines).substr(at + wanted.size(), 16));
}

Status CacheDirectory::RememberDigest(const std::string& identity, uint64_t digest) const {
  std::string text;
  if (Result<std::string> old = ReadTextFile(path_ + "/digests", kMaxText); old.ok()) text = *old;
  text += identity + " " + HexOf(digest) + "\n";
  auto num_lines = static_cast<size_t>(std::ranges::count(text, '\n'));
  for (; num_lines > kMaxDigests; --num_lines) text.erase(0, text.find('\n') + 1);
  return WriteText(path_ + "/digests", text, FileReaders::kAll);
}

}  // namespace hearth
