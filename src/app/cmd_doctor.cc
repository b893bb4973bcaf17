// SPDX-License-Identifier: Apache-2.0
// hearth doctor: what is wrong with this machine, a model or a server, and what to do about it.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "app/commands.h"
#include "app/config.h"
#include "app/doctor_checks.h"
#include "app/open_backend.h"
#include "app/print.h"
#include "app/redact.h"
#include "app/server_key.h"
#include "base/json.h"
#include "base/terminal.h"
#include "doctor/checks.h"
#include "platform/file.h"

namespace hearth {
namespace {

struct DoctorFlags {
  std::string model, url, key_path, ca_path, bundle_path;
  bool json = false, quick = false, hashes = false, strict = false, all = false;
};

// The port that `hearth serve` would take.
int PortOf(const Settings& settings) {
  const auto found = settings.values.find("HEARTH_SERVE_PORT");
  if (found == settings.values.end() || found->second.values.empty()) return 8080;
  return static_cast<int>(LeadingNumber(found->second.values.front()).value_or(0));
}

Result<std::vector<Check>> AllChecks(const DoctorFlags& flags, const Settings& settings,
                                     const SystemFiles& files) {
  std::vector<Check> checks;
  AddProcessorChecks(files, checks);
  if (!flags.quick) AddKernelBitChecks(files, checks);
  AddModuleChecks(files, checks);
  AddMemoryChecks(files, checks);
  if (!flags.quick) AddBandwidthCheck(files, checks);
  AddCgroupChecks(files, checks);
  AddKernelChecks(files, checks);
  AddStoreChecks(files, ProcessEnvironment(), checks);
  if (!flags.quick) AddDiskCheck(ProcessEnvironment(), checks);
  AddConfigChecks(settings, checks);
  AddTlsChecks(settings, checks);
  if (const int port = PortOf(settings); port > 0) AddPortCheck(port, checks);
  if (!flags.model.empty()) {
    AddModelChecks(flags.model, ProcessEnvironment(), UsableMemoryBytes(), flags.hashes, checks);
  }
  if (!flags.url.empty()) {
    ServerAddress address;
    address.url = flags.url;
    address.ca_path = flags.ca_path;
    HEARTH_ASSIGN(address.key, ServerKey(flags.key_path));
    HEARTH_ASSIGN(address, CheckAddress(std::move(address)));
    AddServerChecks(address, HEARTH_VERSION, checks);
  }
  return checks;
}

Json AsJson(const std::vector<NamedFinding>& findings, const SystemFiles& files) {
  JsonArray rows;
  for (const NamedFinding& each : findings) {
    rows.push_back(JsonObject{{"check", each.name},
                              {"verdict", NameOf(each.finding.verdict)},
                              {"found", each.finding.found},
                              {"advice", each.finding.advice}});
  }
  return JsonObject{{"hearth", HEARTH_VERSION},
                    {"worst", NameOf(WorstOf(findings))},
                    {"processor", files.Line("/proc/cpuinfo", "model name")},
                    {"kernel", files.Text("/proc/sys/kernel/osrelease")},
                    {"checks", std::move(rows)}};
}

const char* ColourOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood:
      return "\x1b[32m";
    case Verdict::kUnknown:
      return "\x1b[2m";
    case Verdict::kNote:
      return "\x1b[36m";
    case Verdict::kWarning:
      return "\x1b[33m";
    case Verdict::kFault:
      return "\x1b[31m";
  }
  return "";
}

void Print(const std::vector<NamedFinding>& findings, bool all) {
  const char* no_colour = std::getenv("NO_COLOR");
  const bool has_colours = ::isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || !*no_colour);
  int counts[5] = {};
  for (const NamedFinding& each : findings) {
    const Verdict verdict = each.finding.verdict;
    ++counts[static_cast<int>(verdict)];
    if (!all && verdict == Verdict::kUnknown) continue;
    if (has_colours) PrintCodes(stdout, ColourOf(verdict));
    PrintOut("{:<8}", NameOf(verdict));
    if (has_colours) PrintCodes(stdout, "\x1b[0m");
    PrintOut(" {:<24} {}\n", each.name, each.finding.found);
    if (!each.finding.advice.empty()) {
      PrintOut("{:<33} -> {}\n", "", each.finding.advice);
    }
  }
  const auto counted = [&](Verdict verdict, const char* one) {
    const int count = counts[static_cast<int>(verdict)];
    return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
  };
  PrintOut("\n{} good, {}, {}, {}; {} could not be checked{}\n", counts[0],
           counted(Verdict::kNote, "note"), counted(Verdict::kWarning, "warning"),
           counted(Verdict::kFault, "fault"), counts[static_cast<int>(Verdict::kUnknown)],
           all ? "" : " (--all shows them)");
}

Status Examination(CLI::App& root, const DoctorFlags& flags) {
  const Settings settings =
      ReadSettings(StandardSources(GivenConfig(root)), ListConfigurable(root));
  const SystemFiles files;
  HEARTH_ASSIGN(const std::vector<Check> checks, AllChecks(flags, settings, files));
  const std::vector<NamedFinding> findings = Examine(checks);
  const std::string json = WriteJson(AsJson(findings, files), 2) + "\n";
  if (flags.json) {
    PrintOut("{}", json);
  } else {
    Print(findings, flags.all);
  }
  if (!flags.bundle_path.empty()) {
    const std::string text = Redacted(json, PrivateWords());
    HEARTH_TRY(WriteFileAtomically(flags.bundle_path, std::as_bytes(std::span(text)),
                                   FileReaders::kOwner));
    PrintError("wrote %s for a bug report; read it before you send it\n",
               flags.bundle_path.c_str());
  }
  const Verdict worst = WorstOf(findings);
  if (worst == Verdict::kFault) {
    return Error(Code::kInvalid, "something will not work: see the faults above");
  }
  if (flags.strict && worst == Verdict::kWarning) {
    return Error(Code::kInvalid, "--strict: see the warnings above");
  }
  return Status();
}

}  // namespace

void AddDoctor(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<DoctorFlags>();
  CLI::App* doctor = app.add_subcommand(
      "doctor",
      "Check this machine, its configuration, and if given a model and a server, and say what to "
      "do about each problem. Exits with 1 when something will not work");
  doctor->add_option("model", flags->model, "Model to check as well: a name or a path");
  doctor->add_option("--url", flags->url, "URL of a running server to check as well");
  doctor->add_option("--key-file", flags->key_path,
                     "File with the API key for --url; default: HEARTH_API_KEY");
  doctor->add_option("--ca", flags->ca_path, "Certificate authority to trust for --url");
  doctor->add_flag("--hash", flags->hashes,
                   "Compare the model's files with the checksums of their download; reads all of "
                   "them");
  doctor->add_flag(
      "--quick", flags->quick,
      "Skip what is measured: the kernels' results, memory bandwidth and the disk's rate");
  doctor->add_flag("--all", flags->all, "Show what could not be checked, too");
  doctor->add_flag("--strict", flags->strict, "Exit with 1 for warnings, too");
  doctor->add_flag("--json", flags->json, "Print JSON");
  doctor->add_option("--bundle", flags->bundle_path,
                     "File to write the findings to for a bug report, without the names of user "
                     "and host");
  doctor->callback(
      [&app, &chosen, flags] { chosen = [&app, flags] { return Examination(app, *flags); }; });
}

}  // namespace hearth
