// SPDX-License-Identifier: Apache-2.0
#include "fleet/haproxy.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>

#include "base/mix.h"

namespace hearth {
namespace {

constexpr int kRingIds = 1 << 30;

// HAProxy reads its file word by word: what could be two words, a quote or a comment is refused.
bool IsPlainWord(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("*.:-_[]/+@").find(c) != std::string_view::npos;
  });
}

bool ParsePort(std::string_view text, int& port) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, port);
  return error == std::errc() && rest == end && port >= 1 && port <= 65535;
}

bool HasPort(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  return colon != std::string::npos && colon > 0 &&
         ParsePort(std::string_view(address).substr(colon + 1), port);
}

Status CheckWords(const FleetSpec& spec) {
  if (spec.replicas.empty()) {
    return Error(Code::kInvalid, "--replicas: expected at least one, such as 10.0.0.1:8080");
  }
  for (const std::string* address : {&spec.listen, &spec.stats}) {
    if (IsPlainWord(*address) && HasPort(*address)) continue;
    return Error(Code::kInvalid, "expected an address and a port such as *:8080, found %s",
                 Quoted(*address).c_str());
  }
  if (!spec.certificate.empty() && !IsPlainWord(spec.certificate)) {
    return Error(Code::kInvalid, "--certificate: HAProxy cannot read a path such as %s",
                 Quoted(spec.certificate).c_str());
  }
  std::set<std::string> seen;
  for (const FleetReplica& replica : spec.replicas) {
    if (!seen.insert(replica.address).second) {
      return Error(Code::kInvalid, "--replicas: %s is given twice",
                   Quoted(replica.address).c_str());
    }
  }
  return Status();
}

std::string Seconds(double s) { return Printf("%.0fms", std::ceil(s * 1000)); }

std::string Head(const FleetSpec& spec) {
  return Printf(R"(# Made by `hearth fleet haproxy`: make it anew rather than edit it.
global
  maxconn %d
  # Where the session key is looked for, and what can be sent again to another replica, is the part of
  # a request that fits in here. Every busy connection holds two.
  tune.bufsize 65536
  hard-stop-after 15m

defaults
  mode http
  timeout connect 2s
  timeout check 2s
  timeout http-request 30s
  timeout http-keep-alive 60s
  timeout client %s
  timeout server %s
  timeout queue %s
  # Tokens leave as they come, not when a packet is full; and a machine that is gone is noticed, which
  # a stream without traffic would not show.
  option http-no-delay
  option clitcpka
  option srvtcpka
  clitcpka-idle 20s
  clitcpka-intvl 5s
  clitcpka-cnt 4
  srvtcpka-idle 10s
  srvtcpka-intvl 3s
  srvtcpka-cnt 4
  # Only before the first byte of an answer: a stream's head leaves the replica at once.
  retries 3
  option redispatch 1
  retry-on conn-failure empty-response 503
)",
                spec.max_connections, Seconds(spec.reply_s).c_str(), Seconds(spec.reply_s).c_str(),
                Seconds(spec.queue_s).c_str());
}

// In the form of the API, for its clients.
std::string Errors() {
  const auto error = [](int status, const char* code, const char* message, int retry_s) {
    return Printf(
        "  http-error status %d content-type application/json string "
        "'{\"error\":{\"message\":\"%s\",\"type\":\"server_error\",\"param\":null,\"code\":\"%s\"}}"
        "'"
        " hdr retry-after %d\n",
        status, message, code, retry_s);
  };
  return error(502, "replica_failed", "the replica failed before it answered", 1) +
         error(503, "overloaded", "no replica can take the request now", 5) +
         error(504, "replica_timeout", "the replica did not answer in time", 5);
}

// The key of a conversation, as src/server/turns/session_key.h says; replicas repeat it to clients.
constexpr const char* kSessionKey = R"(
  option http-buffer-request
  acl has_key var(txn.key) -m found
  http-request set-var(txn.key) req.hdr(x-session-affinity)
  http-request set-var(txn.key) req.body,json_query('$.prompt_cache_key') if !has_key
  http-request set-var(txn.key) req.body,json_query('$.user') if !has_key
  # The first two messages, or the first alone if it is the user's.
  http-request set-var(txn.role) req.body,json_query('$.messages[0].role')
  http-request set-var(txn.second) req.body,json_query('$.messages[1].content') if !{ var(txn.role) -m str user }
  http-request set-var(txn.key) req.body,json_query('$.messages[0].content'),concat(|,txn.second,) if !has_key
  http-request set-var(txn.key) req.body,json_query('$.prompt') if !has_key
  http-request set-var(txn.key) rand(1000000000) if !has_key
  # Hashed: what somebody wrote does not belong into headers.
  http-request set-header x-session-affinity %[var(txn.key),xxh3] if !{ req.hdr(x-session-affinity) -m found }
)";

