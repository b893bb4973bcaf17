// SPDX-License-Identifier: Apache-2.0
// hearth serve: the model behind the API that clients already speak.
#include <signal.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>

#include "app/commands.h"
#include "app/open_engine.h"
#include "app/open_format.h"
#include "app/open_model.h"
#include "app/open_tokenizer.h"
#include "backend/numerics.h"
#include "base/mutex.h"
#include "http/http_server.h"
#include "platform/file.h"
#include "platform/isa.h"
#include "platform/usage.h"
#include "server/access/guard.h"
#include "server/access/keys.h"
#include "server/api_router.h"
#include "server/dialects/messages/anthropic_writer.h"
#include "server/observe/health_routes.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/observe/status_route.h"
#include "server/turns/api_error.h"
#include "server/turns/turn_service.h"

namespace hearth {
namespace {

struct ServeFlags {
  std::string model, name, keys_path, date, responses_path;
  EngineFlags engine;
  HttpOptions http;
  GuardPolicy guard;
  std::string certificate, private_key;
  double drain_s = 30;
  int control_port = -1;  // none
  std::string log_path;
  Neutralise neutralise = Neutralise::kHeaders;
};

// Signals are taken by one thread that waits for them: nothing runs in a handler.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// The keys of now. Requests hold on to the ring they were checked with.
class Keys {
 public:
  std::shared_ptr<const KeyRing> get() const {
    const MutexLock lock(mu_);
    return ring_;
  }
  Status Load(const std::string& path) {
    HEARTH_ASSIGN(const std::string text, ReadTextFile(path, size_t{16} << 20));
    HEARTH_ASSIGN(KeyRing ring, KeyRing::Parse(text).Within(path));
    if (ring.empty()) return Error(Code::kInvalid, "%s holds no keys", path.c_str());
    const MutexLock lock(mu_);
    ring_ = std::make_shared<const KeyRing>(std::move(ring));
    return Status();
  }

