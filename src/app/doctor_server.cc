// SPDX-License-Identifier: Apache-2.0
// Doctor: the configuration, and a server that may be running.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/doctor_checks.h"
#include "app/secret_files.h"
#include "base/json.h"
#include "http/authority.h"

namespace hearth {
namespace {

Finding Files(const Settings& settings) {
  if (!settings.problems.empty()) {
    return Fault(settings.problems.front(), "`hearth config check` lists all mistakes");
  }
  if (!settings.warnings.empty()) {
    return Warning(settings.warnings.front(), "`hearth config show` lists the names that exist");
  }
  if (settings.files.empty()) return Good("no configuration file");
  return Good(settings.files.front() + (settings.files.size() > 1 ? " and another" : ""));
}

Finding Secrets(const Settings& settings) {
  const std::vector<SecretFile> files = SecretFilesOf(settings);
  for (const SecretFile& file : files) {
    const Exposure found = ExposureOf(file);
    if (found.is_missing) {
      return Fault(file.origin + " names " + Quoted(file.path) + ", which is not there",
                   "make the file or correct the path");
    }
    if (!found.problem.empty()) return Warning(found.problem, found.advice);
  }
  return Good(files.empty() ? "no files with secrets are configured"
                            : Printf("%zu file%s with secrets, read by nobody else", files.size(),
                                     files.size() == 1 ? "" : "s"));
}

struct Answer {
  Status status;
  long http_status = 0;
  std::string body;
};

Answer Ask(const ServerAddress& address, const std::string& path) {
  Answer answer;
  ServerCall call(address, path, [&](std::string_view bytes, long) {
    answer.body.append(bytes);
    return answer.body.size() < (size_t{4} << 20);
  });
  call.Limit(5);
  call.Begin();
  for (int i = 0; i < 100; ++i) {
    if (std::optional<Status> ended = call.Wait({}, 100)) {
      answer.status = *ended;
      answer.http_status = call.http_status();
      return answer;
    }
  }
  answer.status = Error(Code::kIo, "%s does not answer within 5 s", call.where().c_str());
  return answer;
}

bool IsLoopback(const std::string& url) {
  const size_t scheme = url.find("://");
  if (scheme == std::string::npos) return false;
  const auto origin = ParseOrigin(url.substr(0, url.find('/', scheme + 3)));
  return origin && IsLoopbackHost(origin->authority);
}

Finding Lives(const ServerAddress& address) {
  const Answer answer = Ask(address, "/livez");
  if (!answer.status.ok() && answer.http_status == 0) {
    return Fault(answer.status.message(),
                 "is the server running, and is the address right? Start "
                 "it with `hearth serve`");
  }
  if (answer.http_status == 200) return Good("answers");
  return Fault(Printf("/livez answers %ld", answer.http_status),
               "the engine is stuck or this is another program: see the server's log, then restart "
               "it");
}

Finding Ready(const ServerAddress& address) {
  const Answer answer = Ask(address, "/readyz");
  if (answer.http_status == 0) return Unknown("the server does not answer");
  if (answer.http_status == 200) return Good("takes requests");
  return Warning(
      Printf("/readyz answers %ld", answer.http_status),
      "the server is loading, draining or restarting; its reason: " + Quoted(answer.body));
}

Finding Key(const ServerAddress& address) {
  const Answer answer = Ask(address, "/v1/models");
  if (answer.http_status == 0) return Unknown("the server does not answer");
  if (answer.http_status == 401 || answer.http_status == 403) {
    return Fault(Printf("/v1/models answers %ld: the key is missing or wrong", answer.http_status),
                 "pass --key-file, or set HEARTH_API_KEY; `hearth key` makes a new key");
  }
  if (answer.http_status != 200) {
    return Fault(Printf("/v1/models answers %ld", answer.http_status),
                 "is this a Hearth server? Check the URL");
  }
  return Good(address.key.empty() ? "no key is needed" : "the key is accepted");
}

Finding SameVersion(const ServerAddress& address, const std::string& own) {
  const Answer answer = Ask(address, "/api/version");
  Result<Json> json = ParseJson(answer.body);
  if (answer.http_status != 200 || !json.ok()) return Unknown("the server does not tell");
  const Json* version = json->Find("hearth");
  if (version == nullptr || version->string() == nullptr) {
    return Warning("this is not a Hearth server", "check the URL");
  }
  if (*version->string() == own) return Good("version " + own);
  return Warning("the server is version " + Quoted(*version->string()) + ", this program " + own,
                 "restart the server after an upgrade");
}

Finding Encrypted(const ServerAddress& address) {
  if (!address.unix_path.empty() || IsLoopback(address.url)) return Good("on this machine");
  if (address.url.starts_with("https://")) return Good("encrypted");
  return Warning(
      "requests travel unencrypted",
      "anybody on the way can read prompts and the key: use `hearth serve --tls-certificate "
      "--tls-key`, or a proxy that does TLS");
}

Finding Port(int port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return Unknown("no socket can be made");
  const int one = 1;
  ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool is_free =
      ::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int why = errno;
  ::close(descriptor);
  if (is_free) return Good(Printf("port %d is free", port));
  if (why == EACCES) {
    return Fault(Printf("port %d needs privileges", port),
                 "use a port above 1023, or a proxy in front");
  }
  ServerAddress there;
  there.url = Printf("http://127.0.0.1:%d", port);
  if (Ask(there, "/livez").http_status == 200) {
    return Good(Printf("a server answers on port %d", port));
  }
  return Warning(Printf("another program uses port %d", port),
                 Printf("see it with `ss -ltnp 'sport = :%d'`, or start `hearth serve --port` with "
                        "another",
                        port));
}

}  // namespace

void AddConfigChecks(const Settings& settings, std::vector<Check>& checks) {
  checks.push_back({"config.files", [settings] { return Files(settings); }});
  checks.push_back({"config.secrets", [settings] { return Secrets(settings); }});
}

void AddPortCheck(int port, std::vector<Check>& checks) {
  checks.push_back({"server.port", [port] { return Port(port); }});
}

void AddServerChecks(const ServerAddress& address, const std::string& own_version,
                     std::vector<Check>& checks) {
  checks.push_back({"server.lives", [address] { return Lives(address); }});
  checks.push_back({"server.ready", [address] { return Ready(address); }});
  checks.push_back({"server.key", [address] { return Key(address); }});
  checks.push_back(
      {"server.version", [address, own_version] { return SameVersion(address, own_version); }});
  checks.push_back({"server.encrypted", [address] { return Encrypted(address); }});
}

}  // namespace hearth
