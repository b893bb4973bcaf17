// SPDX-License-Identifier: Apache-2.0
#include "app/agent_check.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <utility>

#include "app/flag_checks.h"
#include "base/terminal.h"

namespace hearth {

void AddAgentOptions(CLI::App& sub, AgentFlags& flags) {
  sub.add_option("--agent-check", flags.address,
                 "Address and port for HAProxy's agent check, such as 127.0.0.1:9100: tells the "
                 "weight that this replica asks for, its connections, and when it is leaving; "
                 "default: none")
      ->option_text("HOST:PORT");
  sub.add_option("--slow-start", flags.slow_start_s,
                 "Time after a start with an empty cache until the agent check asks for the full "
                 "weight, in seconds")
      ->check(Between(0.0, 3600.0))
      ->capture_default_str();
}

Result<std::unique_ptr<AgentCheck>> AgentCheck::Listen(const AgentFlags& flags,
                                                       const HttpOptions& http) {
  if (flags.address.empty()) return std::unique_ptr<AgentCheck>();
  HEARTH_ASSIGN(std::unique_ptr<LineServer> server,
                LineServer::Listen(flags.address).Within("--agent-check"));
  const AgentOptions options{flags.slow_start_s, http.max_connections_per_peer};
  return std::unique_ptr<AgentCheck>(new AgentCheck(options, std::move(server)));
}

void AgentCheck::Start(SnapshotSource snapshot, const ServeLife& life) {
  const auto began = std::chrono::steady_clock::now();
  server_->Start([this, began, &life, ask = std::move(snapshot)] {
    const std::chrono::duration<double> up = std::chrono::steady_clock::now() - began;
    return line_.Say(*ask(), life.is_leaving(), up.count());
  });
  PrintError("agent check on port %d\n", server_->port());
}

}  // namespace hearth
