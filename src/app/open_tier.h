// SPDX-License-Identifier: Apache-2.0
// The flags of the caches below memory, on disk and shared, and the tier that they ask for.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/numerics.h"
#include "base/result.h"
#include "kv/layout.h"
#include "kv/tier.h"
#include "model/model.h"
#include "tiers/record_seal.h"
namespace CLI {
class App;
}  // namespace CLI
namespace hearth {

struct CacheFlags {
  std::string directory;         // empty: no cache on disk
  std::string key_path;          // of a secret that is shared; empty: the directory's own
  std::string key;               // the secret itself, by CheckCacheFlags; nothing else reads it
  std::string servers;           // of a shared cache, with commas; empty: none
  std::string ca_path;           // whom to trust for their certificates; empty: the system
  int64_t disk_bytes = 0;        // for one model; 0: a share of the disk
  int64_t write_rate = 8 << 20;  // bytes a second
  std::string model_path;        // what was opened, for its digest
  std::string weights;           // what its weights were quantized to while loading, or empty
  Numerics numerics = Numerics::kExact;
};
// CLI11 needs the flags to stay where they are.
void AddCacheOptions(CLI::App& sub, CacheFlags& flags);
// The secret in a file, without the end of its line.
Result<std::string> ReadCacheKey(const std::string& path);
// What is wrong with them, as far as that can be seen without opening anything but the key, which
// is read here, once.
Status CheckCacheFlags(CacheFlags& flags);

struct OpenedTier {
  std::unique_ptr<Tier> tier;  // null: none
  uint64_t key_seed = 0;       // of all keys that the tier sees
};
// None without a directory and a server. One that cannot be used is told in a line on stderr, and
// there is none: a cache is never a reason not to serve.
OpenedTier OpenTier(const CacheFlags& flags, const Model& model, const KvLayout& layout);

// A word that stands for the model's weights: with a cache their digest, the same for all who have
// these files, else what the file system says of them. Empty: they cannot be known.
std::string ContentOf(const CacheFlags& flags, const Model& model);

// What the tier will write to: makes the directory, since only what is there can be allowed to a
// process that confines itself. None: no cache, or none that can be.
std::vector<std::string> CacheFolders(const CacheFlags& flags);

// What it will read: certificates, and what finding a host by its name takes.
std::vector<std::string> CacheReads(const CacheFlags& flags);

// The root of all secrets that outlive the process (server/access/secrets.h): the key that was
// given, else the directory's own. Empty: there is no cache.
Result<std::string> LastingRoot(const CacheFlags& flags);
// What encrypts blocks where others can read them, from the text of --cache-key.
std::shared_ptr<const RecordSeal> BlockSealOf(const std::string& cache_key);

// What a model gets of a disk with so many bytes free, those of its own store included.
int64_t DefaultDiskBytes(int64_t free_bytes);

}  // namespace hearth