std::string Front(const FleetSpec& spec) {
  std::string tls;
  if (!spec.certificate.empty()) tls = " ssl crt " + spec.certificate + " alpn h2,http/1.1";
  const char* const where = spec.has_shared_batches
                                ? "Files and batch jobs are in a database of all replicas"
                                : "Files and batch jobs are on one machine's disk";
  return "\nfrontend api\n  bind " + spec.listen + tls + "\n" + Errors() + kSessionKey + "\n  # " +
         where + R"(; what makes something is not sent twice.
  acl is_batch path_beg /v1/files /v1/batches
  http-request disable-l7-retry if is_batch
  use_backend batch if is_batch
  default_backend replicas
)";
}

std::string ServerLine(const FleetReplica& replica, int id) {
  std::string line = "  server " + replica.address + " " + replica.address;
  line += Printf(" id %d", id);
  if (replica.agent_port > 0) line += Printf(" agent-check agent-port %d", replica.agent_port);
  return line + "\n";
}

// An id for every replica, each its address's own unless two meet, which is one case in millions.
std::vector<int> RingIds(const std::vector<FleetReplica>& replicas) {
  std::vector<int> ids;
  std::set<int> taken;
  for (const FleetReplica& replica : replicas) {
    int id = RingId(replica.address);
    while (!taken.insert(id).second) id = id % kRingIds + 1;
    ids.push_back(id);
  }
  return ids;
}

std::string Replicas(const FleetSpec& spec) {
  std::string out = "\nbackend replicas\n";
  switch (spec.balance) {
    case FleetBalance::kSession:
      out += "  balance hdr(x-session-affinity)\n  hash-type consistent sdbm avalanche\n";
      if (spec.bounded_load > 0) out += Printf("  hash-balance-factor %d\n", spec.bounded_load);
      break;
    case FleetBalance::kRoundRobin:
      out += "  balance roundrobin\n";
      break;
    case FleetBalance::kLeast:
      out += "  balance leastconn\n";
      break;
  }
  out += "  option httpchk GET /readyz\n  http-check expect status 200\n" + Errors();
  out += Printf(
      "  default-server weight 100 check inter 1s fastinter 250ms downinter 500ms fall 2 rise 1"
      " agent-inter 1s maxconn 256 maxqueue %d observe layer4 error-limit 1 on-error fail-check\n",
      spec.max_queued);
  const std::vector<int> ids = RingIds(spec.replicas);
  for (size_t i = 0; i < spec.replicas.size(); ++i) out += ServerLine(spec.replicas[i], ids[i]);
  return out;
}

std::string Batch(const FleetSpec& spec) {
  std::string out = "\nbackend batch\n" + Errors();
  if (!spec.has_shared_batches) {
    const std::string& first = spec.replicas[0].address;
    return out + "  server " + first + " " + first + " maxconn 32\n";
  }
  out += "  balance leastconn\n";
  for (const FleetReplica& replica : spec.replicas) {
    // Checked once: this backend goes by what the other found.
    out += "  server " + replica.address + " " + replica.address + " maxconn 32 track replicas/" +
           replica.address + "\n";
  }
  return out;
}

std::string Stats(const FleetSpec& spec) {
  return "\nfrontend stats\n  bind " + spec.stats + R"(
  http-request use-service prometheus-exporter if { path /metrics }
  stats enable
  stats uri /
)";
}

}  // namespace

Result<FleetReplica> ParseReplica(const std::string& text, int agent_port) {
  FleetReplica replica{text, agent_port};
  const size_t at = text.find('@');
  bool is_right = true;
  if (at != std::string::npos) {
    replica.address = text.substr(0, at);
    is_right = ParsePort(std::string_view(text).substr(at + 1), replica.agent_port);
  }
  if (is_right && IsPlainWord(replica.address) && HasPort(replica.address) &&
      replica.address.find_first_of("*/@") == std::string::npos) {
    return replica;
  }
  return Error(Code::kInvalid,
               "--replicas: expected HOST:PORT or HOST:PORT@AGENTPORT such as 10.0.0.1:8080, "
               "found %s",
               Quoted(text).c_str());
}

int RingId(const std::string& address) {
  uint64_t hash = kGoldenRatio;
  for (const char c : address) hash = MixBits(hash ^ static_cast<unsigned char>(c));
  return static_cast<int>(hash % kRingIds) + 1;
}

Result<std::string> HaproxyConfig(const FleetSpec& spec) {
  HEARTH_TRY(CheckWords(spec));
  return Head(spec) + Front(spec) + Replicas(spec) + Batch(spec) + Stats(spec);
}

}  // namespace hearth
