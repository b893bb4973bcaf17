// SPDX-License-Identifier: Apache-2.0
// Doctor: the certificate that `hearth serve` is configured with.
#include <ctime>

#include "app/doctor_checks.h"

namespace hearth {
namespace {

constexpr int64_t kDay = 86'400;
// Renewal is usually tried a month before the end, so less than three weeks means that it fails.
constexpr int64_t kSoonDays = 21;

std::string Value(const Settings& settings, const char* name) {
  const auto found = settings.values.find(name);
  if (found == settings.values.end() || found->second.values.empty()) return "";
  return found->second.values.front();
}

Finding Dates(const Settings& settings) {
  const std::string path = Value(settings, "HEARTH_SERVE_TLS_CERTIFICATE");
  if (path.empty()) return Good("no certificate is configured");
  Result<CertificateDates> dates = ReadCertificateDates(path);
  if (!dates.ok()) {
    return Fault(dates.status().message(), "correct the path, or make the certificate again");
  }
  return JudgeCertificate(*dates, static_cast<int64_t>(std::time(nullptr)));
}

Finding Belongs(const Settings& settings) {
  const std::string certificate = Value(settings, "HEARTH_SERVE_TLS_CERTIFICATE");
  const std::string key = Value(settings, "HEARTH_SERVE_TLS_KEY");
  if (certificate.empty() && key.empty()) return Good("no certificate is configured");
  if (certificate.empty() || key.empty()) {
    return Fault("only one of tls-certificate and tls-key is configured",
                 "`hearth serve` needs both");
  }
  const Status status = CheckKeyBelongs(certificate, key);
  if (status.ok()) return Good("the key belongs to the certificate");
  return Fault(status.message(), "configure the key that the certificate was made with");
}

}  // namespace

Finding JudgeCertificate(const CertificateDates& dates, int64_t now) {
  if (now < dates.begins) {
    return Fault(Printf("the certificate is not valid for another %lld hours",
                        static_cast<long long>((dates.begins - now) / 3600 + 1)),
                 "is this machine's clock right? See: timedatectl");
  }
  if (now >= dates.ends) {
    return Fault(Printf("the certificate expired %lld days ago",
                        static_cast<long long>((now - dates.ends) / kDay)),
                 "renew it, then send the server SIGHUP: clients refuse it");
  }
  const long long days = (dates.ends - now) / kDay;
  const std::string found = Printf("valid for another %lld days", days);
  if (days >= kSoonDays) return Good(found);
  return Warning(found, "renew it, then send the server SIGHUP; see why it was not renewed");
}

void AddTlsChecks(const Settings& settings, std::vector<Check>& checks) {
  checks.push_back({"tls.certificate", [settings] { return Dates(settings); }});
  checks.push_back({"tls.key", [settings] { return Belongs(settings); }});
}

}  // namespace hearth
