// SPDX-License-Identifier: Apache-2.0
// One connection to a Redis or Valkey server. What comes from it is not trusted: a reply is a
// string, a number or nothing, and never longer than was agreed.
#pragma once
#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tiers/redis_address.h"
#include "tiers/redis_body.h"
struct redisReader;
namespace hearth {

struct RedisReply {
  enum class Kind : uint8_t { kBytes, kNone, kText, kError, kNumber };
  Kind kind = Kind::kNone;
  Buffer value;      // kBytes
  std::string text;  // kText, kError
  int64_t number = 0;
};

struct RedisConnectOptions {
  int64_t connect_us = 1'000'000;  // until it is ready, encryption and login included
  size_t max_reply_bytes = size_t{64} << 20;
  std::shared_ptr<SSL_CTX> tls = nullptr;  // for addresses with TLS
};

// Trusts the authorities in `ca_file`; empty: those of the system.
Result<std::shared_ptr<SSL_CTX>> MakeRedisTls(const std::string& ca_file);

// Thread: one.
class RedisConnection {
 public:
  // Waits, at most as long as the options say. kInvalid: the server refuses us, and would again.
  static Result<std::unique_ptr<RedisConnection>> Open(const RedisAddress& address,
                                                       const RedisConnectOptions& options);
  ~RedisConnection();
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  // Sent by Move; each is answered by one reply, in this order.
  void Send(std::initializer_list<std::string_view> words);
  // Moves bytes both ways as far as they go without waiting. An error ends the connection.
  Status Move(const std::function<void(RedisReply)>& on_reply);

  // What to poll for.
  int fd() const { return fd_; }
  short events() const;
  size_t num_unsent() const { return out_.size() - sent_; }
  uint64_t num_moved() const { return num_moved_; }  // bytes, both ways: whether it goes on

 private:
  RedisConnection(int fd, const RedisConnectOptions& options);
  Status Handshake(const RedisAddress& address, int64_t until_us);
  Status Login(const RedisAddress& address, int64_t until_us);
  Status Ask(std::initializer_list<std::string_view> words, int64_t until_us, RedisReply& reply);
  Status WriteSome();
  Status ReadSome(const std::function<void(RedisReply)>& on_reply);
  Status Split(std::string_view text, const std::function<void(RedisReply)>& on_reply);
  Status TakeBody(const std::function<void(RedisReply)>& on_reply);
  Status Parse(const std::function<void(RedisReply)>& on_reply);
  bool IsBetweenReplies() const;
  // Bytes moved; 0: not now; -1: it is over.
  int64_t WriteBytes(const char* data, size_t size);
  // Into the value under way first, if there is one.
  int64_t ReadBytes();

  const int fd_;
  const RedisConnectOptions options_;
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_;
  std::unique_ptr<redisReader, void (*)(redisReader*)> reader_;
  RedisReply parsed_;  // by the reader's callbacks
  RedisBody body_;     // of a long value, past the reader
  std::vector<char> in_;
  std::string out_;
  size_t sent_ = 0;
  uint64_t num_moved_ = 0;
  bool wants_write_ = false;  // TLS has something to say of its own
};

}  // namespace hearth
