// SPDX-License-Identifier: Apache-2.0
// Which files a process may open: Landlock, by the kernel's own calls.
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "confine/confine.h"

namespace hearth {
namespace {

// Since version 3 of the interface; younger than the headers of Debian 12.
constexpr uint64_t kTruncate = uint64_t{1} << 14;

constexpr uint64_t kReadRights = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kWriteRights = kReadRights | LANDLOCK_ACCESS_FS_WRITE_FILE |
                                  LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                                  LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                  LANDLOCK_ACCESS_FS_REFER | kTruncate;
constexpr uint64_t kAppendRights = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG;
// A folder is opened to be locked while a socket is made in it.
constexpr uint64_t kSocketRights =
    LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_REMOVE_FILE;
constexpr uint64_t kFileRights = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                                 LANDLOCK_ACCESS_FS_EXECUTE | kTruncate;

// What this kernel's version can restrict; version 1 is of Linux 5.13.
uint64_t HandledBy(int version) {
  uint64_t all = (uint64_t{LANDLOCK_ACCESS_FS_MAKE_SYM} << 1) - 1;
  if (version >= 2) all |= LANDLOCK_ACCESS_FS_REFER;
  if (version >= 3) all |= kTruncate;
  return all;
}

uint64_t RightsOf(FileUse use) {
  switch (use) {
    case FileUse::kRead:
      return kReadRights;
    case FileUse::kWrite:
      return kWriteRights;
    case FileUse::kAppend:
      return kAppendRights;
    case FileUse::kList:
      return LANDLOCK_ACCESS_FS_READ_DIR;
    case FileUse::kSocket:
      break;
  }
  return kSocketRights;
}

// A descriptor that closes itself.
struct Descriptor {
  explicit Descriptor(int number) : fd(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  const int fd;
};

Status Failed(const char* doing) {
  return Error(Code::kUnsupported, "Landlock: %s: %s", doing, std::strerror(errno));
}

Status Allow(int ruleset, const FileRule& rule, uint64_t handled) {
  const Descriptor file(::open(rule.path.c_str(), O_PATH | O_CLOEXEC));
  struct stat info{};
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0) return Status();
  landlock_path_beneath_attr beneath{};
  beneath.parent_fd = file.fd;
  beneath.allowed_access = RightsOf(rule.use) & handled;
  if (!S_ISDIR(info.st_mode)) beneath.allowed_access &= kFileRights;
  if (beneath.allowed_access == 0) return Status();
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) == 0) {
    return Status();
  }
  return Failed(rule.path.c_str());
}

}  // namespace

Status RestrictFiles(const std::vector<FileRule>& rules) {
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, size_t{0}, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return Failed("not available");
  landlock_ruleset_attr attributes{};
  attributes.handled_access_fs = HandledBy(static_cast<int>(version));
  const Descriptor ruleset(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0)));
  if (ruleset.fd < 0) return Failed("cannot make rules");
  for (const FileRule& rule : rules) {
    HEARTH_TRY(Allow(ruleset.fd, rule, attributes.handled_access_fs));
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Failed("no_new_privs");
  if (::syscall(SYS_landlock_restrict_self, ruleset.fd, 0) != 0) return Failed("cannot restrict");
  return Status();
}

}  // namespace hearth
