// SPDX-License-Identifier: Apache-2.0
// The system calls that preload.cc's page can fail, each in front of glibc's own. kCalls in
// faults.py has the same order.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

#include "preload.h"

namespace {

enum Call {
  kRead,
  kWrite,
  kReadv,
  kWritev,
  kPread,
  kPwrite,
  kOpen,
  kFsync,
  kRename,
  kAccept,
  kReceive,
  kSend,
  kMap,
  kEpollWait,
  kEpollControl,
  kUnlink,
  kTruncate,
  kStat,
  kAllocate,
  kMakeFolder,
  kSocket,
  kConnect,
  kEventfd,
  kPoll,
  kLock,
};

template <class Function>
Function* Next(Function*, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// What became of a call that takes `size` bytes: goes on with `size`, or fails with errno.
bool IsFailed(Call call, const char* name, size_t* size) {
  if (!faults::Fails(faults::kSystemCalls, uint64_t{1} << call, name)) return false;
  if (faults::ErrorOf() == faults::kShort) {
    if (size != nullptr && *size > 1) *size /= 2;
    return false;
  }
  errno = faults::ErrorOf();
  return true;
}

bool IsFailed(Call call, const char* name) { return IsFailed(call, name, nullptr); }

// A short call on several buffers takes part of the first one.
iovec FirstPart(const iovec* parts, int count) {
  for (int i = 0; i < count; ++i) {
    if (parts[i].iov_len > 0) return {parts[i].iov_base, (parts[i].iov_len + 1) / 2};
  }
  return parts[0];
}

// One message either way: `next` is the real call, `message` const or not.
template <class Real, class Message>
ssize_t MoveMessage(Call call, const char* name, Real next, int fd, Message* message, int flags) {
  size_t size = 2;
  if (IsFailed(call, name, &size)) return -1;
  if (size == 2 || message->msg_iovlen == 0) return next(fd, message, flags);
  iovec first = FirstPart(message->msg_iov, static_cast<int>(message->msg_iovlen));
  msghdr part = *message;
  part.msg_iov = &first;
  part.msg_iovlen = 1;
  return next(fd, &part, flags);
}

mode_t ModeOf(int flags, va_list rest) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
}

}  // namespace

