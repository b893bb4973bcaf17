// SPDX-License-Identifier: Apache-2.0
// hearth key: who may use hearth serve, and how much of it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "app/commands.h"
#include "app/flag_checks.h"
#include "app/print.h"
#include "base/json.h"
#include "platform/file.h"
#include "server/access/keys.h"

namespace hearth {
namespace {

struct KeyFlags {
  std::string id, keys_path;
  bool is_admin = false;
  KeyLimits limits;
};

// The entry goes into the file, which stays as it is when anything is wrong with either. Of several
// that run at the same time each adds its own.
Status AddEntry(const std::string& path, const std::string& entry) {
  constexpr size_t kMaxBytes = size_t{16} << 20;
  HEARTH_ASSIGN(const FolderLock lock, FolderLock::Take(path));
  std::string text = R"({"keys": []})";
  if (FileExists(path)) {
    HEARTH_ASSIGN(text, ReadTextFile(path, kMaxBytes));
  }
  HEARTH_TRY(KeyRing::Parse(text).Within(path).status());
  HEARTH_ASSIGN(Json json, ParseJson(text));
  HEARTH_ASSIGN(Json added, ParseJson(entry));
  for (JsonMember& member : *json.object()) {
    if (member.first == "keys") member.second.array()->push_back(std::move(added));
  }
  const std::string after = WriteJson(json, 2) + "\n";
  HEARTH_TRY(KeyRing::Parse(after).Within(path).status());  // the id may be taken
  return WriteFileAtomically(path, std::as_bytes(std::span(after)), FileReaders::kOwner);
}

Status MakeKey(const KeyFlags& flags) {
  HEARTH_ASSIGN(const KeyRing::Fresh fresh, KeyRing::Make(flags.id, flags.is_admin, flags.limits));
  if (!flags.keys_path.empty()) {
    HEARTH_TRY(AddEntry(flags.keys_path, fresh.entry));
    PrintOut("{}\n", fresh.key);
    PrintError(
        "Save this key now; it will not be shown again. Its entry is in %s; a running "
        "server reads that file again on SIGHUP.\n",
        flags.keys_path.c_str());
    return Status();
  }
  PrintOut("{}\n", fresh.key);
  PrintError(
      "Save this key now; it will not be shown again. Its entry for the \"keys\" of the file:\n"
      "%s\n",
      fresh.entry.c_str());
  return Status();
}

}  // namespace

void AddKey(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<KeyFlags>();
  KeyLimits& limits = flags->limits;
  CLI::App* sub = app.add_subcommand("key", "Make an API key for `hearth serve`");
  sub->add_option("id", flags->id, "Name of the key in logs, metrics and limits")->required();
  sub->add_option("--keys", flags->keys_path,
                  "File to add the key to, created if missing; default: print its entry");
  sub->add_flag("--admin", flags->is_admin,
                "Make it an admin key, which may also read /metrics and /status");
  const auto limit = [&](const char* name, auto& to, const char* help) {
    sub->add_option(name, to, help)->check(Between(1, 1 << 30));
  };
  limit("--max-concurrent", limits.max_concurrent,
        "Maximum number of replies at a time; default: unlimited");
  limit("--requests-per-minute", limits.requests_per_minute,
        "Maximum number of requests per minute; default: unlimited");
  limit("--tokens-per-minute", limits.tokens_per_minute,
        "Maximum number of tokens per minute, prompts and replies together; default: unlimited");
  limit("--max-tokens-per-request", limits.max_tokens_per_request,
        "Maximum number of tokens per request, prompt and reply together; default: unlimited");
  std::map<std::string, Priority> classes;
  for (int i = 0; i < kNumPriorities; ++i) {
    classes.emplace(NameOf(static_cast<Priority>(i)), static_cast<Priority>(i));
  }
  sub->add_option("--max-priority", limits.max_priority,
                  "Highest priority of the key's requests, from urgent to idle; default: normal")
      ->type_name("CLASS")
      ->transform(NamedValue(classes));
  sub->callback([&chosen, flags] { chosen = [flags] { return MakeKey(*flags); }; });
}

}  // namespace hearth
