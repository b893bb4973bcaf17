// SPDX-License-Identifier: Apache-2.0
#include "app/secret_files.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/mask_secrets.h"
#include "base/terminal.h"

namespace hearth {
namespace {

struct Named {
  const char* variable;
  const char* holds;
};

// Settings whose value is the path of a secret.
constexpr Named kNamed[] = {{"HEARTH_SERVE_KEYS", "API keys"},
                            {"HEARTH_SERVE_TLS_KEY", "a private key"},
                            {"HEARTH_SERVE_CACHE_KEY", "the key of the caches"},
                            {"HEARTH_SERVE_RESPONSES", "stored responses"},
                            {"HEARTH_TOP_KEY_FILE", "an API key"},
                            {"HEARTH_RUN_KEY_FILE", "an API key"},
                            {"HEARTH_DOCTOR_KEY_FILE", "an API key"}};

}  // namespace

std::vector<SecretFile> FilesWithPasswords(const Settings& settings) {
  std::vector<SecretFile> out;
  for (const auto& [variable, setting] : settings.values) {
    if (setting.rank != Rank::kUserFile && setting.rank != Rank::kSystemFile) continue;
    if (std::ranges::none_of(setting.values, HoldsSecret)) continue;
    const std::string path = setting.origin.substr(0, setting.origin.rfind(':'));  // its line
    const auto is_same = [&](const SecretFile& other) { return other.path == path; };
    if (std::ranges::none_of(out, is_same)) out.push_back({path, "passwords", ""});
  }
  return out;
}

std::vector<SecretFile> SecretFilesOf(const Settings& settings) {
  std::vector<SecretFile> out;
  for (const Named& named : kNamed) {
    const auto found = settings.values.find(named.variable);
    if (found == settings.values.end() || found->second.values.empty()) continue;
    out.push_back({found->second.values.front(), named.holds, found->second.origin});
  }
  for (SecretFile& file : FilesWithPasswords(settings)) out.push_back(std::move(file));
  return out;
}

std::string WhoElseReads(mode_t mode, uid_t owner) {
  if ((mode & 007) != 0) return "can be read by other users";
  const bool is_given = owner == 0 && (mode & 030) == 0;
  if ((mode & 070) != 0 && !is_given) return "can be read by its group";
  return "";
}

Exposure ExposureOf(const SecretFile& file) {
  struct stat facts{};
  if (::stat(file.path.c_str(), &facts) != 0) return {.is_missing = true};
  const std::string who = WhoElseReads(facts.st_mode, facts.st_uid);
  if (who.empty()) return {};
  const std::string path = Quoted(file.path);
  const char* service = facts.st_uid == 0 ? ", or give it the service's group and 640" : "";
  return {.problem = path + " holds " + file.holds + " and " + who,
          .advice = "run: chmod 600 " + path + service};
}

void WarnOfExposed(const std::vector<SecretFile>& files) {
  for (const SecretFile& file : files) {
    if (file.path.empty()) continue;
    const Exposure found = ExposureOf(file);
    if (found.problem.empty()) continue;
    PrintError("warning: %s; %s\n", found.problem.c_str(), found.advice.c_str());
  }
}

}  // namespace hearth