extern "C" {

ssize_t read(int fd, void* data, size_t size) {
  static const auto next = Next(&::read, "read");
  return IsFailed(kRead, "read", &size) ? -1 : next(fd, data, size);
}
ssize_t write(int fd, const void* data, size_t size) {
  static const auto next = Next(&::write, "write");
  return IsFailed(kWrite, "write", &size) ? -1 : next(fd, data, size);
}
ssize_t pread(int fd, void* data, size_t size, off_t at) {
  static const auto next = Next(&::pread, "pread");
  return IsFailed(kPread, "pread", &size) ? -1 : next(fd, data, size, at);
}
ssize_t pread64(int fd, void* data, size_t size, off64_t at) {
  static const auto next = Next(&::pread64, "pread64");
  return IsFailed(kPread, "pread64", &size) ? -1 : next(fd, data, size, at);
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  static const auto next = Next(&::pwrite, "pwrite");
  return IsFailed(kPwrite, "pwrite", &size) ? -1 : next(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t at) {
  static const auto next = Next(&::pwrite64, "pwrite64");
  return IsFailed(kPwrite, "pwrite64", &size) ? -1 : next(fd, data, size, at);
}
ssize_t readv(int fd, const iovec* parts, int count) {
  static const auto next = Next(&::readv, "readv");
  size_t size = 2;
  if (IsFailed(kReadv, "readv", &size)) return -1;
  const iovec first = FirstPart(parts, count);
  return size == 1 ? next(fd, &first, 1) : next(fd, parts, count);
}
ssize_t writev(int fd, const iovec* parts, int count) {
  static const auto next = Next(&::writev, "writev");
  size_t size = 2;
  if (IsFailed(kWritev, "writev", &size)) return -1;
  const iovec first = FirstPart(parts, count);
  return size == 1 ? next(fd, &first, 1) : next(fd, parts, count);
}

int open(const char* path, int flags, ...) {
  static const auto next = Next(&::open, "open");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = ModeOf(flags, rest);
  va_end(rest);
  return IsFailed(kOpen, "open") ? -1 : next(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  static const auto next = Next(&::open64, "open64");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = ModeOf(flags, rest);
  va_end(rest);
  return IsFailed(kOpen, "open64") ? -1 : next(path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  static const auto next = Next(&::openat, "openat");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = ModeOf(flags, rest);
  va_end(rest);
  return IsFailed(kOpen, "openat") ? -1 : next(folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  static const auto next = Next(&::openat64, "openat64");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = ModeOf(flags, rest);
  va_end(rest);
  return IsFailed(kOpen, "openat64") ? -1 : next(folder, path, flags, mode);
}

int fsync(int fd) {
  static const auto next = Next(&::fsync, "fsync");
  return IsFailed(kFsync, "fsync") ? -1 : next(fd);
}
int fdatasync(int fd) {
  static const auto next = Next(&::fdatasync, "fdatasync");
  return IsFailed(kFsync, "fdatasync") ? -1 : next(fd);
}
int rename(const char* from, const char* to) noexcept {
  static const auto next = Next(&::rename, "rename");
  return IsFailed(kRename, "rename") ? -1 : next(from, to);
}
int unlink(const char* path) noexcept {
  static const auto next = Next(&::unlink, "unlink");
  return IsFailed(kUnlink, "unlink") ? -1 : next(path);
}
int unlinkat(int folder, const char* path, int flags) noexcept {
  static const auto next = Next(&::unlinkat, "unlinkat");
  return IsFailed(kUnlink, "unlinkat") ? -1 : next(folder, path, flags);
}
int ftruncate(int fd, off_t size) noexcept {
  static const auto next = Next(&::ftruncate, "ftruncate");
  return IsFailed(kTruncate, "ftruncate") ? -1 : next(fd, size);
}
int ftruncate64(int fd, off64_t size) noexcept {
  static const auto next = Next(&::ftruncate64, "ftruncate64");
  return IsFailed(kTruncate, "ftruncate64") ? -1 : next(fd, size);
}
int fstat(int fd, struct stat* facts) noexcept {
  static const auto next = Next(&::fstat, "fstat");
  return IsFailed(kStat, "fstat") ? -1 : next(fd, facts);
}
int fstat64(int fd, struct stat64* facts) noexcept {
  static const auto next = Next(&::fstat64, "fstat64");
  return IsFailed(kStat, "fstat64") ? -1 : next(fd, facts);
}
int stat64(const char* path, struct stat64* facts) noexcept {
  static const auto next = Next(&::stat64, "stat64");
  return IsFailed(kStat, "stat64") ? -1 : next(path, facts);
}
int fallocate(int fd, int mode, off_t at, off_t size) {
  static const auto next = Next(&::fallocate, "fallocate");
  return IsFailed(kAllocate, "fallocate") ? -1 : next(fd, mode, at, size);
}
int mkdir(const char* path, mode_t mode) noexcept {
  static const auto next = Next(&::mkdir, "mkdir");
  return IsFailed(kMakeFolder, "mkdir") ? -1 : next(path, mode);
}
int fcntl64(int fd, int what, ...) {
  static const auto next = Next(&::fcntl64, "fcntl64");
  va_list rest;
  va_start(rest, what);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  const bool locks = what == F_SETLK || what == F_SETLKW || what == F_GETLK;
  return locks && IsFailed(kLock, "fcntl") ? -1 : next(fd, what, argument);
}

int accept4(int fd, sockaddr* peer, socklen_t* size, int flags) {
  static const auto next = Next(&::accept4, "accept4");
  return IsFailed(kAccept, "accept4") ? -1 : next(fd, peer, size, flags);
}
int accept(int fd, sockaddr* peer, socklen_t* size) {
  static const auto next = Next(&::accept, "accept");
  return IsFailed(kAccept, "accept") ? -1 : next(fd, peer, size);
}
ssize_t recv(int fd, void* data, size_t size, int flags) {
  static const auto next = Next(&::recv, "recv");
  return IsFailed(kReceive, "recv", &size) ? -1 : next(fd, data, size, flags);
}
ssize_t recvmsg(int fd, msghdr* message, int flags) {
  static const auto next = Next(&::recvmsg, "recvmsg");
  return MoveMessage(kReceive, "recvmsg", next, fd, message, flags);
}
ssize_t send(int fd, const void* data, size_t size, int flags) {
  static const auto next = Next(&::send, "send");
  return IsFailed(kSend, "send", &size) ? -1 : next(fd, data, size, flags);
}
ssize_t sendto(int fd, const void* data, size_t size, int flags, const sockaddr* to,
               socklen_t length) {
  static const auto next = Next(&::sendto, "sendto");
  return IsFailed(kSend, "sendto", &size) ? -1 : next(fd, data, size, flags, to, length);
}
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  static const auto next = Next(&::sendmsg, "sendmsg");
  return MoveMessage(kSend, "sendmsg", next, fd, message, flags);
}
int socket(int domain, int type, int protocol) noexcept {
  static const auto next = Next(&::socket, "socket");
  return IsFailed(kSocket, "socket") ? -1 : next(domain, type, protocol);
}
int connect(int fd, const sockaddr* to, socklen_t size) {
  static const auto next = Next(&::connect, "connect");
  return IsFailed(kConnect, "connect") ? -1 : next(fd, to, size);
}
void* mmap(void* where, size_t size, int access, int flags, int fd, off_t at) noexcept {
  static const auto next = Next(&::mmap, "mmap");
  return IsFailed(kMap, "mmap") ? MAP_FAILED : next(where, size, access, flags, fd, at);
}
void* mmap64(void* where, size_t size, int access, int flags, int fd, off64_t at) noexcept {
  static const auto next = Next(&::mmap64, "mmap64");
  return IsFailed(kMap, "mmap64") ? MAP_FAILED : next(where, size, access, flags, fd, at);
}
int epoll_wait(int fd, epoll_event* events, int most, int timeout) {
  static const auto next = Next(&::epoll_wait, "epoll_wait");
  return IsFailed(kEpollWait, "epoll_wait") ? -1 : next(fd, events, most, timeout);
}
int epoll_ctl(int fd, int what, int other, epoll_event* event) noexcept {
  static const auto next = Next(&::epoll_ctl, "epoll_ctl");
  return IsFailed(kEpollControl, "epoll_ctl") ? -1 : next(fd, what, other, event);
}
int poll(pollfd* which, nfds_t count, int timeout) {
  static const auto next = Next(&::poll, "poll");
  return IsFailed(kPoll, "poll") ? -1 : next(which, count, timeout);
}
}  // extern "C"
