// SPDX-License-Identifier: Apache-2.0
#include "tiers/redis_connection.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tiers/now.h"

namespace hearth {
namespace {

// Short replies, and the beginnings of long ones: what comes of those here is copied once more.
constexpr size_t kReadBytes = 16 << 10;
constexpr int kReadsAtOnce = 16;  // then somebody else's turn

// False: the time is over.
bool WaitFor(int fd, short events, int64_t until_us) {
  while (true) {
    const int64_t left_us = until_us - NowUs();
    if (left_us <= 0) return false;
    pollfd entry{fd, events, 0};
    const int count = poll(&entry, 1, static_cast<int>(left_us / 1000 + 1));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
  }
}

Status Broken(const char* what) {
  return Error(Code::kIo, "%s: %s", what, errno != 0 ? std::strerror(errno) : "closed");
}

Status TlsError(const char* what) {
  char text[256] = "closed";
  if (const unsigned long code = ERR_get_error(); code != 0) {
    ERR_error_string_n(code, text, sizeof text);
  }
  return Error(Code::kIo, "%s: %s", what, text);
}

// Callbacks of hiredis. Lists and what is nested cannot come: to refuse them is to run out of
// memory, in its words.
RedisReply* ReplyOf(const redisReadTask* task) { return static_cast<RedisReply*>(task->privdata); }

void* OnString(const redisReadTask* task, char* data, size_t size) {
  RedisReply& reply = *ReplyOf(task);
  if (task->type == REDIS_REPLY_STRING) {
    reply.kind = RedisReply::Kind::kBytes;
    const auto* bytes = reinterpret_cast<const std::byte*>(data);
    auto owner = std::make_shared<std::vector<std::byte>>(bytes, bytes + size);
    reply.value.bytes = *owner;
    reply.value.memory = std::move(owner);
  } else {
    reply.kind =
        task->type == REDIS_REPLY_ERROR ? RedisReply::Kind::kError : RedisReply::Kind::kText;
    reply.text.assign(data, std::min(size, size_t{200}));
  }
  return &reply;
}

void* OnArray(const redisReadTask*, int) { return nullptr; }

void* OnInteger(const redisReadTask* task, long long value) {
  RedisReply& reply = *ReplyOf(task);
  reply.kind = RedisReply::Kind::kNumber;
  reply.number = value;
  return &reply;
}

void* OnNil(const redisReadTask* task) {
  ReplyOf(task)->kind = RedisReply::Kind::kNone;
  return ReplyOf(task);
}

void OnFree(void*) {}

redisReplyObjectFunctions callbacks = {OnString, OnArray, OnInteger, OnNil, OnFree};

bool IsConnected(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return false;
  errno = error;
  return error == 0;
}

// A connected socket that never blocks, or -1 with errno.
int ConnectTo(int family, const sockaddr* address, socklen_t size, int64_t until_us) {
  const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const bool is_begun = connect(fd, address, size) == 0 || errno == EINPROGRESS;
  if (is_begun && WaitFor(fd, POLLOUT, until_us) && IsConnected(fd)) return fd;
  const int error = errno == 0 || errno == EINPROGRESS ? ETIMEDOUT : errno;
  close(fd);
  errno = error;
  return -1;
}

Result<int> ConnectUnix(const RedisAddress& address, int64_t until_us) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (address.host.size() >= sizeof to.sun_path) return Error(Code::kInvalid, "too long a path");
  std::memcpy(to.sun_path, address.host.data(), address.host.size());
  const int fd = ConnectTo(AF_UNIX, reinterpret_cast<const sockaddr*>(&to), sizeof to, until_us);
  if (fd < 0) return Broken("cannot connect");
  return fd;
}

Result<int> ConnectInternet(const RedisAddress& address, int64_t until_us) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (error != 0) return Error(Code::kIo, "cannot find it: %s", gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  int fd = -1;
  for (const addrinfo* each = list; each != nullptr && fd < 0; each = each->ai_next) {
    fd = ConnectTo(each->ai_family, each->ai_addr, each->ai_addrlen, until_us);
  }
  if (fd < 0) return Broken("cannot connect");
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return fd;
}

}  // namespace

