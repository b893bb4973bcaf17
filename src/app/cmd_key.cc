// SPDX-License-Identifier: Apache-2.0
// hearth key: who may use hearth serve, and how much of it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "app/commands.h"
#include "server/keys.h"

namespace hearth {
namespace {

struct KeyFlags {
  std::string id;
  bool is_admin = false;
  KeyLimits limits;
};

Status MakeKey(const KeyFlags& flags) {
  HEARTH_ASSIGN(const KeyRing::Fresh fresh, KeyRing::Make(flags.id, flags.is_admin, flags.limits));
  std::printf("%s\n", fresh.key.c_str());
  std::fprintf(stderr,
               "That is the key; it is shown this once. Its entry for the \"keys\" of the file:\n"
               "%s\n",
               fresh.entry.c_str());
  return Status();
}

}  // namespace

void AddKey(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<KeyFlags>();
  KeyLimits& limits = flags->limits;
  CLI::App* sub = app.add_subcommand("key", "Make an API key for hearth serve");
  sub->add_option("id", flags->id, "A name for logs, metrics and limits")->required();
  sub->add_flag("--admin", flags->is_admin, "May also administer the server");
  const auto limit = [&](const char* name, auto& to, const char* help) {
    sub->add_option(name, to, help)->check(CLI::Range(1, 1 << 30));
  };
  limit("--max-concurrent", limits.max_concurrent, "Replies at a time; none unless given");
  limit("--requests-per-minute", limits.requests_per_minute, "None unless given");
  limit("--tokens-per-minute", limits.tokens_per_minute,
        "Of prompts and replies together; none unless given");
  limit("--max-tokens-per-request", limits.max_tokens_per_request,
        "Prompt and reply together; none unless given");
  const std::map<std::string, Priority> classes{{"urgent", Priority::kUrgent},
                                                {"normal", Priority::kNormal},
                                                {"low", Priority::kLow},
                                                {"idle", Priority::kIdle}};
  sub->add_option("--max-priority", limits.max_priority,
                  "The best class its requests may have: urgent, normal (unless given), low, idle")
      ->transform(CLI::CheckedTransformer(classes));
  sub->callback([&chosen, flags] { chosen = [flags] { return MakeKey(*flags); }; });
}

}  // namespace hearth
