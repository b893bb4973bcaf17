// SPDX-License-Identifier: Apache-2.0
// Responses that clients asked to keep, so that the next request need only name the one before. In
// SQLite, within bounds, and each visible only to the key it was made with.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/age_clock.h"
#include "base/clocks.h"
#include "base/mutex.h"
#include "base/result.h"
#include "server/access/encrypted_text.h"
struct sqlite3;
namespace hearth {

struct StoreLimits {
  int64_t max_count = 10'000;
  int64_t max_bytes = int64_t{256} << 20;  // of texts
  int64_t max_age_s = int64_t{30} * 24 * 3600;
  int max_chain = 1000;  // responses that build on each other
  // Of their texts together: several times what the longest context can say, tools repeated in
  // each.
  int64_t max_chain_bytes = int64_t{16} << 20;
  // How exactly it is known when a response was last used. Writing that down writes the whole
  // response again, which must not be had for every request.
  int64_t use_precision_s = 60;
};

struct StoreCounts {
  int64_t responses = 0, bytes = 0;
  int64_t failures = 0;  // responses that should be here and are not
};

struct StoredResponse {
  std::string id, previous_id;  // the latter empty when it began a conversation
  std::string input;            // JSON: the items of this turn
  std::string response;         // JSON: the whole object
};

// Beyond a bound something of whoever holds most goes: what that key did not use for the longest
// time. So no key can push out what another keeps, as long as it keeps less itself. Ages go by a
// clock that cannot jump (base/age_clock.h): a wrong date neither hides nor deletes. Thread: any.
class ResponseStore {
 public:
  // An empty path keeps everything in memory, for as long as the process runs. The file, and what
  // SQLite makes beside it, is its owner's alone. kUnsupported: a newer version made it; it is left
  // as it is.
  static Result<std::unique_ptr<ResponseStore>> Open(const std::string& path,
                                                     const StoreLimits& limits = {},
                                                     ClockFn clocks = ReadClocks);
  ~ResponseStore();

  Status Put(const std::string& tenant, const StoredResponse& response);
  // Nothing when there is none, when it is too old, and when it is another tenant's: who asks
  // cannot tell which.
  Result<std::optional<StoredResponse>> Get(const std::string& tenant, const std::string& id);
  // The response and those before it, the first one first. kNotFound when one of them is gone;
  // kExhausted or kInvalid when they are too many or too long. Others may use the store in between.
  Result<std::vector<StoredResponse>> Chain(const std::string& tenant, const std::string& id);
  // Whether there was one.
  Result<bool> Delete(const std::string& tenant, const std::string& id);
  StoreCounts counts() const;
  int64_t count() const { return counts().responses; }
  int64_t bytes() const { return counts().bytes; }
  // For thoughts that clients keep: lives as long as what is stored.
  const CipherKey& cipher_key() const { return cipher_key_; }

 private:
  struct Statement;
  ResponseStore(std::string path, const StoreLimits& limits, ClockFn clocks)
      : path_(std::move(path)), limits_(limits), clocks_(std::move(clocks)) {}
  // What passed for the store, in seconds.
  Result<int64_t> Age() HEARTH_REQUIRES(mu_);
  Result<int64_t> OldestDate() HEARTH_REQUIRES(mu_);
  Status Connect() HEARTH_REQUIRES(mu_);
  Status Heal() HEARTH_REQUIRES(mu_);
  Status Complain(const char* doing) HEARTH_REQUIRES(mu_);
  Status Run(const char* sql) HEARTH_REQUIRES(mu_);
  Status CheckFormat() HEARTH_REQUIRES(mu_);
  Status Count() HEARTH_REQUIRES(mu_);
  Status ReadCipherKey() HEARTH_REQUIRES(mu_);
  Status Insert(const std::string& tenant, const StoredResponse& response, int64_t age_s)
      HEARTH_REQUIRES(mu_);
  Status Evict(int64_t age_s) HEARTH_REQUIRES(mu_);
  std::string Greediest() const HEARTH_REQUIRES(mu_);
  Result<int64_t> ChainBytes(const std::string& tenant, const std::string& id) HEARTH_EXCLUDES(mu_);
  Status EvictOld(int64_t age_s) HEARTH_REQUIRES(mu_);
  Result<std::optional<StoredResponse>> Find(const std::string& tenant, const std::string& id,
                                             int64_t age_s) HEARTH_REQUIRES(mu_);
  Result<int64_t> Remove(const char* sql, const std::vector<std::string>& texts,
                         const std::vector<int64_t>& numbers) HEARTH_REQUIRES(mu_);

  mutable Mutex mu_;
  const std::string path_;  // empty: in memory
  sqlite3* db_ HEARTH_GUARDED_BY(mu_) = nullptr;
  bool is_hurt_ HEARTH_GUARDED_BY(mu_) = false;  // and should be opened again
  const StoreLimits limits_;
  const ClockFn clocks_;
  AgeClock age_ HEARTH_GUARDED_BY(mu_);
  CipherKey cipher_key_{};  // fixed by Open
  struct Holding {
    int64_t count = 0, bytes = 0;
  };
  std::map<std::string, Holding> holdings_ HEARTH_GUARDED_BY(mu_);  // by tenant
  int64_t count_ HEARTH_GUARDED_BY(mu_) = 0;
  int64_t bytes_ HEARTH_GUARDED_BY(mu_) = 0;
  int64_t failures_ HEARTH_GUARDED_BY(mu_) = 0;
};

}  // namespace hearth
