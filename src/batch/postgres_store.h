// SPDX-License-Identifier: Apache-2.0
// Files and batch jobs in PostgreSQL, for several servers that share the work. A line that one of
// them runs is claimed for a while; who lives renews its claims, and those of the dead end.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/age_clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "batch/batch_store.h"
#include "batch/pg_connection.h"
namespace hearth {

class PostgresStore final : public BatchStore {
 public:
  static Result<std::unique_ptr<BatchStore>> Open(const std::string& url, const BatchQuota& quota);

  Result<int64_t> Age(const ClockReading& now) override;
  Status AddFile(const FileRow& file, const std::string& content) override;
  Result<std::optional<FileRow>> FindFile(const std::string& tenant,
                                          const std::string& id) override;
  Result<std::vector<FileRow>> ListFiles(const std::string& tenant, const std::string& purpose,
                                         const ListRange& range) override;
  Result<std::string> ReadFile(const FileRow& file) override;
  Status DeleteFile(const FileRow& file) override;
  Status DeleteExpired(int64_t age_s) override;
  Status AddBatch(const BatchRow& batch) override;
  Result<std::optional<BatchRow>> FindBatch(const std::string& tenant,
                                            const std::string& id) override;
  Result<std::vector<BatchRow>> ListBatches(const std::string& tenant,
                                            const ListRange& range) override;
  Result<std::vector<BatchRow>> Unfinished() override;
  Result<JobCounts> Count() override;
  Status Begin(const BatchRow& batch, const std::vector<BatchLine>& lines, int64_t now_s) override;
  Status Fail(const BatchRow& batch, const std::string& errors, int64_t now_s) override;
  Status BeginCancel(const BatchRow& batch, int64_t now_s) override;
  Result<std::optional<LineRow>> Claim(const std::string& batch, int64_t after) override;
  Status GiveBack(const std::string& batch, int64_t number) override;
  Status RenewClaims(const std::string& batch, const std::vector<int64_t>& numbers) override;
  Status DropClaims() override;
  Result<bool> HasUnanswered(const std::string& batch) override;
  Result<bool> PutResult(const std::string& batch, int64_t number, bool is_error,
                         const std::string& result) override;
  Status Finish(const BatchRow& batch, const std::string& status, const Unrun& unrun,
                int64_t now_s) override;

 private:
  PostgresStore(const std::string& url, const BatchQuota& quota);
  Status Make();
  // From format 1, whose times were dates.
  Status AddAges() HEARTH_REQUIRES(mu_);
  Status SyncAge(ClockReading now) HEARTH_REQUIRES(mu_);
  Status CheckFormat() HEARTH_REQUIRES(mu_);
  Status CheckBytes(const std::string& tenant, int64_t more) HEARTH_REQUIRES(mu_);
  Status CheckLines(const BatchRow& batch, size_t more) HEARTH_REQUIRES(mu_);
  // The batch's status, held until the transaction ends. kNotFound: there is no such batch.
  Result<std::string> Lock(const BatchRow& batch) HEARTH_REQUIRES(mu_);
  Status AddResultFile(const BatchRow& batch, const std::string& id, bool has_errors, int64_t now_s)
      HEARTH_REQUIRES(mu_);
  Status AnswerRest(const BatchRow& batch, const Unrun& unrun) HEARTH_REQUIRES(mu_);

  Mutex mu_;
  PgConnection db_ HEARTH_GUARDED_BY(mu_);
  const BatchQuota quota_;
  const std::string owner_;  // this process
  AgeClock age_ HEARTH_GUARDED_BY(mu_);
};

}  // namespace hearth
