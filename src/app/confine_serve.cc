// SPDX-License-Identifier: Apache-2.0
#include "app/confine_serve.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>

#include "app/flag_checks.h"
#include "app/model_files.h"
#include "base/terminal.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

// Read by libraries and the kernel's interfaces at any time. Not /etc: what is there is for others.
constexpr const char* kSystem[] = {"/proc",
                                   "/sys",
                                   "/usr/lib",
                                   "/usr/lib64",
                                   "/lib",
                                   "/lib64",
                                   "/etc/ssl",
                                   "/usr/share/zoneinfo",
                                   "/dev/zero",
                                   "/dev/random",
                                   "/dev/urandom",
                                   "/etc/localtime",
                                   "/etc/ld.so.cache"};

fs::path FolderOf(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// The folder, not the file: one that is replaced is another file, and is read again on SIGHUP.
// Certificates are often links into a folder of their own.
void AddFolderOf(const std::string& file, FileUse use, std::vector<FileRule>& out) {
  if (file.empty()) return;
  out.push_back({FolderOf(file).string(), use});
  std::error_code error;
  const fs::path real = fs::canonical(file, error);
  if (!error) out.push_back({FolderOf(real).string(), use});
}

// File by file: a model in somebody's home does not open the home, nor the models beside it, and
// links of a download cache lead wherever they lead.
void AddModel(const std::string& model, std::vector<FileRule>& out) {
  const ModelFiles files = ModelFilesOf(model);
  for (const std::string& folder : files.folders) out.push_back({folder, FileUse::kList});
  for (const std::string& file : files.files) out.push_back({file, FileUse::kRead});
}

// A warning, unless there are no words for it, or the error that it is where confinement is
// required.
Status Judge(ConfineMode mode, const Status& status, const char* without) {
  if (status.ok()) return Status();
  if (mode == ConfineMode::kRequired) {
    return Error(Code::kUnsupported, "--confine required: %s", status.message().c_str());
  }
  if (without != nullptr) {
    PrintError("warning: %s: %s\n", status.message().c_str(), without);
  }
  return Status();
}

constexpr const char* kRightsStay = "this process keeps root's rights";

}  // namespace

void AddConfine(CLI::App& sub, ConfineMode& mode) {
  const std::map<std::string, ConfineMode> modes{{"auto", ConfineMode::kAuto},
                                                 {"required", ConfineMode::kRequired},
                                                 {"off", ConfineMode::kOff}};
  sub.add_option(
         "--confine", mode,
         "Restrict the server to the files and system calls that it needs (Landlock, seccomp). "
         "auto: as far as the kernel supports it; required: fail without; off: for "
         "debuggers and profilers; default: auto")
      ->type_name("MODE")
      ->transform(NamedValue(modes));
}

std::vector<FileRule> ServeFileRules(const ServePaths& paths) {
  std::vector<FileRule> rules;
  for (const char* path : kSystem) rules.push_back({path, FileUse::kRead});
  rules.push_back({"/dev/null", FileUse::kWrite});
  for (const std::string& model : paths.models) AddModel(model, rules);
  for (const std::string& folder : paths.folders) rules.push_back({folder, FileUse::kRead});
  for (const std::string& folder : paths.state) rules.push_back({folder, FileUse::kWrite});
  for (const std::string* file : {&paths.keys, &paths.certificate, &paths.private_key}) {
    AddFolderOf(*file, FileUse::kRead, rules);
  }
  AddFolderOf(paths.responses, FileUse::kWrite, rules);
  AddFolderOf(paths.batches, FileUse::kWrite, rules);
  if (paths.log != "-") AddFolderOf(paths.log, FileUse::kAppend, rules);
  AddFolderOf(paths.unix_socket, FileUse::kSocket, rules);
  return rules;
}

Status HideServer(ConfineMode mode) {
  if (mode == ConfineMode::kOff) return Status();
  return Judge(mode, HideProcess(), "other processes of this user can read the memory of this one");
}

Status ConfineSupervisor(ConfineMode mode) {
  if (mode == ConfineMode::kOff) return Status();
  HEARTH_TRY(Judge(mode, DropCapabilities(KeptCapabilities::kNone), kRightsStay));
  return Judge(mode, RestrictSupervisorCalls(), nullptr);  // the server will say so
}

Status ConfineFiles(ConfineMode mode, const ServePaths& paths, bool opens_low_port) {
  if (mode == ConfineMode::kOff) return Status();
  const auto kept = opens_low_port ? KeptCapabilities::kLowPorts : KeptCapabilities::kNone;
  HEARTH_TRY(Judge(mode, DropCapabilities(kept), kRightsStay));
  return Judge(mode, RestrictFiles(ServeFileRules(paths)), "access to files is not restricted");
}

Status ConfineCalls(ConfineMode mode, const CallRules& rules) {
  if (mode == ConfineMode::kOff) return Status();
  HEARTH_TRY(Judge(mode, DropCapabilities(KeptCapabilities::kNone), kRightsStay));
  return Judge(mode, RestrictCalls(rules), "system calls are not restricted");
}

Status ExplainRefusedFile(ConfineMode mode, Status failed) {
  const bool is_refused = failed.message().find(std::strerror(EACCES)) != std::string::npos;
  if (mode == ConfineMode::kOff || !is_refused || ::geteuid() != 0) return failed;
  return Error(failed.code(),
               "%s; run by root, the server gives up root's rights over other users' files: let "
               "everybody read it, run the server as its owner, or use --confine off",
               failed.message().c_str());
}

}  // namespace hearth
