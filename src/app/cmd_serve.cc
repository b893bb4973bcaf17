// SPDX-License-Identifier: Apache-2.0
// hearth serve: the model behind the API that clients already speak.
#include <unistd.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>

#include "app/agent_check.h"
#include "app/commands.h"
#include "app/config.h"
#include "app/confine_serve.h"
#include "app/live_keys.h"
#include "app/memory_return.h"
#include "app/model_argument.h"
#include "app/model_offers.h"
#include "app/open_accounts.h"
#include "app/open_batches.h"
#include "app/open_journal.h"
#include "app/paging.h"
#include "app/secret_files.h"
#include "app/serve_flags.h"
#include "app/serve_life.h"
#include "app/serve_reload.h"
#include "app/served_parts.h"
#include "app/server_memory.h"
#include "backend/numerics.h"
#include "base/terminal.h"
#include "http/http_server.h"
#include "late/late.h"
#include "platform/file.h"
#include "platform/isa.h"
#include "platform/memory.h"
#include "platform/usage.h"
#include "server/access/guard.h"
#include "server/access/keys.h"
#include "server/all_dialects.h"
#include "server/api_router.h"
#include "server/observe/health_routes.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/observe/status_route.h"
#include "server/turns/api_error.h"
#include "server/turns/turn_service.h"
#include "server/ui/page_files.h"
#include "supervise/worker_seat.h"
#include "trace/exporter.h"
#include "trace/tracer.h"

namespace hearth {
namespace {

HttpOptions OptionsOf(const ServeFlags& flags) {
  HttpOptions options = flags.http;
  if (options.host == "localhost") options.host = "127.0.0.1";
  if (!flags.certificate.empty()) options.tls = TlsFiles{flags.certificate, flags.private_key};
  return options;
}

HttpOptions ControlOptionsOf(const ServeFlags& flags) {
  HttpOptions options;
  options.port = static_cast<uint16_t>(flags.control_port);
  return options;
}

// A port that is taken or a certificate that is none is told before gigabytes are loaded.
Status TryListening(const ServeFlags& flags, const ServeLife& life) {
  HttpOptions api = OptionsOf(flags);
  api.listener = life.listener(ServeLife::Door::kApi);
  HEARTH_TRY(HttpServer::TryListening(std::move(api)));
  if (flags.control_port <= 0 || life.listener(ServeLife::Door::kControl) >= 0) return Status();
  return HttpServer::TryListening(ControlOptionsOf(flags));
}

// What is served, in the order it must go away: the last first.
struct Served {
  explicit Served(ServeLife& l) : life(l) {}
  ServeLife& life;
  LiveKeys keys;
  RateLimiter limiter;
  std::unique_ptr<Accounts> accounts;
  std::unique_ptr<MemoryReturn> memory;
  std::unique_ptr<ServerMetrics> metrics;
  std::unique_ptr<RequestLog> log;
  SteadyClock clock;
  std::unique_ptr<TraceExporter> exporter;
  std::unique_ptr<Tracer> tracer;
  std::unique_ptr<TurnObserver> ends;
  std::unique_ptr<ZmqPublisher> events;  // null: nobody is told; before the engine that tells it
  // Either one model, or several.
  std::unique_ptr<LoadedModel> model;
  std::unique_ptr<OfferOpener> opener;
  std::unique_ptr<ModelHost> models;
  std::unique_ptr<ResponseStore> responses;
  std::unique_ptr<TurnService> service;
  std::unique_ptr<BatchOffice> batches;  // null: not set up
  std::unique_ptr<HttpServer> server, control;
  std::unique_ptr<AgentCheck> agent;

