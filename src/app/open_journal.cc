// SPDX-License-Identifier: Apache-2.0
#include "app/open_journal.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/terminal.h"
#include "tiers/cache_directory.h"
#include "tiers/journal_files.h"
#include "tiers/journal_redis.h"

namespace hearth {
namespace {

// On disk, shared, or both: what is near is asked first.
class CacheJournal final : public JournalStore {
 public:
  CacheJournal(std::unique_ptr<JournalFiles> files, std::unique_ptr<JournalRedis> shared)
      : files_(std::move(files)), shared_(std::move(shared)) {}
  void Put(const std::string& name, std::string record) override {
    if (shared_ != nullptr) shared_->Put(name, record);
    if (files_ != nullptr) files_->Put(name, std::move(record));
  }
  std::optional<std::string> Get(const std::string& name) override {
    std::optional<std::string> found;
    if (files_ != nullptr) found = files_->Get(name);
    if (!found && shared_ != nullptr) found = shared_->Get(name);
    return found;
  }

 private:
  const std::unique_ptr<JournalFiles> files_;
  const std::unique_ptr<JournalRedis> shared_;
};

void Without(const Status& status) {
  PrintError("warning: no journal of replies: %s; streams are computed again to resume\n",
             status.message().c_str());
}

Result<std::unique_ptr<JournalFiles>> OpenFiles(const CacheFlags& flags, const RecordSeal& seal) {
  if (flags.directory.empty()) return std::unique_ptr<JournalFiles>();
  HEARTH_ASSIGN(const CacheDirectory cache, CacheDirectory::Open(flags.directory));
  JournalFilesOptions options;
  options.clock_path = cache.clock_path();  // which is so kept going
  return JournalFiles::Open(cache.path() + "/replies", seal, options);
}

Result<std::unique_ptr<JournalRedis>> OpenShared(const CacheFlags& flags, const RecordSeal& seal) {
  if (flags.servers.empty()) return std::unique_ptr<JournalRedis>();
  JournalRedisOptions options;
  HEARTH_ASSIGN(options.servers, ParseRedisAddresses(flags.servers));
  options.link.seal = std::make_shared<RecordSeal>(seal);
  const bool has_tls = std::ranges::any_of(options.servers, &RedisAddress::has_tls);
  if (has_tls) {
    HEARTH_ASSIGN(options.link.connect.tls, MakeRedisTls(flags.ca_path));
  }
  return std::make_unique<JournalRedis>(options);
}

Result<std::shared_ptr<JournalStore>> OpenStore(const CacheFlags& flags, const Secrets& secrets) {
  const RecordSeal seal(secrets.TextFor(Purpose::kJournalRecords));
  HEARTH_ASSIGN(std::unique_ptr<JournalFiles> files, OpenFiles(flags, seal));
  HEARTH_ASSIGN(std::unique_ptr<JournalRedis> shared, OpenShared(flags, seal));
  if (files == nullptr && shared == nullptr) return std::shared_ptr<JournalStore>();
  return std::shared_ptr<JournalStore>(
      std::make_shared<CacheJournal>(std::move(files), std::move(shared)));
}

}  // namespace

OpenedJournal OpenJournal(const CacheFlags& flags, const std::string& worker_secret) {
  OpenedJournal opened;
  Result<std::string> root = LastingRoot(flags);
  if (!root.ok()) Without(root.status());
  const bool is_lasting = root.ok() && !root->empty();
  if (is_lasting) {
    opened.secrets.emplace(*root);
  } else if (!worker_secret.empty()) {
    opened.secrets.emplace(worker_secret);
  }
  Result<std::shared_ptr<JournalStore>> store = std::shared_ptr<JournalStore>();
  if (is_lasting) store = OpenStore(flags, *opened.secrets);
  if (!store.ok()) Without(store.status());
  opened.journal = std::make_shared<ReplyJournal>(
      JournalLimits(), store.ok() ? *std::move(store) : std::shared_ptr<JournalStore>());
  return opened;
}

}  // namespace hearth