 private:
  mutable Mutex mu_;
  std::shared_ptr<const KeyRing> ring_ HEARTH_GUARDED_BY(mu_);
};

Status CheckFlags(const ServeFlags& flags) {
  if (flags.certificate.empty() != flags.private_key.empty()) {
    return Error(Code::kInvalid, "--tls-certificate and --tls-key go together");
  }
  const std::string& host = flags.http.host;
  if (!flags.keys_path.empty() || !flags.http.unix_path.empty() || IsLoopback(host) ||
      host == "localhost") {
    return Status();
  }
  return Error(Code::kInvalid,
               "%s can be reached from outside: make keys with `hearth key` and give them with "
               "--keys, or listen on 127.0.0.1",
               flags.http.host.c_str());
}

HttpOptions OptionsOf(const ServeFlags& flags) {
  HttpOptions options = flags.http;
  if (options.host == "localhost") options.host = "127.0.0.1";
  if (!flags.certificate.empty()) options.tls = TlsFiles{flags.certificate, flags.private_key};
  return options;
}

// Listens and stops again: a port that is taken or a certificate that is none is told before
// gigabytes are loaded.
Status TryListening(const ServeFlags& flags) {
  HEARTH_TRY(HttpServer::Listen(OptionsOf(flags), Router()).status());
  if (flags.control_port <= 0) return Status();
  HttpOptions control;
  control.port = static_cast<uint16_t>(flags.control_port);
  return HttpServer::Listen(std::move(control), Router()).status();
}

// What is served, in the order it must go away: the last first.
struct Served {
  Keys keys;
  RateLimiter limiter;
  std::unique_ptr<ServerMetrics> metrics;
  std::unique_ptr<RequestLog> log;
  std::unique_ptr<TurnObserver> ends;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatFormat> format;
  std::unique_ptr<ReplyMasks> masks;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<ResponseStore> responses;
  std::unique_ptr<TurnService> service;
  std::unique_ptr<HttpServer> server, control;
};

Status OpenModelParts(const ServeFlags& flags, Served& served, ServedModel& out) {
  HEARTH_ASSIGN(Model model, OpenModelFor(flags.model, "cpu"));
  HEARTH_ASSIGN(served.tokenizer, OpenTokenizer(flags.model));
  const Tokenizer& tokenizer = *served.tokenizer;
  if (tokenizer.vocab_size() > model.spec.vocab_size) {
    return Error(Code::kCorrupt, "%s: a vocabulary of %d tokens, the model has room for %d",
                 flags.model.c_str(), tokenizer.vocab_size(), model.spec.vocab_size);
  }
  HEARTH_ASSIGN(served.format, OpenChatFormat(flags.model, "", tokenizer));
  HEARTH_ASSIGN(served.masks, ReplyMasks::Make(tokenizer, served.format->stop_tokens(),
                                               ReplyStyleOf(*served.format, tokenizer)));
  HEARTH_ASSIGN(served.engine, OpenEngine(model, flags.engine));
  out.name = flags.name.empty() ? std::filesystem::path(flags.model).stem().string() : flags.name;
  out.fingerprint = fmt::format("hearth-{}-exact-{}", HEARTH_VERSION, kNumericsVersion);
  out.tokenizer = served.tokenizer.get();
  out.format = served.format.get();
  out.masks = served.masks.get();
  out.date = flags.date;
  out.max_context = flags.engine.max_context > 0
                        ? std::min(flags.engine.max_context, model.spec.max_context)
                        : model.spec.max_context;
  // What is advertised must be had: no sequence is longer than the memory for K and V.
  const auto snapshot = served.engine->snapshot();
  if (!snapshot->kv.empty() && snapshot->kv[0].window == 0) {
    const int tokens = snapshot->kv[0].counts.total * snapshot->block_tokens;
    out.max_context = std::min(out.max_context, tokens);
  }
  return Status();
}

std::string DescribeRefusal(const HttpRefusal& refusal) {
  ApiError error;
  error.status = refusal.status;
  error.message = refusal.message;
  if (refusal.status == 401) error.type = "authentication_error";
  if (refusal.status == 401) error.code = "invalid_api_key";
  const bool is_anthropic = refusal.path.starts_with("/v1/messages");
  return WriteJson(is_anthropic ? AnthropicError(error) : OpenAiError(error));
}

// Sockets must not take the descriptors that files, logs and stored responses need.
int ConnectionsWithin(int64_t file_limit, int wanted) {
  constexpr int64_t kReserved = 256;
  const auto room = static_cast<int>(std::max<int64_t>(1, file_limit - kReserved));
  if (room < wanted) {
    std::fprintf(stderr, "at most %d connections: %lld files may be open (ulimit -n)\n", room,
                 static_cast<long long>(file_limit));
  }
  return std::min(room, wanted);
}

Status Listen(const ServeFlags& flags, Served& served) {
  // Without keys everybody here is one tenant, who may see what the tenant is doing.
  const Auth status_auth = flags.keys_path.empty() ? Auth::kKey : Auth::kAdmin;
  Router router =
      ApiRouter({*served.engine, *served.metrics, *served.service, *served.responses, status_auth});
  HttpOptions options = OptionsOf(flags);
  options.max_connections = ConnectionsWithin(RaiseFileLimit(), flags.http.max_connections);
  GuardPolicy policy = flags.guard;
  policy.needs_key = !flags.keys_path.empty();
  options.authorize = [policy, &keys = served.keys](HttpRequest& request, Auth auth) {
    return Guard(request, auth, policy, keys.get().get());
  };
  options.describe_refusal = DescribeRefusal;
  HEARTH_ASSIGN(served.server, HttpServer::Listen(std::move(options), std::move(router)));
  return Status();
}

// Health and metrics for this machine alone, on a thread that serves nothing else: it answers
// whatever the other connections and the engine are doing.
Status ListenForControl(const ServeFlags& flags, Served& served) {
  served.metrics->WatchStore([&store = *served.responses] { return store.counts(); });
  served.metrics->AddListener("api", [&server = *served.server] { return server.counts(); });
  if (flags.control_port < 0) return Status();
  Router router;
  AddHealthRoutes(*served.engine, router);
  AddMetricsRoute(*served.engine, *served.metrics, router);
  AddStatusRoute(*served.engine, *served.service, *served.metrics, Auth::kAdmin, router);
  HttpOptions options;
  options.port = static_cast<uint16_t>(flags.control_port);
  // Whoever can reach it may ask; web pages of other hosts cannot.
  options.authorize = [policy = flags.guard](HttpRequest& request, Auth) {
    return Guard(request, Auth::kPublic, policy, nullptr);
  };
  options.describe_refusal = DescribeRefusal;
  HEARTH_ASSIGN(served.control, HttpServer::Listen(std::move(options), std::move(router)));
  served.metrics->AddListener("control", [&server = *served.control] { return server.counts(); });
  std::fprintf(stderr, "control on http://127.0.0.1:%d\n", served.control->port());
  return Status();
}

// What watches the service; made before it.
Result<ServiceOptions> OpenWatchers(const ServeFlags& flags, const ServedModel& model,
                                    Served& served) {
  const std::string isa = flags.engine.cpu.isa.empty() ? NameOf(BestIsa()) : flags.engine.cpu.isa;
  served.metrics = std::make_unique<ServerMetrics>(
      MetricFacts{HEARTH_VERSION, isa, fmt::format("exact-{}", kNumericsVersion), model.name,
                  model.max_context});
  ServiceOptions options;
  options.neutralise = flags.neutralise;
  options.watch = [&metrics = *served.metrics](std::shared_ptr<EventSink> sink) {
    return metrics.Watch(std::move(sink));
  };
  if (!flags.keys_path.empty()) {
    options.limiter = &served.limiter;
    options.limits_of = [&keys = served.keys](const std::string& id) {
      return keys.get()->LimitsOf(id);
    };
    served.metrics->WatchKeys(served.limiter);
  }
  if (!flags.log_path.empty()) {
    HEARTH_ASSIGN(served.log, RequestLog::Open(flags.log_path));
  }
  served.ends = served.metrics->CountEnds(served.log.get());
  options.observer = served.ends.get();
  return options;
}

void SayWhere(const ServeFlags& flags, const Served& served, const ServedModel& model) {
  if (!flags.http.unix_path.empty()) {
    std::fprintf(stderr, "%s at %s\n", model.name.c_str(), flags.http.unix_path.c_str());
    return;
  }
  std::fprintf(stderr, "%s at %s://%s:%d/v1, %d tokens of context\n", model.name.c_str(),
               flags.certificate.empty() ? "http" : "https", flags.http.host.c_str(),
               served.server->port(), model.max_context);
}

// Until the signal that ends the program.
int WaitForEnd(const sigset_t& signals, const ServeFlags& flags, Served& served) {
  while (true) {
    int signal = 0;
    sigwait(&signals, &signal);
    if (signal != SIGHUP) return signal;
    if (flags.keys_path.empty()) continue;
    // A file with a mistake in it changes nothing.
    const Status status = served.keys.Load(flags.keys_path);
    if (status.ok()) {
      std::fprintf(stderr, "keys: read again\n");
    } else {
      std::fprintf(stderr, "keys: %s; the ones from before stay\n", status.message().c_str());
    }
  }
}

Status Serve(const ServeFlags& flags) {
  const sigset_t signals = BlockSignals();
  HEARTH_TRY(CheckFlags(flags));
  Served served;
  if (!flags.keys_path.empty()) HEARTH_TRY(served.keys.Load(flags.keys_path));
  HEARTH_TRY(TryListening(flags));
  ServedModel model;
  HEARTH_TRY(OpenModelParts(flags, served, model));
  HEARTH_ASSIGN(served.responses, ResponseStore::Open(flags.responses_path));
  HEARTH_ASSIGN(const ServiceOptions options, OpenWatchers(flags, model, served));
  served.service = std::make_unique<TurnService>(*served.engine, model, options);
  HEARTH_TRY(Listen(flags, served));
  HEARTH_TRY(ListenForControl(flags, served));
  SayWhere(flags, served, model);
  const int signal = WaitForEnd(signals, flags, served);
  std::fprintf(stderr, "%s: shutting down; waiting up to %g s for running requests\n",
               strsignal(signal), flags.drain_s);
  served.server->Drain();
  served.engine->Drain(static_cast<int64_t>(flags.drain_s * 1e6));
  // The last bytes are in their queues; sockets that take them get a moment.
  served.service->WaitUntilDone(std::chrono::seconds(2));
  served.metrics->ForgetListeners();
  return Status();
}

// How much at a time; CLI11 needs the flags to stay where they are.
void AddLimits(CLI::App& sub, ServeFlags& flags) {
  sub.add_option("--context", flags.engine.max_context, "Tokens of one request, reply included")
      ->check(CLI::Range(16, 1 << 27));
  sub.add_option("--max-sequences", flags.engine.max_sequences, "Running at a time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  sub.add_option("--itl-target", flags.engine.itl_target_ms,
                 "Target maximum gap between streamed tokens, in ms")
      ->check(CLI::Range(1.0, 60000.0))
      ->capture_default_str();
  sub.add_option("--max-queued", flags.engine.max_queued,
                 "Requests that wait at a time; those beyond are refused, with the time to wait")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  sub.add_option("--max-connections", flags.http.max_connections, "Open at a time")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  sub.add_option("--max-connections-per-peer", flags.http.max_connections_per_peer,
                 "Open at a time from one address; a proxy in front needs more")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
}

}  // namespace

void AddServe(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* sub = app.add_subcommand("serve", "Serve a model over HTTP, as OpenAI's API");
  sub->add_option("--model", flags->model, "Model file or directory")->required();
  sub->add_option("--name", flags->name, "What clients call it; default the file's name");
  flags->http.port = 8080;
  sub->add_option("--host", flags->http.host, "Address; beyond loopback only with --keys")
      ->capture_default_str();
  sub->add_option("--port", flags->http.port, "0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  sub->add_option("--unix", flags->http.unix_path, "A local socket instead of a port");
  sub->add_option("--keys", flags->keys_path, "File of API keys, see `hearth key`");
  sub->add_option("--host-name", flags->guard.hosts, "A name clients use for this machine");
  sub->add_option("--allow-origin", flags->guard.origins, "Allowed browser origin");
  sub->add_option("--tls-certificate", flags->certificate, "PEM, with its chain");
  sub->add_option("--tls-key", flags->private_key, "PEM");
  sub->add_option(
         "--control-port", flags->control_port,
         "Port on 127.0.0.1 for /livez, /readyz, /metrics and /status without keys; 0: any "
         "free one")
      ->check(CLI::Range(0, 65535));
  sub->add_option("--log", flags->log_path,
                  "File for a line of JSON per request, without its text; - for stderr");
  sub->add_option("--responses", flags->responses_path,
                  "File that stored responses are kept in; default memory");
  const std::map<std::string, Neutralise> neutralise{
      {"none", Neutralise::kNone}, {"headers", Neutralise::kHeaders}, {"all", Neutralise::kAll}};
  sub->add_option(
         "--neutralise", flags->neutralise,
         "Take out of system prompts' heads what changes with every request and would defeat "
         "the cache: none, headers (default) or all; replies say x-hearth-neutralised")
      ->transform(CLI::CheckedTransformer(neutralise));
  sub->add_option("--date", flags->date, "YYYY-MM-DD the model is told; none unless given");
  AddLimits(*sub, *flags);
  sub->add_option("--drain", flags->drain_s, "Seconds that running replies get at the end")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  sub->add_option("--isa", flags->engine.cpu.isa, "scalar, avx2, avx512 or amx; default the best");
  sub->add_option("--threads", flags->engine.cpu.num_threads, "Default: one per core allowed")
      ->check(CLI::Range(1, 1024));
  sub->callback([&chosen, flags] { chosen = [flags] { return Serve(*flags); }; });
}

}  // namespace hearth
