// SPDX-License-Identifier: Apache-2.0
// Responses that clients asked to keep, so that the next request need only name the one before. In
// SQLite, within bounds, and each visible only to the key it was made with.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "server/access/sealed_text.h"
struct sqlite3;
namespace hearth {

struct StoreLimits {
  int64_t max_count = 10'000;
  int64_t max_bytes = int64_t{256} << 20;  // of texts
  int64_t max_age_s = int64_t{30} * 24 * 3600;
  int max_chain = 1000;  // responses that build on each other
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

// Beyond a bound whatever was not used for the longest time goes. Thread: any.
class ResponseStore {
 public:
  // An empty path keeps everything in memory, for as long as the process runs.
  static Result<std::unique_ptr<ResponseStore>> Open(const std::string& path,
                                                     const StoreLimits& limits = {});
  ~ResponseStore();

  Status Put(const std::string& tenant, const StoredResponse& response, int64_t now_s);
  // Nothing when there is none, when it is too old, and when it is another tenant's: who asks
  // cannot tell which.
  Result<std::optional<StoredResponse>> Get(const std::string& tenant, const std::string& id,
                                            int64_t now_s);
  // The response and those before it, the first one first. kNotFound when one of them is gone.
  Result<std::vector<StoredResponse>> Chain(const std::string& tenant, const std::string& id,
                                            int64_t now_s);
  // Whether there was one.
  Result<bool> Delete(const std::string& tenant, const std::string& id);
  StoreCounts counts() const;
  int64_t count() const { return counts().responses; }
  int64_t bytes() const { return counts().bytes; }
  // For thoughts that clients keep: lives as long as what is stored.
  const SealKey& seal_key() const { return seal_key_; }

 private:
  struct Statement;
  ResponseStore(sqlite3* db, const StoreLimits& limits) : db_(db), limits_(limits) {}
  Status Run(const char* sql) HEARTH_REQUIRES(mu_);
  Status Count() HEARTH_REQUIRES(mu_);
  Status ReadSealKey() HEARTH_REQUIRES(mu_);
  Status Insert(const std::string& tenant, const StoredResponse& response, int64_t now_s)
      HEARTH_REQUIRES(mu_);
  Status Evict(int64_t now_s) HEARTH_REQUIRES(mu_);
  Result<std::optional<StoredResponse>> Find(const std::string& tenant, const std::string& id,
                                             int64_t now_s) HEARTH_REQUIRES(mu_);
  Result<int64_t> Remove(const char* sql, const std::vector<std::string>& texts,
                         const std::vector<int64_t>& numbers) HEARTH_REQUIRES(mu_);

  mutable Mutex mu_;
  sqlite3* const db_ HEARTH_PT_GUARDED_BY(mu_);
  const StoreLimits limits_;
  SealKey seal_key_{};  // fixed by Open
  int64_t count_ HEARTH_GUARDED_BY(mu_) = 0;
  int64_t bytes_ HEARTH_GUARDED_BY(mu_) = 0;
  int64_t failures_ HEARTH_GUARDED_BY(mu_) = 0;
};

}  // namespace hearth
