// SPDX-License-Identifier: Apache-2.0
#include "app/open_tier.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "app/flag_checks.h"
#include "app/model_digest.h"
#include "backend/numerics.h"
#include "base/mutex.h"
#include "base/terminal.h"
#include "kv/block_key.h"
#include "kv/content_seed.h"
#include "platform/file.h"
#include "server/access/secrets.h"
#include "store/inventory.h"
#include "tiers/cache_directory.h"
#include "tiers/disk_tier.h"
#include "tiers/redis_tier.h"
#include "tiers/tier_stack.h"

namespace hearth {
namespace {

// A model that nobody served for so long leaves nothing behind.
constexpr int64_t kForgottenAfterS = int64_t{30} * 24 * 3600;
constexpr int64_t kGib = int64_t{1} << 30;
constexpr size_t kLeastKeyBytes = 16, kMostKeyBytes = 4096;

void Say(const std::string& line) { PrintError("%s\n", line.c_str()); }

// Reads the model's files once; from then on the file system's word is enough.
Result<uint64_t> RememberedDigest(const CacheDirectory& cache, const Model& model,
                                  const std::string& path) {
  HEARTH_ASSIGN(const std::vector<std::string> files, FilesOf(model, path));
  HEARTH_ASSIGN(const std::string identity, IdentityOf(files));
  if (const auto known = cache.DigestOf(identity)) return *known;
  const auto began = std::chrono::steady_clock::now();
  HEARTH_ASSIGN(const uint64_t digest, DigestOf(files));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  if (took.count() > 1) {
    Say(Printf("disk cache: read the model once to know it again, in %.1f s", took.count()));
  }
  const Status status = cache.RememberDigest(identity, digest);
  if (!status.ok()) Say("warning: disk cache: " + status.message());
  return digest;
}

Result<int64_t> DiskBytesFor(const CacheFlags& flags, const CacheDirectory& cache,
                             const std::string& blocks) {
  if (flags.disk_bytes > 0) return flags.disk_bytes;
  std::error_code error;
  const auto space = std::filesystem::space(cache.path(), error);
  if (error) return Error(Code::kIo, "%s: %s", cache.path().c_str(), error.message().c_str());
  auto free_bytes = static_cast<int64_t>(space.available);
  for (const CacheDirectory::Store& store : cache.Stores()) {
    if (store.blocks == blocks) free_bytes += store.num_bytes;
  }
  return std::max(DefaultDiskBytes(free_bytes), kLeastDiskBytes);
}

void RemoveForgotten(const CacheDirectory& cache) {
  const int64_t age_s = cache.Age();
  for (const CacheDirectory::Store& store : cache.Stores()) {
    if (store.used_at_s == 0 || age_s - store.used_at_s < kForgottenAfterS) continue;
    if (cache.Remove(store).ok()) {  // else somebody has had it open all the time
      Say("disk cache: removed the blocks of " + Quoted(store.about) + ", unused for 30 days");
    }
  }
}

struct KnownDigests {
  Mutex mutex;
  std::map<std::string, uint64_t> by_identity HEARTH_GUARDED_BY(mutex);
};

// The same without a place to remember it in but this process.
Result<uint64_t> DigestOnce(const std::vector<std::string>& files) {
  static auto& known = *new KnownDigests;
  HEARTH_ASSIGN(const std::string identity, IdentityOf(files));
  {
    const MutexLock lock(known.mutex);
    const auto found = known.by_identity.find(identity);
    if (found != known.by_identity.end()) return found->second;
  }
  HEARTH_ASSIGN(const uint64_t digest, DigestOf(files));
  const MutexLock lock(known.mutex);
  known.by_identity[identity] = digest;
  return digest;
}

// The same file with its weights quantized is another model.
uint64_t WithWeights(uint64_t digest, const CacheFlags& flags) {
  for (const char letter : flags.weights) digest = FoldSeed(digest, static_cast<uint8_t>(letter));
  return digest;
}

// What both tiers of a model are opened with.
struct CacheBasis {
  std::string names_secret;
  std::shared_ptr<const RecordSeal> seal;  // null: no key was given
  BlockContent content;                    // without the secret, which is not for names
};

// `cache` is null without a directory, or one that cannot be used.
Result<CacheBasis> BasisOf(const CacheFlags& flags, const Model& model, const KvLayout& layout,
                           const CacheDirectory* cache) {
  CacheBasis basis;
  basis.content.numerics_version = BlockNumerics(flags.numerics, layout.code);
  basis.content.layout = layout;
  if (!flags.key.empty()) basis.seal = BlockSealOf(flags.key);
  if (!flags.key.empty() || cache != nullptr) {
    HEARTH_ASSIGN(const std::string root, flags.key.empty() ? cache->Secret() : flags.key);
    basis.names_secret = Secrets(root).TextFor(Purpose::kBlockNames);
  }
  if (cache == nullptr) {
    HEARTH_ASSIGN(const std::vector<std::string> files, FilesOf(model, flags.model_path));
    HEARTH_ASSIGN(const uint64_t digest, DigestOnce(files));
    basis.content.model_digest = WithWeights(digest, flags);
    return basis;
  }
  HEARTH_ASSIGN(const uint64_t digest, RememberedDigest(*cache, model, flags.model_path));
  basis.content.model_digest = WithWeights(digest, flags);
  return basis;
}

Result<std::unique_ptr<Tier>> OpenDisk(const CacheFlags& flags, const CacheDirectory& cache,
                                       const CacheBasis& basis) {
  // What is encrypted has a store of its own: without the key nobody could tell it from damage.
  const uint64_t name = ContentSeed(basis.content) ^ (basis.seal ? 0x656e637279707465u : 0u);
  const std::string model = std::filesystem::path(flags.model_path).filename().string();
  HEARTH_ASSIGN(const std::string blocks,
                cache.UseStore(name, model + (basis.seal ? kEncryptedMark : "")));
  RemoveForgotten(cache);
  DiskTierOptions options;
  HEARTH_ASSIGN(options.store.max_bytes, DiskBytesFor(flags, cache, blocks));
  options.store.seal = basis.seal;
  options.writes.bytes_per_s = static_cast<double>(flags.write_rate);
  options.writes.burst_bytes = 256 * options.writes.bytes_per_s;
  options.warn = [](const std::string& line) { Say("warning: " + line); };
  HEARTH_ASSIGN(std::unique_ptr<DiskTier> tier, DiskTier::Open(blocks, options).Within(blocks));
  const TierStats stats = tier->stats();
  Say(Printf("disk cache: %s of %s in use, %lld blocks, in %s",
             HumanBytes(static_cast<uint64_t>(stats.used_bytes)).c_str(),
             HumanBytes(static_cast<uint64_t>(stats.capacity_bytes)).c_str(),
             static_cast<long long>(stats.num_records), flags.directory.c_str()));
  return std::unique_ptr<Tier>(std::move(tier));
}

Result<std::unique_ptr<Tier>> OpenShared(const CacheFlags& flags, const CacheBasis& basis,
                                         const KvLayout& layout) {
  RedisTierOptions options;
  HEARTH_ASSIGN(options.servers, ParseRedisAddresses(flags.servers));
  options.link.seal = basis.seal;
  for (const auto& group : layout.groups) {  // a record is a block, a head and its tokens
    options.link.connect.max_reply_bytes = std::max<size_t>(
        options.link.connect.max_reply_bytes, 2 * static_cast<size_t>(group.block_bytes));
  }
  const bool has_tls = std::ranges::any_of(options.servers, &RedisAddress::has_tls);
  if (has_tls) {
    HEARTH_ASSIGN(options.link.connect.tls, MakeRedisTls(flags.ca_path));
  }
  options.link.say = [](const std::string& line) { Say(line); };
  return std::unique_ptr<Tier>(std::make_unique<RedisTier>(options));
}

void Without(const char* what, const Status& status) {
  Say(Printf("warning: no %s cache: %s; serving goes on without it", what,
             status.message().c_str()));
}

Result<OpenedTier> TryOpen(const CacheFlags& flags, const Model& model, const KvLayout& layout) {
  std::optional<CacheDirectory> cache;
  if (!flags.directory.empty()) {
    Result<CacheDirectory> opened = CacheDirectory::Open(flags.directory);
    if (opened.ok()) cache = *std::move(opened);
    if (!opened.ok()) Without("disk", opened.status());
  }
  if (!cache && flags.servers.empty()) return OpenedTier{};
  HEARTH_ASSIGN(CacheBasis basis, BasisOf(flags, model, layout, cache ? &*cache : nullptr));
  std::vector<std::unique_ptr<Tier>> tiers;
  if (cache) {
    Result<std::unique_ptr<Tier>> disk = OpenDisk(flags, *cache, basis);
    if (disk.ok()) tiers.push_back(*std::move(disk));
    if (!disk.ok()) Without("disk", disk.status());
  }
  if (!flags.servers.empty()) {
    Result<std::unique_ptr<Tier>> shared = OpenShared(flags, basis, layout);
    if (shared.ok()) tiers.push_back(*std::move(shared));
    if (!shared.ok()) Without("shared", shared.status());
  }
  if (tiers.empty()) return OpenedTier{};
  basis.content.secret = basis.names_secret;
  const uint64_t seed = ContentSeed(basis.content);
  if (tiers.size() == 1) return OpenedTier{std::move(tiers[0]), seed};
  return OpenedTier{std::make_unique<TierStack>(std::move(tiers)), seed};
}

}  // namespace

// Without the line's end that editors and shells add.
Result<std::string> ReadCacheKey(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error(Code::kNotFound, "--cache-key %s: cannot be read", path.c_str());
  std::string key(kMostKeyBytes + 1, '\0');
  file.read(key.data(), static_cast<std::streamsize>(key.size()));
  key.resize(static_cast<size_t>(file.gcount()));
  while (key.ends_with('\n') || key.ends_with('\r')) key.pop_back();
  if (key.size() < kLeastKeyBytes || key.size() > kMostKeyBytes) {
    return Error(Code::kInvalid,
                 "--cache-key %s: the key has %zu bytes, it must have 16 to 4096; make one with: "
                 "openssl rand -hex 32",
                 path.c_str(), key.size());
  }
  return key;
}

int64_t DefaultDiskBytes(int64_t free_bytes) { return std::min(free_bytes / 10, 16 * kGib); }

void AddCacheOptions(CLI::App& sub, CacheFlags& flags) {
  sub.add_option("--cache-dir", flags.directory,
                 "Directory for a cache on disk of what was computed of prompts, which survives "
                 "restarts; made when it is not there; default: none");
  sub.add_option("--cache-disk", flags.disk_bytes,
                 "Maximum size of the cache on disk per model, such as 64GiB, at least 16MiB; "
                 "default: a tenth of the free disk, at most 16GiB")
      ->option_text("SIZE")
      ->transform(Size());
  sub.add_option("--cache-write-rate", flags.write_rate,
                 "Maximum bytes per second written to the cache on disk in the long run, to spare "
                 "the disk; 256 seconds' worth may be written at once; default: 8MiB")
      ->option_text("SIZE")
      ->transform(Size());
  sub.add_option("--cache-key", flags.key_path,
                 "File with a secret of 16 bytes or more: what the caches hold is encrypted with "
                 "it, and servers that share a cache have the same; default: none")
      ->option_text("FILE");
  sub.add_option("--cache-redis", flags.servers,
                 "Redis or Valkey servers for a cache that several hearth servers share, such as "
                 "redis://:PASSWORD@HOST:6379; rediss:// for TLS; several with commas; needs "
                 "--cache-key; default: none")
      ->option_text("ADDRESS,...");
  sub.add_option("--cache-redis-ca", flags.ca_path,
                 "File with the certificates to trust for rediss://; default: the system's")
      ->option_text("FILE");
}

Status CheckCacheFlags(CacheFlags& flags) {
  if (!flags.key_path.empty()) {
    HEARTH_ASSIGN(flags.key, ReadCacheKey(flags.key_path));
  }
  if (flags.servers.empty()) return Status();
  HEARTH_TRY(ParseRedisAddresses(flags.servers).status().Within("--cache-redis"));
  if (!flags.key_path.empty()) return Status();
  return Error(Code::kInvalid,
               "--cache-redis needs --cache-key FILE, the same for all servers that share: what is "
               "stored there is encrypted; make one with: openssl rand -hex 32");
}

std::shared_ptr<const RecordSeal> BlockSealOf(const std::string& cache_key) {
  return std::make_shared<RecordSeal>(Secrets(cache_key).TextFor(Purpose::kBlockRecords));
}

std::string ContentOf(const CacheFlags& flags, const Model& model) {
  const auto find = [&]() -> Result<std::string> {
    HEARTH_ASSIGN(const std::vector<std::string> files, FilesOf(model, flags.model_path));
    if (flags.directory.empty() && flags.servers.empty()) {
      HEARTH_ASSIGN(const std::string identity, IdentityOf(files));
      return identity + flags.weights;
    }
    uint64_t digest = 0;
    if (flags.directory.empty()) {
      HEARTH_ASSIGN(digest, DigestOnce(files));
    } else {
      HEARTH_ASSIGN(const CacheDirectory cache, CacheDirectory::Open(flags.directory));
      HEARTH_ASSIGN(digest, RememberedDigest(cache, model, flags.model_path));
    }
    return Printf("%016llx", static_cast<unsigned long long>(WithWeights(digest, flags)));
  };
  Result<std::string> content = find();
  return content.ok() ? *std::move(content) : std::string();
}

OpenedTier OpenTier(const CacheFlags& flags, const Model& model, const KvLayout& layout) {
  if (flags.directory.empty() && flags.servers.empty()) return {};
  Result<OpenedTier> opened = TryOpen(flags, model, layout);
  if (opened.ok()) return *std::move(opened);
  const char* both = flags.servers.empty() ? "disk" : "disk or shared";
  Without(flags.directory.empty() ? "shared" : both, opened.status());
  return {};
}

std::vector<std::string> CacheFolders(const CacheFlags& flags) {
  if (flags.directory.empty() || !CacheDirectory::Open(flags.directory).ok()) return {};
  return {flags.directory};
}

std::vector<std::string> CacheReads(const CacheFlags& flags) {
  std::vector<std::string> out;
  // One that cannot be used is looked at once more, to say why.
  if (CacheFolders(flags).empty() && IsDirectory(flags.directory)) out.push_back(flags.directory);
  if (flags.servers.empty()) return out;
  for (const char* path : {"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf",
                           "/etc/host.conf", "/run/systemd/resolve"}) {
    out.emplace_back(path);
  }
  if (!flags.ca_path.empty()) out.push_back(flags.ca_path);
  return out;
}

Result<std::string> LastingRoot(const CacheFlags& flags) {
  if (!flags.key.empty() || flags.directory.empty()) return flags.key;
  HEARTH_ASSIGN(const CacheDirectory cache, CacheDirectory::Open(flags.directory));
  return cache.Secret();
}

}  // namespace hearth