Result<std::shared_ptr<SSL_CTX>> MakeRedisTls(const std::string& ca_file) {
  std::shared_ptr<SSL_CTX> tls(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  if (!tls) return TlsError("TLS");
  SSL_CTX_set_min_proto_version(tls.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(tls.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(tls.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const bool is_read =
      ca_file.empty() ? SSL_CTX_set_default_verify_paths(tls.get()) == 1
                      : SSL_CTX_load_verify_locations(tls.get(), ca_file.c_str(), nullptr) == 1;
  if (!is_read) return TlsError(ca_file.empty() ? "the system's certificates" : ca_file.c_str());
  return tls;
}

RedisConnection::RedisConnection(int fd, const RedisConnectOptions& options)
    : fd_(fd),
      options_(options),
      tls_(nullptr, &SSL_free),
      reader_(redisReaderCreateWithFunctions(&callbacks), &redisReaderFree),
      in_(kReadBytes) {
  if (reader_) {
    reader_->privdata = &parsed_;
    reader_->maxbuf = 0;  // keeps its buffer: the next reply is as long
  }
}

RedisConnection::~RedisConnection() {
  tls_.reset();
  close(fd_);
}

Result<std::unique_ptr<RedisConnection>> RedisConnection::Open(const RedisAddress& address,
                                                               const RedisConnectOptions& options) {
  const int64_t until_us = NowUs() + options.connect_us;
  HEARTH_ASSIGN(const int fd, address.is_unix ? ConnectUnix(address, until_us)
                                              : ConnectInternet(address, until_us));
  std::unique_ptr<RedisConnection> connection(new RedisConnection(fd, options));
  if (!connection->reader_) return Error(Code::kExhausted, "no memory");
  if (address.has_tls) HEARTH_TRY(connection->Handshake(address, until_us));
  HEARTH_TRY(connection->Login(address, until_us));
  return connection;
}

Status RedisConnection::Handshake(const RedisAddress& address, int64_t until_us) {
  ERR_clear_error();
  tls_.reset(SSL_new(options_.tls.get()));
  if (!tls_ || SSL_set_fd(tls_.get(), fd_) != 1) return TlsError("TLS");
  X509_VERIFY_PARAM* const wanted = SSL_get0_param(tls_.get());
  if (X509_VERIFY_PARAM_set1_ip_asc(wanted, address.host.c_str()) != 1) {
    SSL_set_tlsext_host_name(tls_.get(), address.host.c_str());
    if (X509_VERIFY_PARAM_set1_host(wanted, address.host.c_str(), 0) != 1) return TlsError("TLS");
  }
  ERR_clear_error();
  while (true) {
    const int done = SSL_connect(tls_.get());
    if (done == 1) return {};
    const int error = SSL_get_error(tls_.get(), done);
    if (const long verified = SSL_get_verify_result(tls_.get()); verified != X509_V_OK) {
      return Error(Code::kIo, "its certificate is not accepted: %s",
                   X509_verify_cert_error_string(verified));
    }
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
      return TlsError("the TLS handshake failed");
    }
    if (!WaitFor(fd_, error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, until_us)) {
      return Error(Code::kIo, "the TLS handshake takes too long");
    }
  }
}

Status RedisConnection::Ask(std::initializer_list<std::string_view> words, int64_t until_us,
                            RedisReply& reply) {
  bool has_come = false;
  Send(words);
  while (!has_come) {
    HEARTH_TRY(Move([&](RedisReply came) {
      reply = std::move(came);
      has_come = true;
    }));
    if (!has_come && !WaitFor(fd_, events(), until_us)) {
      return Error(Code::kIo, "it does not answer");
    }
  }
  return {};
}

Status RedisConnection::Login(const RedisAddress& address, int64_t until_us) {
  RedisReply reply;
  if (!address.password.empty()) {
    if (address.user.empty()) {
      HEARTH_TRY(Ask({"AUTH", address.password}, until_us, reply));
    } else {
      HEARTH_TRY(Ask({"AUTH", address.user, address.password}, until_us, reply));
    }
    if (reply.kind == RedisReply::Kind::kError) {
      return Error(Code::kInvalid, "refuses our password: %s", reply.text.c_str());
    }
  }
  HEARTH_TRY(Ask({"SELECT", std::to_string(address.database)}, until_us, reply));
  if (reply.kind == RedisReply::Kind::kError) {
    return Error(Code::kInvalid, "refuses us: %s", reply.text.c_str());
  }
  if (reply.kind != RedisReply::Kind::kText) return Error(Code::kIo, "is no Redis server");
  return {};
}

void RedisConnection::Send(std::initializer_list<std::string_view> words) {
  if (sent_ == out_.size()) {
    out_.clear();
    sent_ = 0;
  }
  out_ += "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    out_ += "$" + std::to_string(word.size()) + "\r\n";
    out_ += word;
    out_ += "\r\n";
  }
}

short RedisConnection::events() const {
  return static_cast<short>(POLLIN | (num_unsent() > 0 || wants_write_ ? POLLOUT : 0));
}

Status RedisConnection::Move(const std::function<void(RedisReply)>& on_reply) {
  wants_write_ = false;
  ERR_clear_error();
  HEARTH_TRY(WriteSome());
  return ReadSome(on_reply);
}

int64_t RedisConnection::WriteBytes(const char* data, size_t size) {
  if (!tls_) {
    const ssize_t count = send(fd_, data, size, MSG_NOSIGNAL);
    if (count > 0) return count;
    return count < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
  }
  const int count = SSL_write(tls_.get(), data, static_cast<int>(std::min(size, size_t{1} << 20)));
  if (count > 0) return count;
  const int error = SSL_get_error(tls_.get(), count);
  return error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ ? 0 : -1;
}

int64_t RedisConnection::ReadBytes() {
  const std::span<char> body = body_.is_open() ? body_.rest() : std::span<char>();
  if (!tls_) {
    iovec to[2] = {{body.data(), body.size()}, {in_.data(), in_.size()}};
    const ssize_t count = body.empty() ? readv(fd_, to + 1, 1) : readv(fd_, to, 2);
    if (count > 0) return count;
    if (count == 0) errno = 0;
    return count < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
  }
  const std::span<char> to = body.empty() ? std::span(in_) : body;
  const size_t most = std::min(to.size(), size_t{1} << 20);
  const int count = SSL_read(tls_.get(), to.data(), static_cast<int>(most));
  if (count > 0) return count;
  const int error = SSL_get_error(tls_.get(), count);
  wants_write_ = error == SSL_ERROR_WANT_WRITE;
  return error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ ? 0 : -1;
}

Status RedisConnection::WriteSome() {
  while (num_unsent() > 0) {
    const int64_t count = WriteBytes(out_.data() + sent_, num_unsent());
    if (count < 0) return tls_ ? TlsError("the connection broke") : Broken("the connection broke");
    if (count == 0) return {};
    sent_ += static_cast<size_t>(count);
    num_moved_ += static_cast<uint64_t>(count);
  }
  return {};
}

Status RedisConnection::ReadSome(const std::function<void(RedisReply)>& on_reply) {
  for (int i = 0; i < kReadsAtOnce; ++i) {
    const int64_t count = ReadBytes();
    if (count < 0) return tls_ ? TlsError("the connection broke") : Broken("the connection broke");
    if (count == 0) return {};
    num_moved_ += static_cast<uint64_t>(count);
    auto left = static_cast<size_t>(count);
    if (body_.is_open()) {
      const size_t in_place = std::min(left, body_.rest().size());
      body_.Took(in_place);
      left -= in_place;
      HEARTH_TRY(TakeBody(on_reply));
    }
    HEARTH_TRY(Split({in_.data(), left}, on_reply));
  }
  return {};
}

bool RedisConnection::IsBetweenReplies() const {
  return reader_->pos == reader_->len && reader_->ridx == -1;
}

Status RedisConnection::TakeBody(const std::function<void(RedisReply)>& on_reply) {
  if (!body_.is_whole()) return {};
  auto value = body_.Take();
  if (!value) return Error(Code::kIo, "its reply does not end where it said");
  RedisReply reply;
  reply.kind = RedisReply::Kind::kBytes;
  reply.value = *std::move(value);
  on_reply(std::move(reply));
  return {};
}

// Long values go to memory of their own, the rest to hiredis.
Status RedisConnection::Split(std::string_view text,
                              const std::function<void(RedisReply)>& on_reply) {
  while (!text.empty()) {
    if (body_.is_open()) {
      const size_t count = std::min(text.size(), body_.rest().size());
      std::memcpy(body_.rest().data(), text.data(), count);
      body_.Took(count);
      text.remove_prefix(count);
      HEARTH_TRY(TakeBody(on_reply));
      continue;
    }
    const bool is_between = IsBetweenReplies();
    if (const size_t count = is_between ? body_.Begin(text, options_.max_reply_bytes) : 0) {
      text.remove_prefix(count);
      continue;
    }
    const size_t count = is_between ? RedisReplyBytes(text) : text.size();
    if (redisReaderFeed(reader_.get(), text.data(), count) != REDIS_OK) {
      return Error(Code::kIo, "its reply: %s", reader_->errstr);
    }
    text.remove_prefix(count);
    HEARTH_TRY(Parse(on_reply));
  }
  return {};
}

Status RedisConnection::Parse(const std::function<void(RedisReply)>& on_reply) {
  while (true) {
    void* reply = nullptr;
    if (redisReaderGetReply(reader_.get(), &reply) != REDIS_OK) {
      return Error(Code::kIo, "its reply: %s", reader_->errstr);
    }
    if (reply == nullptr) break;
    on_reply(std::exchange(parsed_, {}));
  }
  if (reader_->len - reader_->pos > options_.max_reply_bytes) {
    return Error(Code::kIo, "its reply is longer than anything stored");
  }
  return {};
}

}  // namespace hearth
