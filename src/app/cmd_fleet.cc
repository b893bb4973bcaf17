// SPDX-License-Identifier: Apache-2.0
// hearth fleet: configurations for the programs in front of several replicas.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>

#include "app/cmd_fleet.h"
#include "app/flag_checks.h"
#include "app/print.h"
#include "fleet/haproxy.h"

namespace hearth {
namespace {

struct FleetFlags {
  std::vector<std::string> replicas;
  int agent_port = 9100;
  FleetSpec spec;
};

Status PrintHaproxy(const FleetFlags& flags) {
  FleetSpec spec = flags.spec;
  for (const std::string& text : flags.replicas) {
    HEARTH_ASSIGN(FleetReplica replica, ParseReplica(text, flags.agent_port));
    spec.replicas.push_back(std::move(replica));
  }
  HEARTH_ASSIGN(const std::string text, HaproxyConfig(spec));
  PrintOut(text);
  return Status();
}

void AddHaproxyOptions(CLI::App& sub, FleetFlags& flags) {
  FleetSpec& spec = flags.spec;
  sub.add_option("--replicas", flags.replicas,
                 "Address and port of each replica, separated by commas; HOST:PORT@AGENTPORT where "
                 "the agent check has another port than --agent-port")
      ->delimiter(',')
      ->option_text("HOST:PORT,...");
  sub.add_option("--agent-port", flags.agent_port,
                 "Port of the replicas' --agent-check; 0: they have none")
      ->check(Between(0, 65535))
      ->capture_default_str();
  sub.add_option("--listen", spec.listen, "Address and port that HAProxy listens on; *: any")
      ->capture_default_str();
  sub.add_option("--certificate", spec.certificate,
                 "PEM file with certificate, chain and private key for TLS; default: no TLS");
  sub.add_option("--stats", spec.stats,
                 "Address and port of HAProxy's own page and its /metrics for Prometheus")
      ->capture_default_str();
  const std::map<std::string, FleetBalance> balances{{"session", FleetBalance::kSession},
                                                     {"round-robin", FleetBalance::kRoundRobin},
                                                     {"least", FleetBalance::kLeast}};
  sub.add_option("--balance", spec.balance,
                 "How a replica is chosen: session: a conversation stays with the replica that has "
                 "it cached; round-robin, least: for comparison; default: session")
      ->type_name("MODE")
      ->transform(NamedValue(balances));
  sub.add_option("--bounded-load", spec.bounded_load,
                 "Load that one replica may have before its sessions go to the next, in percent of "
                 "the mean; 0: no bound")
      ->check(Between(0, 10000))
      ->capture_default_str();
  sub.add_option("--max-queue", spec.max_queued,
                 "Maximum number of requests that wait at the balancer for one replica")
      ->check(Between(1, 1 << 20))
      ->capture_default_str();
  sub.add_option("--queue-timeout", spec.queue_s,
                 "Time that a request waits at the balancer, in seconds")
      ->check(Between(0.1, 3600.0))
      ->capture_default_str();
  sub.add_option("--reply-timeout", spec.reply_s,
                 "Time without a byte of a reply after which the request fails, in seconds")
      ->check(Between(1.0, 86400.0))
      ->capture_default_str();
  sub.add_option("--max-connections", spec.max_connections,
                 "Maximum number of clients' connections")
      ->check(Between(10, 1 << 24))
      ->capture_default_str();
  sub.add_flag("--shared-batches", spec.has_shared_batches,
               "Send requests for files and batch jobs to any replica: their --batches is one "
               "PostgreSQL database; default: to the first of --replicas");
}

}  // namespace

void AddFleet(CLI::App& app, Command& chosen) {
  CLI::App* sub =
      app.add_subcommand("fleet", "Configurations for several replicas behind a balancer");
  sub->require_subcommand(1);
  auto flags = std::make_shared<FleetFlags>();
  CLI::App* haproxy = sub->add_subcommand("haproxy", "Print a configuration for HAProxy");
  AddHaproxyOptions(*haproxy, *flags);
  haproxy->callback([&chosen, flags] { chosen = [flags] { return PrintHaproxy(*flags); }; });
}

}  // namespace hearth
