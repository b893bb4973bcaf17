// SPDX-License-Identifier: Apache-2.0
// hearth cache: what a cache on disk holds, whether it is sound, and its end.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <filesystem>
#include <memory>

#include "app/commands.h"
#include "app/open_tier.h"
#include "app/print.h"
#include "base/json.h"
#include "base/terminal.h"
#include "store/inventory.h"
#include "tiers/cache_directory.h"
#include "tiers/disk_store.h"

namespace hearth {
namespace {

struct CacheCommandFlags {
  std::string directory;
  std::string key_path;
  bool json = false;
};

// Whether another process has the store open. Of no use within a process that has: closing the file
// would give up its own lock.
bool IsOpenElsewhere(const CacheDirectory::Store& store) {
  const int descriptor = open((store.blocks + "/LOCK").c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return false;
  struct flock lock{};
  lock.l_type = F_WRLCK;
  const bool is_open = fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  close(descriptor);
  return is_open;
}

std::string TimeOf(int64_t seconds) {
  if (seconds == 0) return "unknown";
  const std::time_t at = seconds;
  std::tm parts{};
  gmtime_r(&at, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min);
}

Status Info(const CacheCommandFlags& flags) {
  HEARTH_ASSIGN(const CacheDirectory cache, CacheDirectory::Find(flags.directory));
  const std::vector<CacheDirectory::Store> stores = cache.Stores();
  if (flags.json) {
    JsonArray rows;
    for (const CacheDirectory::Store& store : stores) {
      rows.push_back(JsonObject{{"name", store.name},
                                {"model", store.about},
                                {"bytes", store.num_bytes},
                                {"used_at", store.used_at_s},
                                {"open", IsOpenElsewhere(store)}});
    }
    PrintJson(rows);
    return Status();
  }
  if (stores.empty()) PrintOut("No blocks of any model in {}.\n", cache.path());
  for (const CacheDirectory::Store& store : stores) {
    PrintOut("{}  {:>10}  last used {}{}  {}\n", store.name,
             HumanBytes(static_cast<uint64_t>(store.num_bytes)), TimeOf(store.used_at_s),
             IsOpenElsewhere(store) ? ", open now" : "", store.about);
  }
  return Status();
}

// Reads every record; those that are wrong are forgotten by that.
Status Verify(const CacheCommandFlags& flags) {
  HEARTH_ASSIGN(const CacheDirectory cache, CacheDirectory::Find(flags.directory));
  int64_t num_wrong = 0;
  for (const CacheDirectory::Store& each : cache.Stores()) {
    DiskStoreOptions options;
    options.max_bytes = int64_t{1} << 50;  // nothing goes because of its age here
    if (each.about.ends_with(kEncryptedMark)) {
      if (flags.key_path.empty()) {
        return Error(Code::kInvalid, "%s is encrypted: its key is needed, --cache-key FILE",
                     each.about.c_str());
      }
      HEARTH_ASSIGN(const std::string key, ReadCacheKey(flags.key_path));
      options.seal = BlockSealOf(key);
    }
    HEARTH_ASSIGN(const std::unique_ptr<DiskStore> store,
                  DiskStore::Open(each.blocks, options).Within(each.blocks));
    int64_t num_good = 0, num_bytes = 0, num_bad = 0;
    for (const TierKey& key : store->Keys()) {
      Result<TierBytes> record = store->Get(key);
      if (record.ok()) {
        ++num_good;
        num_bytes += static_cast<int64_t>(record->size());
      } else if (record.status().code() != Code::kNotFound) {
        ++num_bad;
      }
    }
    PrintOut("{}  {} blocks as they were written, {}; {} thrown away  {}\n", each.name, num_good,
             HumanBytes(static_cast<uint64_t>(num_bytes)), num_bad, each.about);
    num_wrong += num_bad;
  }
  if (num_wrong > 0) {
    return Error(Code::kCorrupt, "%lld blocks were damaged: the disk may be failing",
                 static_cast<long long>(num_wrong));
  }
  return Status();
}

Status Clear(const CacheCommandFlags& flags) {
  HEARTH_ASSIGN(const CacheDirectory cache, CacheDirectory::Find(flags.directory));
  for (const CacheDirectory::Store& store : cache.Stores()) {
    HEARTH_TRY(cache.Remove(store).Within(store.blocks));
    PrintOut("removed {}, {}\n", store.about, HumanBytes(static_cast<uint64_t>(store.num_bytes)));
  }
  std::error_code error;
  if (std::filesystem::remove_all(cache.path() + "/replies", error) > 0 && !error) {
    PrintOut("removed the journal of replies\n");
  }
  return Status();
}

}  // namespace

void AddCache(CLI::App& app, Command& chosen) {
  CLI::App* cache = app.add_subcommand("cache", "Look after a cache on disk (serve --cache-dir)");
  cache->require_subcommand(1);
  const auto add = [&](const char* name, const char* what,
                       Status (*run)(const CacheCommandFlags&)) {
    auto flags = std::make_shared<CacheCommandFlags>();
    CLI::App* sub = cache->add_subcommand(name, what);
    sub->add_option("--cache-dir,directory", flags->directory, "Directory of the cache")
        ->required();
    sub->callback([&chosen, flags, run] { chosen = [flags, run] { return run(*flags); }; });
    return std::pair(sub, flags);
  };
  const auto [info, flags] = add("info", "Show what is in it, by model", Info);
  info->add_flag("--json", flags->json, "Print JSON");
  const auto [verify, verify_flags] =
      add("verify", "Read all of it and throw away what is damaged; not while a server has it open",
          Verify);
  verify
      ->add_option("--cache-key", verify_flags->key_path, "File with the key of what is encrypted")
      ->option_text("FILE");
  add("clear", "Remove all that is in it; not while a server has it open", Clear);
}

}  // namespace hearth
