// SPDX-License-Identifier: Apache-2.0
// The port that HAProxy's agent check asks, put together: the socket, the engine's state and the
// process's.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "app/serve_life.h"
#include "base/result.h"
#include "engine/snapshot.h"
#include "http/http_server.h"
#include "http/line_server.h"
#include "server/observe/agent_line.h"
namespace CLI {
class App;
}  // namespace CLI
namespace hearth {

struct AgentFlags {
  std::string address;  // empty: none
  double slow_start_s = 30;
};
void AddAgentOptions(CLI::App& sub, AgentFlags& flags);

// Thread: the main one. Destroyed before what `snapshot` and `life` ask.
class AgentCheck {
 public:
  // Null without an address.
  static Result<std::unique_ptr<AgentCheck>> Listen(const AgentFlags& flags,
                                                    const HttpOptions& http);
  void Start(SnapshotSource snapshot, const ServeLife& life);

 private:
  AgentCheck(const AgentOptions& options, std::unique_ptr<LineServer> server)
      : line_(options), server_(std::move(server)) {}
  AgentLine line_;
  const std::unique_ptr<LineServer> server_;
};

}  // namespace hearth
