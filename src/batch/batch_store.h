// SPDX-License-Identifier: Apache-2.0
// Files and batch jobs in one SQLite file. What is in it survives the process: a line is either
// answered, once and for all, or it is still to be run.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "batch/batch_lines.h"
#include "server/dialects/batches/batch_desk.h"
struct sqlite3;
namespace hearth {

struct FileRow {
  std::string id, tenant, name, purpose;
  int64_t bytes = 0, created_s = 0, expires_s = 0;  // 0: never
  // A result has no content of its own: it is the answered lines of a batch.
  std::string batch = {};
  bool has_errors = false;  // those that failed, else those that did not
};

struct BatchRow {
  std::string id, tenant, endpoint, input_file, window, metadata;  // metadata: JSON, or empty
  std::string status = "validating";
  int64_t created_s = 0, in_progress_s = 0, expires_s = 0, finalizing_s = 0, completed_s = 0,
          failed_s = 0, expired_s = 0, cancelling_s = 0, cancelled_s = 0;  // 0: not yet
  int64_t total = 0, completed = 0, failed = 0;                            // lines
  std::string errors = {}, output_file = {}, error_file = {};
};

struct LineRow {
  int64_t number = 0;
  std::string custom_id, body;
};

struct BatchQuota {
  int64_t max_bytes = int64_t{1} << 30;  // that a tenant's files and results take
  int64_t max_lines = 200'000;           // of a tenant that are still to be run
  int64_t max_files = 10'000;
};

// Thread: any.
class BatchStore {
 public:
  // An empty path: in memory, for tests.
  static Result<std::unique_ptr<BatchStore>> Open(const std::string& path,
                                                  const BatchQuota& quota = {});
  ~BatchStore();
  BatchStore(const BatchStore&) = delete;
  BatchStore& operator=(const BatchStore&) = delete;

  // kExhausted beyond the quota.
  Status AddFile(const FileRow& file, const std::string& content);
  Result<std::optional<FileRow>> FindFile(const std::string& tenant, const std::string& id);
  // The newest first.
  Result<std::vector<FileRow>> ListFiles(const std::string& tenant, const std::string& purpose,
                                         const ListRange& range);
  Result<std::string> ReadFile(const FileRow& file);
  // kInvalid while a batch reads it.
  Status DeleteFile(const FileRow& file);
  Status DeleteExpired(int64_t now_s);

  Status AddBatch(const BatchRow& batch);
  Result<std::optional<BatchRow>> FindBatch(const std::string& tenant, const std::string& id);
  Result<std::vector<BatchRow>> ListBatches(const std::string& tenant, const ListRange& range);
  // Those that are not over, the oldest first.
  Result<std::vector<BatchRow>> Unfinished();

  // The lines of a batch that was validated: it is in progress. kExhausted beyond the quota.
  Status Begin(const BatchRow& batch, const std::vector<BatchLine>& lines, int64_t now_s);
  Status Fail(const BatchRow& batch, const std::string& errors, int64_t now_s);
  // From validating or in progress; any other stays what it is.
  Status BeginCancel(const BatchRow& batch, int64_t now_s);
  // Unanswered lines behind this number, at most so many.
  Result<std::vector<LineRow>> LinesAfter(const std::string& batch, int64_t number, int limit);
  // The one answer to a line. False: it had one.
  Result<bool> PutResult(const std::string& batch, int64_t number, bool is_error,
                         const std::string& result);
  // Nothing is left to run: the batch gets its files and its last status, "completed", "cancelled"
  // or "expired". What was not answered is answered with `unrun`, if it has a code.
  struct Unrun {
    std::string code, message;
  };
  Status Finish(const BatchRow& batch, const std::string& status, const Unrun& unrun,
                int64_t now_s);

 private:
  BatchStore(sqlite3* db, const BatchQuota& quota) : db_(db), quota_(quota) {}
  Status Make();
  Status CheckBytes(const std::string& tenant, int64_t more) HEARTH_REQUIRES(mu_);
  Status AddResultFile(const BatchRow& batch, const std::string& id, bool has_errors, int64_t now_s)
      HEARTH_REQUIRES(mu_);
  Status AnswerRest(const BatchRow& batch, const Unrun& unrun) HEARTH_REQUIRES(mu_);

  sqlite3* db_ HEARTH_GUARDED_BY(mu_);
  const BatchQuota quota_;
  Mutex mu_;
};

}  // namespace hearth
