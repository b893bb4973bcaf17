// SPDX-License-Identifier: Apache-2.0
#include "platform/notify.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

namespace hearth {
namespace {

// A service manager's end of the socket.
class Manager {
 public:
  explicit Manager(std::string name) : name_(std::move(name)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name_.data(), name_.size());
    if (name_[0] == '@') address.sun_path[0] = '\0';
    descriptor_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address),
                     static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size())),
              0)
        << std::strerror(errno);
    ::setenv("NOTIFY_SOCKET", name_.c_str(), 1);
  }
  ~Manager() {
    ::unsetenv("NOTIFY_SOCKET");
    ::close(descriptor_);
    if (name_[0] == '/') ::unlink(name_.c_str());
  }
  // What was sent and not yet read; empty when nothing was.
  std::string Read() {
    char bytes[64];
    const ssize_t count = ::recv(descriptor_, bytes, sizeof bytes, 0);
    return count < 0 ? "" : std::string(bytes, static_cast<size_t>(count));
  }

 private:
  std::string name_;
  int descriptor_;
};

std::string Fresh(const char* kind) {
  return std::string(kind) + "hearth-notify-" + std::to_string(::getpid());
}

TEST(Notify, ReachesASocketFile) {
  Manager manager(Fresh("/tmp/"));
  ASSERT_TRUE(NotifyManager("READY=1").ok());
  EXPECT_EQ(manager.Read(), "READY=1");
  ASSERT_TRUE(NotifyManager("STOPPING=1").ok());
  EXPECT_EQ(manager.Read(), "STOPPING=1");
  EXPECT_EQ(manager.Read(), "") << "once each";
}

TEST(Notify, ReachesAnAbstractSocket) {
  Manager manager(Fresh("@"));
  ASSERT_TRUE(NotifyManager("READY=1").ok());
  EXPECT_EQ(manager.Read(), "READY=1");
}

TEST(Notify, WithoutAManagerNothingHappens) {
  ::unsetenv("NOTIFY_SOCKET");
  EXPECT_TRUE(NotifyManager("READY=1").ok());
  ::setenv("NOTIFY_SOCKET", "", 1);
  EXPECT_TRUE(NotifyManager("READY=1").ok());
  ::unsetenv("NOTIFY_SOCKET");
}

TEST(Notify, SaysWhatIsWrong) {
  ::setenv("NOTIFY_SOCKET", "relative", 1);
  EXPECT_EQ(NotifyManager("READY=1").code(), Code::kInvalid);
  ::setenv("NOTIFY_SOCKET", ("/" + std::string(200, 'x')).c_str(), 1);
  EXPECT_EQ(NotifyManager("READY=1").code(), Code::kInvalid);
  ::setenv("NOTIFY_SOCKET", Fresh("/tmp/nobody-").c_str(), 1);
  EXPECT_EQ(NotifyManager("READY=1").code(), Code::kIo);
  ::unsetenv("NOTIFY_SOCKET");
}

TEST(Notify, DoesNotWaitForAManagerThatDoesNotRead) {
  Manager manager(Fresh("@full-"));
  bool is_full = false;
  for (int i = 0; i < 10000 && !is_full; ++i) is_full = !NotifyManager("READY=1").ok();
  EXPECT_TRUE(is_full) << "the queue of a socket that nobody reads has an end";
}

}  // namespace
}  // namespace hearth
