// SPDX-License-Identifier: Apache-2.0
#include "app/serve_flags.h"

#include <CLI/CLI.hpp>
#include <map>

#include "app/backends.h"
#include "app/compute_flags.h"
#include "app/device_flag.h"
#include "app/flag_checks.h"
#include "app/kv_flag.h"
#include "app/numa_flag.h"
#include "app/numerics_flag.h"

namespace hearth {
namespace {

// How much at a time.
void AddLimits(CLI::App& sub, ServeFlags& flags) {
  sub.add_option("--context", flags.engine.max_context,
                 "Maximum length of a request and its reply together, in tokens")
      ->check(Between(16, 1 << 27));
  sub.add_option("--kv-memory", flags.engine.kv_bytes,
                 "Maximum memory for the KV cache, such as 4GiB; default: half of what the weights "
                 "leave of the usable memory; with several models, for each: a quarter of its "
                 "weights, at least 256 MiB")
      ->option_text("SIZE")
      ->transform(Size());
  AddKvType(sub, flags.engine.hardware.kv_code);
  AddNumerics(sub, flags.engine.hardware.numerics);
  sub.add_option("--max-sequences", flags.engine.max_sequences,
                 "Maximum number of sequences running at a time")
      ->check(Between(1, 256))
      ->capture_default_str();
  sub.add_option("--itl-target", flags.engine.itl_target_ms,
                 "Target maximum gap between streamed tokens, in ms")
      ->check(Between(1.0, 60000.0))
      ->capture_default_str();
  sub.add_option(
         "--max-queued", flags.engine.max_queued,
         "Maximum number of queued requests; further ones are rejected with a Retry-After header")
      ->check(Between(1, 1 << 20))
      ->capture_default_str();
  const std::map<std::string, int> statuses{{"429", 429}, {"503", 503}, {"529", 529}};
  sub.add_option("--overload-status", flags.overload_status,
                 "HTTP status of requests that are rejected because the queue is full: 429, 503 "
                 "(balancers then try another replica) or 529; default: 429")
      ->type_name("STATUS")
      ->transform(NamedValue(statuses));
  sub.add_option("--request-memory", flags.request_bytes,
                 "Maximum memory for bodies, queued prompts and unread replies, half of it for one "
                 "client; default: an eighth of the usable memory, at most 256MiB")
      ->option_text("SIZE")
      ->transform(Size());
  sub.add_option("--max-connections", flags.http.max_connections,
                 "Maximum number of open connections")
      ->check(Between(1, 1 << 20))
      ->capture_default_str();
  sub.add_option("--max-connections-per-peer", flags.http.max_connections_per_peer,
                 "Maximum number of open connections per client address; raise it behind a proxy")
      ->check(Between(1, 1 << 20))
      ->capture_default_str();
}

// What computes, and where.
void AddHardware(CLI::App& sub, BackendFlags& hardware) {
  AddDevice(sub, hardware.device);
  AddIsa(sub, hardware);
  AddThreads(sub, hardware);
  AddNuma(sub, hardware.numa_nodes);
  AddPaging(sub, hardware.paging);
  AddWeights(sub, hardware);
}

// What becomes of requests before the model sees them.
void AddRequestOptions(CLI::App& sub, ServeFlags& flags) {
  sub.add_option("--served-name", flags.served_names,
                 "Further model name that requests may use; may be given several times; '*': any "
                 "name. Replies name the model by its --name")
      ->option_text("NAME ...");
  const std::map<std::string, Neutralise> neutralise{
      {"none", Neutralise::kNone}, {"headers", Neutralise::kHeaders}, {"all", Neutralise::kAll}};
  sub.add_option(
         "--neutralise", flags.neutralise,
         "Which volatile lines to strip from the start of system prompts so that they can be "
         "cached; default: headers. The reply header x-hearth-neutralised names what was stripped")
      ->type_name("MODE")
      ->transform(NamedValue(neutralise));
  const std::map<std::string, UnknownFields> unknown{{"refuse", UnknownFields::kRefuse},
                                                     {"warn", UnknownFields::kWarn}};
  sub.add_option("--unknown-fields", flags.unknown_fields,
                 "What to do with request fields that this server does not know: refuse the "
                 "request, or warn: ignore them and name them in the reply header "
                 "x-hearth-ignored-fields and the log; default: refuse")
      ->type_name("MODE")
      ->transform(NamedValue(unknown));
  AddBatchOptions(sub, flags.batches);
  sub.add_option("--date", flags.date,
                 "Current date to put into the prompt, YYYY-MM-DD; default: none")
      ->check(Date());
}

// What the NVIDIA driver opens and calls is not known here yet, and the memory of several models is
// counted in host memory.
Status CheckDevice(const ServeFlags& flags) {
  const std::string& device = flags.engine.hardware.device;
  if (IsHost(device)) return Status();
  if (!flags.has_one()) {
    return Error(Code::kUnsupported, "--device %s serves one model at a time; name one",
                 Quoted(device).c_str());
  }
  if (flags.confine == ConfineMode::kOff) return Status();
  return Error(Code::kUnsupported,
               "--device %s needs --confine off: the confinement does not know yet what the NVIDIA "
               "driver has to open",
               Quoted(device).c_str());
}

}  // namespace

Status CheckFlags(const ServeFlags& flags) {
  HEARTH_TRY(CheckDevice(flags));
  if (!flags.engine.hardware.weights.empty() && !flags.has_one()) {
    return Error(Code::kUnsupported,
                 "--weights serves one model at a time; run `hearth quantize` on each, and serve "
                 "what it wrote");
  }
  if (flags.certificate.empty() != flags.private_key.empty()) {
    return Error(Code::kInvalid,
                 "--tls-certificate and --tls-key go together: expected both, found one");
  }
  for (const std::string& name : flags.served_names) {
    HEARTH_TRY(CheckServedName(name).Within("--served-name"));
  }
  if (!flags.has_one() && (!flags.name.empty() || !flags.served_names.empty())) {
    return Error(Code::kInvalid,
                 "--name and --served-name are for a server with one model; for several use "
                 "--model-setting NAME.served-name=OTHER");
  }
  const std::string& host = flags.http.host;
  if (!flags.keys_path.empty() || !flags.http.unix_path.empty() || IsLoopback(host) ||
      host == "localhost") {
    return Status();
  }
  return Error(Code::kInvalid,
               "%s can be reached from other machines: make keys with `hearth key` and pass their "
               "file with --keys, or listen on 127.0.0.1",
               flags.http.host.c_str());
}

void AddServeOptions(CLI::App& sub, ServeFlags& flags) {
  sub.add_option("--model,model", flags.models,
                 "Model file or directory, or a name that `hearth list` shows. One: it is loaded "
                 "and stays. Several, or none for all that `hearth list` shows: they are loaded "
                 "when requests ask for them")
      ->option_text("MODEL ...");
  AddOfferFlags(sub, flags.offers);
  sub.add_option("--name", flags.name,
                 "Model name in the API; default: the name given, or the file's");
  flags.http.port = 8080;
  sub.add_option("--host", flags.http.host, "Address to listen on; any but loopback needs --keys")
      ->capture_default_str();
  sub.add_option("--port", flags.http.port, "Port to listen on; 0: any free port")
      ->check(Between(0, 65535))
      ->capture_default_str();
  sub.add_option("--unix", flags.http.unix_path, "Unix socket to listen on instead of a port");
  sub.add_option("--keys", flags.keys_path, "File of API keys; see `hearth key`");
  sub.add_option("--host-name", flags.guard.hosts,
                 "Additional host name that requests may name in their Host header");
  sub.add_option("--allow-origin", flags.guard.origins,
                 "Origin of a web page whose scripts may use this server, such as "
                 "http://localhost:3000; may be given several times");
  sub.add_option("--tls-certificate", flags.certificate, "TLS certificate chain (PEM file)");
  sub.add_option("--tls-key", flags.private_key, "Private key of the TLS certificate (PEM file)");
  sub.add_option("--control-port", flags.control_port,
                 "Port on 127.0.0.1 for /livez, /readyz, /metrics and /status without keys; 0: "
                 "any free port")
      ->check(Between(0, 65535));
  sub.add_flag(
      "--public-metrics", flags.public_metrics,
      "Let whoever reaches the port read /metrics without a key, names of keys included: for "
      "endpoint pickers, which have none");
  sub.add_option(
      "--log", flags.log_path,
      "File for the request log, one line of JSON per request without its text; -: standard error");
  sub.add_flag(
      "--quiet", flags.is_quiet,
      "On a terminal, do not print a line per request; --log replaces these lines as well");
  sub.add_option("--trace-endpoint", flags.trace_url,
                 "URL of an OpenTelemetry collector (OTLP over HTTP) to send a trace of each "
                 "request to, such as http://127.0.0.1:4318; default: no traces");
  sub.add_option("--trace-sample", flags.trace_share,
                 "Share of the requests to trace that bring no traceparent header of their own")
      ->check(Between(0.0, 1.0))
      ->capture_default_str();
  AddConfine(sub, flags.confine);
  sub.add_option("--responses", flags.responses_path,
                 "File for stored responses; default: kept in memory");
  AddRequestOptions(sub, flags);
  AddLimits(sub, flags);
  AddCacheOptions(sub, flags.engine.cache);
  AddLifeOptions(sub, flags.life);
  AddAgentOptions(sub, flags.agent);
  AddEventOptions(sub, flags.events);
  sub.add_option("--drain", flags.drain_s,
                 "Time that running replies get to finish at shutdown, in seconds")
      ->check(Between(0.0, 3600.0))
      ->capture_default_str();
  AddHardware(sub, flags.engine.hardware);
}

}  // namespace hearth
