// SPDX-License-Identifier: Apache-2.0
// server_driver: load for a server on this machine. run.py starts it; the result is JSON on stdout.
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "platform/usage.h"
#include "server/clients.h"
#include "server/crowd.h"

namespace hearth {
namespace {

bool StdinHasEnded() {
  pollfd fd{STDIN_FILENO, POLLIN, 0};
  char byte = 0;
  return ::poll(&fd, 1, 0) > 0 && ::read(STDIN_FILENO, &byte, 1) <= 0;
}

void Print(const Json& json) {
  std::printf("%s\n", WriteJson(json).c_str());
  std::fflush(stdout);
}

void AddCrowd(CLI::App& app, CrowdOptions& options) {
  CLI::App* sub = app.add_subcommand("crowd", "Hold connections until stdin ends");
  sub->add_option("--port", options.port)->required();
  sub->add_option("--sources", options.num_sources, "Loopback addresses to come from");
  sub->add_option("--idle", options.num_idle);
  sub->add_option("--slow-writers", options.num_slow_writers);
  sub->add_option("--slow-readers", options.num_slow_readers);
  sub->add_option("--reader-tokens", options.reader_tokens);
  sub->callback([&options] {
    Print(RunCrowd(options, [] { Print(JsonObject{{"ready", true}}); }, StdinHasEnded));
  });
}

void AddClients(CLI::App& app, ClientOptions& options) {
  CLI::App* sub = app.add_subcommand("clients", "Ask for streams and judge them");
  sub->add_option("--port", options.port)->required();
  sub->add_option("--sources", options.num_sources, "Loopback addresses to come from");
  CLI::Option* loop = sub->add_option("--clients", options.num_clients, "A closed loop");
  sub->add_option("--rate", options.rate, "Or: requests per second")->excludes(loop);
  sub->add_option("--seconds", options.seconds);
  sub->add_option("--warm-up", options.warm_up_s);
  sub->add_option("--patience", options.patience_s);
  sub->add_option("--prompt-tokens", options.prompt_tokens);
  sub->add_option("--answer-tokens", options.answer_tokens);
  sub->add_option("--prompts", options.num_prompts);
  sub->add_option("--vocab-size", options.vocab_size);
  sub->add_option("--seed", options.seed);
  sub->callback([&options] { Print(RunClients(options)); });
}

int Main(int argc, char** argv) {
  RaiseFileLimit();
  CLI::App app("Load for a server on this machine");
  app.require_subcommand(1);
  CrowdOptions crowd;
  ClientOptions clients;
  AddCrowd(app, crowd);
  AddClients(app, clients);
  CLI11_PARSE(app, argc, argv);
  return 0;
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) { return hearth::Main(argc, argv); }
