// SPDX-License-Identifier: Apache-2.0
#include "platform/notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

namespace hearth {

Status NotifyManager(std::string_view state) {
  const char* given = std::getenv("NOTIFY_SOCKET");
  if (given == nullptr || *given == '\0') return Status();
  std::string path = given;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if ((path[0] != '/' && path[0] != '@') || path.size() >= sizeof address.sun_path) {
    return Error(Code::kInvalid,
                 "NOTIFY_SOCKET: expected an absolute path or @name of fewer than %zu bytes, found "
                 "%s",
                 sizeof address.sun_path, Quoted(path).c_str());
  }
  if (path[0] == '@') path[0] = '\0';  // the kernel's names without a file begin with a zero byte
  std::memcpy(address.sun_path, path.data(), path.size());
  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return Error(Code::kIo, "NOTIFY_SOCKET: %s", std::strerror(errno));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  const ssize_t sent = ::sendto(descriptor, state.data(), state.size(), MSG_NOSIGNAL,
                                reinterpret_cast<const sockaddr*>(&address), length);
  const int error = errno;
  ::close(descriptor);
  if (sent >= 0) return Status();
  return Error(Code::kIo, "NOTIFY_SOCKET %s: %s", Quoted(given).c_str(), std::strerror(error));
}

}  // namespace hearth