  SnapshotSource snapshot() const {
    if (model != nullptr) return model->engine();
    return [host = models.get()] { return host->snapshot(); };
  }
};

ServedSpec SpecOf(const ServeFlags& flags) {
  ServedSpec spec;
  spec.aliases = flags.served_names;
  spec.date = flags.date;
  spec.engine = flags.engine;
  spec.engine.stall_s = flags.life.stall_s / 2;
  spec.engine.reserves_kv = flags.life.reserves_kv;
  spec.engine.hardware.beside_bytes =
      ServerMemoryBytes(flags.request_bytes, flags.engine.hardware.num_threads);
  return spec;
}

// One model is offered too: under the name it was called by, else the file's.
Result<Offers> OffersOf(const ServeFlags& flags) {
  if (!flags.has_one()) {
    return FindOffers(flags.models, flags.offers, SpecOf(flags), ProcessEnvironment());
  }
  HEARTH_ASSIGN(const ModelArgument found, FindModelArgument(flags.models.front()));
  ServedSpec spec = SpecOf(flags);
  spec.path = found.path;
  spec.name = flags.name.empty() ? found.name : flags.name;
  if (spec.name.empty()) spec.name = std::filesystem::path(found.path).stem().string();
  HEARTH_TRY(ApplySettings(flags.offers, spec));
  Offers offers;
  offers.specs.push_back(std::move(spec));
  return offers;
}

// Of several those that are pinned are loaded now, the others when somebody asks.
Status OpenModels(const ServeFlags& flags, const Offers& offers, Served& served) {
  if (flags.has_one()) {
    ServedSpec spec = offers.specs.front();
    if (served.events != nullptr) spec.engine.watch = &served.events->watch();
    HEARTH_ASSIGN(served.model, OpenServed(spec));
    return Status();
  }
  served.opener = std::make_unique<OfferOpener>(offers.specs, offers.host.budget_bytes);
  served.models = std::make_unique<ModelHost>(offers.models, *served.opener, offers.host);
  return served.models->WaitForPinned();
}

std::string DescribeRefusal(const PathBeginnings& beginnings, const HttpRefusal& refusal) {
  ApiError error;
  error.status = refusal.status;
  error.message = refusal.message;
  if (refusal.status == 429) error.type = "rate_limit_error";
  if (refusal.status == 503) error.type = "server_error";
  if (refusal.status == 429 || refusal.status == 503) error.code = "overloaded";
  if (refusal.status == 401) error.type = "authentication_error";
  if (refusal.status == 401) error.code = "invalid_api_key";
  return DescribeErrorAt(beginnings, refusal.path, error);
}

// Sockets must not take the descriptors that files, logs and stored responses need.
int ConnectionsWithin(int64_t file_limit, int wanted) {
  constexpr int64_t kReserved = 256;
  const auto room = static_cast<int>(std::max<int64_t>(1, file_limit - kReserved));
  if (room < wanted) {
    PrintError(
        "warning: limited to %d connections, because this process may open %lld files "
        "(ulimit -n)\n",
        room, static_cast<long long>(file_limit));
  }
  return std::min(room, wanted);
}

Status Listen(const ServeFlags& flags, Served& served) {
  // Without keys everybody here is one tenant, who may see what the tenant is doing.
  const Auth status_auth = flags.keys_path.empty() ? Auth::kKey : Auth::kAdmin;
  const Dialects dialects = AllDialects(*served.responses, status_auth, served.batches.get());
  Router router = ApiRouter({served.snapshot(), *served.metrics, *served.service, dialects,
                             status_auth, served.life.notes(), flags.public_metrics});
  if (served.batches != nullptr) {
    StartBatches(*served.batches, *served.service, dialects, served.snapshot());
  }
  HttpOptions options = OptionsOf(flags);
  options.listener = served.life.listener(ServeLife::Door::kApi);
  options.max_connections = ConnectionsWithin(RaiseFileLimit(), flags.http.max_connections);
  GuardPolicy policy = flags.guard;
  policy.needs_key = !flags.keys_path.empty();
  options.authorize = [policy, &keys = served.keys](HttpRequest& request, Auth auth) {
    return Guard(request, auth, policy, keys.get().get());
  };
  options.budget = served.accounts.get();
  options.describe_refusal = [beginnings = BeginningsOf(dialects)](const HttpRefusal& refusal) {
    return DescribeRefusal(beginnings, refusal);
  };
  if (!policy.origins.empty()) {
    AddPreflights(router);
    options.answer_headers = [policy](const HttpRequest& request) {
      return OriginHeaders(request, policy);
    };
  }
  HEARTH_ASSIGN(served.server, HttpServer::Listen(std::move(options), std::move(router)));
  return Status();
}

// Health and metrics for this machine alone, on a thread that serves nothing else: it answers
// whatever the other connections and the engine are doing.
Status ListenForControl(const ServeFlags& flags, Served& served) {
  served.metrics->WatchStore([&store = *served.responses] { return store.counts(); });
  if (served.models != nullptr) {
    served.metrics->WatchModels([&models = *served.models] { return models.counts(); });
  }
  if (served.events != nullptr) WatchEvents(*served.events, *served.metrics);
  if (served.batches != nullptr) WatchBatches(*served.batches, *served.metrics);
  served.metrics->AddListener("api", [&server = *served.server] { return server.counts(); });
  if (flags.control_port < 0) return Status();
  Router router;
  AddHealthRoutes(served.snapshot(), router, served.life.notes());
  AddMetricsRoute(served.snapshot(), *served.metrics, Auth::kAdmin, router);
  AddStatusRoute(served.snapshot(), *served.service, *served.metrics, Auth::kAdmin, router);
  HttpOptions options = ControlOptionsOf(flags);
  options.listener = served.life.listener(ServeLife::Door::kControl);
  // Whoever can reach it may ask; web pages of other hosts cannot.
  options.authorize = [policy = flags.guard](HttpRequest& request, Auth) {
    return Guard(request, Auth::kPublic, policy, nullptr);
  };
  options.describe_refusal = [](const HttpRefusal& refusal) {
    return DescribeRefusal({}, refusal);
  };
  HEARTH_ASSIGN(served.control, HttpServer::Listen(std::move(options), std::move(router)));
  served.metrics->AddListener("control", [&server = *served.control] { return server.counts(); });
  PrintError("control on http://127.0.0.1:%d\n", served.control->port());
  return Status();
}

void OpenTraces(const ServeFlags& flags, Served& served) {
  if (flags.trace_url.empty()) return;
  ExporterOptions options;
  options.url = flags.trace_url;
  options.resource = {{"service.name", "hearth"}, {"service.version", HEARTH_VERSION}};
  options.version = HEARTH_VERSION;
  served.exporter = std::make_unique<TraceExporter>(std::move(options));
  served.tracer =
      std::make_unique<Tracer>(*served.exporter, flags.trace_share, served.clock, served.log.get());
  served.metrics->WatchTraces([&exporter = *served.exporter] {
    const ExportCounts counts = exporter.counts();
    return ServerMetrics::TraceCounts{counts.sent, counts.dropped};
  });
}

void WatchPaging(const std::shared_ptr<PagingMeter>& meter, ServerMetrics& metrics) {
  metrics.WatchPaging([meter] {
    const PagingCounts counts = meter->get();
    return PagingState{.experts = counts.experts,
                       .frames = counts.frames,
                       .expert_bytes = counts.expert_bytes,
                       .resident_bytes = counts.resident_bytes,
                       .most_bytes = counts.most_bytes,
                       .needed = counts.needed,
                       .hits = counts.hits,
                       .ahead_hits = counts.ahead_hits,
                       .bytes_read = counts.bytes_read,
                       .errors = counts.errors,
                       .read_s = static_cast<double>(counts.read_ns) * 1e-9,
                       .waited_s = static_cast<double>(counts.waited_ns) * 1e-9};
  });
}

// What watches the service; made before it.
Result<ServiceOptions> OpenWatchers(const ServeFlags& flags, Served& served) {
  HEARTH_ASSIGN(const BackendOptions hardware, OptionsFrom(flags.engine.hardware));
  MetricFacts facts{
      HEARTH_VERSION,     hardware.isa, NumericsNameOf(flags.engine.hardware), "several", 0,
      served.life.facts()};
  if (served.model != nullptr) {
    facts.model = served.model->model().name;
    facts.max_context = served.model->model().max_context;
  }
  served.metrics = std::make_unique<ServerMetrics>(std::move(facts));
  served.metrics->WatchAccounts(*served.accounts);
  WatchPaging(flags.engine.hardware.paging.meter, *served.metrics);
  ServiceOptions options;
  options.flights = served.life.flights();
  options.neutralise = flags.neutralise;
  options.unknown_fields = flags.unknown_fields;
  options.overload_status = flags.overload_status;
  OpenedJournal opened = OpenJournal(flags.engine.cache, served.life.secret());
  if (opened.secrets) options.secrets.emplace(*opened.secrets);
  options.journal = std::move(opened.journal);
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
  } else if (!flags.is_quiet && isatty(STDERR_FILENO) != 0) {
    HEARTH_ASSIGN(served.log, RequestLog::Open("-", RequestLog::Form::kLine));
  }
  if (served.log != nullptr) {
    served.metrics->WatchLog([&log = *served.log] { return log.num_lost(); });
    if (served.life.facts().num_restarts > 0) served.log->TellRestart(served.life.facts());
  }
  OpenTraces(flags, served);
  TurnObserver* next = served.log.get();
  if (served.tracer != nullptr) next = served.tracer.get();
  served.ends = served.metrics->CountEnds(next);
  options.observer = served.ends.get();
  return options;
}

void SayWhere(const ServeFlags& flags, const Served& served) {
  std::string what, more;
  if (served.model != nullptr) {
    what = served.model->model().name;
    more = fmt::format(", {} tokens of context", served.model->model().max_context);
  } else {
    const HostCounts counts = served.models->counts();
    what = fmt::format("{} model{}", counts.models.size(), counts.models.size() == 1 ? "" : "s");
    more = fmt::format(", {:.2f} GiB for all of them; GET /v1/models lists them",
                       InGib(counts.budget_bytes));
  }
  if (!flags.http.unix_path.empty()) {
    PrintError("%s at %s\n", what.c_str(), flags.http.unix_path.c_str());
    return;
  }
  const char* scheme = flags.certificate.empty() ? "http" : "https";
  PrintError("%s at %s://%s:%d/v1%s\n", what.c_str(), scheme, flags.http.host.c_str(),
             served.server->port(), more.c_str());
  if (PageFiles().empty()) return;
  PrintError("web page at %s://%s:%d/\n", scheme, flags.http.host.c_str(), served.server->port());
}

// What has a mistake in it changes nothing.
void Reload(const ServeFlags& flags, Served& served) {
  if (!flags.keys_path.empty()) SayReloaded("keys", served.keys.Load(flags.keys_path));
  if (!flags.certificate.empty()) SayReloaded("certificates", served.server->ReloadTls());
  const bool has_file = !flags.log_path.empty() && flags.log_path != "-";
  if (served.log != nullptr && has_file) SayReopened("log", served.log->Reopen());
}

// Until the signal that ends the program.
int WaitForEnd(const ServeFlags& flags, Served& served) {
  while (true) {
    int signal = 0;
    sigwait(&served.life.signals(), &signal);
    if (signal != SIGHUP) return signal;
    Reload(flags, served);
  }
}

// What runs gets its time, then nothing asks what goes away.
void Finish(const ServeFlags& flags, Served& served) {
  if (served.batches != nullptr) served.batches->Stop();
  served.server->Drain();
  const auto bound_us = static_cast<int64_t>(flags.drain_s * 1e6);
  if (served.model != nullptr) served.model->engine().Drain(bound_us);
  if (served.models != nullptr) served.models->Drain(bound_us);
  // The last bytes are in their queues; sockets that take them get a moment.
  served.service->WaitUntilDone(std::chrono::seconds(2));
  TellPaging(*flags.engine.hardware.paging.meter);
  served.metrics->ForgetListeners();
}

ServePaths PathsOf(const ServeFlags& flags, const Offers& offers) {
  ServePaths paths;
  for (const ServedSpec& spec : offers.specs) paths.models.push_back(spec.path);
  paths.keys = flags.keys_path;
  paths.certificate = flags.certificate;
  paths.private_key = flags.private_key;
  paths.responses = flags.responses_path;
  if (!flags.batches.is_remote()) paths.batches = flags.batches.path;
  paths.log = flags.log_path;
  paths.unix_socket = flags.http.unix_path;
  paths.state = CacheFolders(flags.engine.cache);
  paths.folders = CacheReads(flags.engine.cache);
  if (!flags.trace_url.empty() || flags.batches.is_remote()) {  // for their names
    for (const char* file : {"/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf"}) {
      paths.folders.push_back(file);
    }
  }
  return paths;
}

// Alone it opens its sockets itself, when its threads are there.
bool OpensLowPort(const ServeFlags& flags, const ServeLife& life) {
  const auto is_low = [](int port) { return port > 0 && port < 1024; };
  return life.listener(ServeLife::Door::kApi) < 0 &&
         (is_low(flags.http.port) || is_low(flags.control_port));
}

// What a confined server could not load any more, and then what it may open.
Status Narrow(const ServeFlags& flags, const Offers& offers, const ServeLife& life) {
  if (!flags.trace_url.empty()) HEARTH_TRY(LoadCurl().Within("--trace-endpoint"));
  if (flags.batches.is_remote()) HEARTH_TRY(LoadLibpq().Within("--batches"));
  if (!flags.events.address.empty()) HEARTH_TRY(LoadZmq().Within("--kv-events"));
  return ConfineFiles(flags.confine, PathsOf(flags, offers), OpensLowPort(flags, life));
}

Status Serve(ServeFlags flags) {
  SpareAddressSpace();
  HEARTH_ASSIGN(const std::unique_ptr<ServeLife> life, ServeLife::Begin(flags.life));
  HEARTH_TRY(CheckFlags(flags));
  HEARTH_TRY(CheckServerFits(SpecOf(flags).engine.hardware.beside_bytes, UsableMemoryBytes()));
  HEARTH_TRY(CheckCacheFlags(flags.engine.cache));
  if (!flags.trace_url.empty()) {
    HEARTH_ASSIGN(flags.trace_url, CheckTraceUrl(flags.trace_url));
  }
  HEARTH_TRY(HideServer(flags.confine));
  HEARTH_ASSIGN(const Offers offers, OffersOf(flags));
  Served served(*life);
  if (!flags.keys_path.empty()) HEARTH_TRY(served.keys.Load(flags.keys_path));
  if (life->is_supervisor()) {
    const HttpOptions control = ControlOptionsOf(flags);
    return life->Supervise(OptionsOf(flags), flags.control_port < 0 ? nullptr : &control,
                           flags.drain_s, [&] { return ConfineSupervisor(flags.confine); });
  }
  for (const std::string& warning : offers.warnings) PrintError("warning: %s\n", warning.c_str());
  HEARTH_TRY(Narrow(flags, offers, *life));  // before there are other threads
  life->BeginLoading();
  HEARTH_ASSIGN(served.accounts, OpenAccounts(flags.request_bytes));
  served.memory = std::make_unique<MemoryReturn>(
      [&accounts = *served.accounts] { return accounts.counts().total(); });
  HEARTH_TRY(TryListening(flags, *life));
  // Before the model, which may take a minute to load.
  HEARTH_ASSIGN(served.agent, AgentCheck::Listen(flags.agent, flags.http));
  HEARTH_ASSIGN(served.events, OpenEvents(flags.events, flags.has_one()));
  HEARTH_ASSIGN(served.responses, ResponseStore::Open(flags.responses_path));
  HEARTH_ASSIGN(served.batches, OpenBatches(flags.batches));
  HEARTH_TRY(OpenModels(flags, offers, served));
  HEARTH_ASSIGN(const ServiceOptions options, OpenWatchers(flags, served));
  served.service =
      served.model != nullptr
          ? std::make_unique<TurnService>(served.model->engine(), served.model->model(), options)
          : std::make_unique<TurnService>(*served.models, options);
  HEARTH_TRY(Listen(flags, served));
  HEARTH_TRY(ListenForControl(flags, served));
  // Connections to a shared cache, a database and a collector are made anew whenever they break.
  const bool connects =
      !flags.engine.cache.servers.empty() || !flags.trace_url.empty() || flags.batches.is_remote();
  HEARTH_TRY(ConfineCalls(flags.confine, {.may_connect = connects}));
  life->Ready([snapshot = served.snapshot()] { return snapshot()->is_stalled; });
  SayWhere(flags, served);
  if (served.agent != nullptr) served.agent->Start(served.snapshot(), *life);
  if (served.events != nullptr) {
    StartEvents(*served.events, flags.events,
                {flags.http.host, served.server->port(), served.model->model().name});
  }
  const int signal = WaitForEnd(flags, served);
  PrintError(
      "%s: shutting down; waiting up to %g s for running requests (a second signal stops "
      "them at once)\n",
      strsignal(signal), flags.life.notice_s + flags.drain_s);
  life->BeginDrain(flags.drain_s);
  Finish(flags, served);
  life->Forget();
  return Status();
}

// Said once: by the process that was started.
void WarnOfSecrets(CLI::App& root, const ServeFlags& flags) {
  if (WorkerSeat::IsOffered()) return;
  const Settings settings =
      ReadSettings(StandardSources(GivenConfig(root)), ListConfigurable(root));
  std::vector<SecretFile> files = FilesWithPasswords(settings);
  files.push_back({flags.keys_path, "API keys", ""});
  files.push_back({flags.private_key, "a private key", ""});
  const CacheFlags& cache = flags.engine.cache;
  files.push_back({cache.key_path, "the key of the caches", ""});
  if (!cache.directory.empty())
    files.push_back({cache.directory + "/key", "the key of the cache", ""});
  WarnOfExposed(files);
}

}  // namespace

void AddServe(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* sub =
      app.add_subcommand("serve", "Serve models over HTTP with the OpenAI API and others");
  AddServeOptions(*sub, *flags);
  sub->callback([&app, &chosen, flags] {
    chosen = [&app, flags] {
      WarnOfSecrets(app, *flags);
      return ExplainRefusedFile(flags->confine, Serve(*flags));
    };
  });
}

}  // namespace hearth
