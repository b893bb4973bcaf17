// SPDX-License-Identifier: Apache-2.0
#include "http/local_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace hearth {
namespace {

// Ends with the descriptor. A folder that may be written but not listed cannot be locked; then two
// servers that start within the same millisecond are on their own.
class FolderLock {
 public:
  explicit FolderLock(const std::string& path) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "."
                               : slash == 0               ? "/"
                                                          : path.substr(0, slash);
    fd_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd_ >= 0 && ::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() {
    if (fd_ >= 0) ::close(fd_);
  }

 private:
  int fd_;
};

// Why a connection fails; 0 when somebody listens, also one whose queue is full (EAGAIN).
int TryToConnect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t size = std::min(path.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path, path.data(), size);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  const int done = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int why = done == 0 ? 0 : errno;
  ::close(fd);
  return why == EAGAIN || why == EINPROGRESS ? 0 : why;
}

}  // namespace

Status BindLocalSocket(const std::string& path, const std::function<Status()>& bind) {
  const FolderLock lock(path);
  struct stat info{};
  // Anything but a socket is somebody's file, which bind will complain about.
  if (::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) {
    const int why = TryToConnect(path);
    if (why == 0) {
      return Error(Code::kInvalid,
                   "listening on %s: another server listens there; stop it, or choose another path",
                   Quoted(path).c_str());
    }
    if (why != ECONNREFUSED && why != ENOENT) {
      return Error(Code::kIo, "listening on %s: a socket is there that cannot be asked: %s",
                   Quoted(path).c_str(), std::strerror(why));
    }
    ::unlink(path.c_str());
  }
  return bind();
}

}  // namespace hearth
