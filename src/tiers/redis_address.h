// SPDX-License-Identifier: Apache-2.0
// Where a Redis or Valkey server is, as its own tools write it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
namespace hearth {

struct RedisAddress {
  std::string host;  // a name or an address; a path for a unix socket
  int port = 6379;
  bool is_unix = false;
  bool has_tls = false;
  std::string user, password;  // empty: none
  int database = 0;

  // For logs: without the password.
  std::string name() const;
  bool operator==(const RedisAddress&) const = default;
};

// redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE], rediss:// for TLS, unix:///PATH. Letters that
// mean something in an address are written as %XX.
Result<RedisAddress> ParseRedisAddress(std::string_view text);
// Several, with commas between them.
Result<std::vector<RedisAddress>> ParseRedisAddresses(std::string_view text);

}  // namespace hearth
