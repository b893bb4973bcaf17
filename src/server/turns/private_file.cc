// SPDX-License-Identifier: Apache-2.0
#include "server/turns/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hearth {
namespace {

Status Complaint(const std::string& path, const char* doing) {
  const int why = errno;
  const char* hint = why == ENOENT    ? "; make the folder first"
                     : why == ENOTDIR ? "; a part of this path is a file, not a folder"
                     : why == EACCES  ? "; change its mode or owner, or run as a user that may"
                                      : "";
  return Error(Code::kIo, "%s: %s: %s%s", path.c_str(), doing, std::strerror(why), hint);
}

}  // namespace

Status MakePrivate(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
  if (fd < 0) return Complaint(path, "cannot open");
  struct stat info{};
  Status status;
  if (::fstat(fd, &info) != 0) {
    status = Complaint(path, "cannot stat");
  } else if ((info.st_mode & 077) != 0 && ::fchmod(fd, info.st_mode & 0700) != 0) {
    status = Complaint(path, "cannot close it to other users");
  }
  ::close(fd);
  return status;
}

Result<int> OpenPrivateForAppend(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return Complaint(path, "cannot open");
  return fd;
}

}  // namespace hearth
