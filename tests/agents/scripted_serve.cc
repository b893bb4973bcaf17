// SPDX-License-Identifier: Apache-2.0
// hearth serve with a script for a model: scripted_serve serve --model TOKENIZER --script FILE. The
// same rooms are put together in the same way; only the backend differs.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "app/open_tokenizer.h"
#include "http/http_server.h"
#include "platform/file.h"
#include "scripted_backend.h"
#include "server/access/guard.h"
#include "server/all_dialects.h"
#include "server/api_router.h"
#include "server/turns/turn_service.h"

namespace hearth {
namespace {

struct Flags {
  std::string model, script, host = "127.0.0.1";
  int port = 0;
};

constexpr int kContext = 65'536;

Status Serve(const Flags& flags) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  HEARTH_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer, OpenTokenizer(flags.model));
  HEARTH_ASSIGN(const std::string text, ReadTextFile(flags.script, size_t{1} << 20));
  HEARTH_ASSIGN(const Json json, ParseJson(text).Within(flags.script));
  HEARTH_ASSIGN(AgentScript script, ReadAgentScript(json, *tokenizer));
  HEARTH_ASSIGN(std::unique_ptr<Backend> backend,
                ScriptedBackend::Make(std::move(script), *tokenizer));
  HEARTH_ASSIGN(const std::unique_ptr<ChatFormat> format, MakeHarmonyFormat(*tokenizer));
  HEARTH_ASSIGN(const std::unique_ptr<ReplyMasks> masks,
                ReplyMasks::Make(*tokenizer, format->stop_tokens(), {}));
  EngineOptions options;
  options.scheduler.max_context = kContext;
  Engine engine(std::move(backend), options);
  ServedModel model;
  model.name = "scripted";
  model.tokenizer = tokenizer.get();
  model.format = format.get();
  model.masks = masks.get();
  model.max_context = kContext;
  HEARTH_ASSIGN(const std::unique_ptr<ResponseStore> store, ResponseStore::Open(""));
  TurnService service(engine, model);
  const ServerMetrics metrics({"", "", "", model.name, kContext});
  HttpOptions http;
  http.host = flags.host;
  http.port = static_cast<uint16_t>(flags.port);
  http.authorize = [](HttpRequest& request, Auth auth) {
    return Guard(request, auth, {}, nullptr);
  };
  HEARTH_ASSIGN(const std::unique_ptr<HttpServer> server,
                HttpServer::Listen(std::move(http),
                                   ApiRouter({engine, metrics, service, AllDialects(*store)})));
  std::fprintf(stderr, "%s at http://%s:%d/v1\n", model.name.c_str(), flags.host.c_str(),
               server->port());
  int signal = 0;
  sigwait(&signals, &signal);
  server->Drain();
  engine.Drain(2'000'000);
  return Status();
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) {
  CLI::App app("A server whose model is a script");
  hearth::Flags flags;
  CLI::App* serve = app.add_subcommand("serve", "Serve it")->required();
  serve->add_option("--model", flags.model, "A file with gpt-oss's vocabulary")->required();
  serve->add_option("--script", flags.script, "What the model says")->required();
  serve->add_option("--host", flags.host, "Address");
  serve->add_option("--port", flags.port, "0: any free one");
  CLI11_PARSE(app, argc, argv);
  const hearth::Status status = hearth::Serve(flags);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
