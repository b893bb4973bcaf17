// SPDX-License-Identifier: Apache-2.0
// A client that sends exactly the bytes it is told, over the loopback or a Unix socket.
#pragma once
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
namespace hearth::testing {

class SocketClient {
 public:
  explicit SocketClient(int port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  explicit SocketClient(const std::string& unix_path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    EXPECT_LT(unix_path.size(), sizeof to.sun_path);
    std::memcpy(to.sun_path, unix_path.data(), unix_path.size());
    EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  SocketClient(const SocketClient&) = delete;
  SocketClient& operator=(const SocketClient&) = delete;
  ~SocketClient() { Close(); }
  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int fd() const { return fd_; }
  // How many bytes were taken: fewer than there are when the other side has cut the connection.
  size_t Send(std::string_view bytes) {
    size_t at = 0;
    while (at < bytes.size()) {
      const ssize_t n = ::send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (n <= 0) break;
      at += static_cast<size_t>(n);
    }
    return at;
  }
  // Reads until `end` has come, the other side has closed, or the time is over.
  std::string ReadUntil(const std::string& end,
                        std::chrono::milliseconds limit = std::chrono::milliseconds(5000)) {
    using std::chrono::milliseconds;
    std::string got;
    const auto stop = std::chrono::steady_clock::now() + limit;
    while (got.find(end) == std::string::npos || end.empty()) {
      const auto left =
          std::chrono::duration_cast<milliseconds>(stop - std::chrono::steady_clock::now());
      pollfd p{fd_, POLLIN, 0};
      if (left.count() <= 0 || ::poll(&p, 1, static_cast<int>(left.count())) <= 0) break;
      char buffer[65536];
      const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
      if (n <= 0) {
        closed_ = true;
        was_reset_ = n < 0;
        break;
      }
      got.append(buffer, static_cast<size_t>(n));
    }
    return got;
  }
  std::string ReadAll() { return ReadUntil(""); }
  bool closed() const { return closed_; }        // by the other side, as reading found out
  bool was_reset() const { return was_reset_; }  // closed, but not in order

 private:
  int fd_;
  bool closed_ = false, was_reset_ = false;
};

}  // namespace hearth::testing
