// SPDX-License-Identifier: Apache-2.0
// A port that tells everybody who connects one line and hangs up: what HAProxy's agent check reads.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
namespace hearth {

// Thread: any. `line` is asked on a thread of its own.
class LineServer {
 public:
  // `address` is "127.0.0.1:9100" or "[::1]:9100", port 0 for any free one. Who connects waits
  // until Start.
  static Result<std::unique_ptr<LineServer>> Listen(const std::string& address);
  ~LineServer();
  LineServer(const LineServer&) = delete;
  LineServer& operator=(const LineServer&) = delete;
  void Start(std::function<std::string()> line);  // once
  int port() const { return port_; }

 private:
  explicit LineServer(int listener);
  struct Running;
  const int listener_;
  int port_ = 0;
  std::unique_ptr<Running> running_;
};

}  // namespace hearth
