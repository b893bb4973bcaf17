// SPDX-License-Identifier: Apache-2.0
// One question to a server over HTTP, and its answer as it comes, by libcurl. For programs that
// talk to a Hearth server while a terminal must keep answering its user.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
namespace hearth {

struct ServerAddress {
  std::string url = {};        // http://host:port, with or without /v1
  std::string key = {};        // empty: none is sent
  std::string ca_path = {};    // whom to trust instead of the system's authorities; empty: those
  std::string unix_path = {};  // a local socket instead; the url's host is then only a name
};

// The address as calls need it: without slashes and /v1 at its end. kInvalid for a url that is none
// and for a key that would not be one header.
Result<ServerAddress> CheckAddress(ServerAddress address);

// Thread: one.
class ServerCall {
 public:
  // Gets the body as it comes, and may end the call with false.
  using Take = std::function<bool(std::string_view bytes, long http_status)>;
  // `address` as CheckAddress gives it; `path` such as /v1/models.
  ServerCall(const ServerAddress& address, const std::string& path, Take take);
  ~ServerCall();

  // Before Begin: the whole call may take so long; it sends this JSON.
  void Limit(long seconds);
  void Post(const std::string& body);

  // Begins to ask, or to ask again; nothing happens while a question is under way.
  void Begin();
  // Until the call is over, one of `fds` can be read, or the time has passed. When it is over: ok
  // also where `take` ended it, else one line on what went wrong, with the address in it.
  std::optional<Status> Wait(std::span<const int> fds, int timeout_ms);
  long http_status() const;
  std::string where() const;  // for messages

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace hearth
