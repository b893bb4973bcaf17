// SPDX-License-Identifier: Apache-2.0
// Files and batch jobs where they survive the process: a line is either answered, once and for all,
// or it is still to be run. In one SQLite file for one server (sqlite_store.h), or in PostgreSQL
// for several that share the work (postgres_store.h).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clocks.h"
#include "base/result.h"
#include "batch/batch_lines.h"
#include "server/dialects/batches/batch_desk.h"
namespace hearth {

struct FileRow {
  std::string id, tenant, name, purpose;
  int64_t bytes = 0, created_s = 0, expires_s = 0;  // 0: never
  // A result has no content of its own: it is the answered lines of a batch.
  std::string batch = {};
  bool has_errors = false;  // those that failed, else those that did not
  int64_t due_s = 0;        // when it goes, by the store's age; `expires_s` is for showing
};

struct BatchRow {
  std::string id, tenant, endpoint, input_file, window, metadata;  // metadata: JSON, or empty
  std::string status = "validating";
  int64_t created_s = 0, in_progress_s = 0, expires_s = 0, finalizing_s = 0, completed_s = 0,
          failed_s = 0, expired_s = 0, cancelling_s = 0, cancelled_s = 0;  // 0: not yet
  int64_t total = 0, completed = 0, failed = 0;                            // lines
  std::string errors = {}, output_file = {}, error_file = {};
  int64_t due_s = 0;  // when it ends, by the store's age; `expires_s` is for showing
};

struct LineRow {
  int64_t number = 0;
  std::string custom_id, body;
};

struct BatchQuota {
  int64_t max_bytes = int64_t{1} << 30;  // that a tenant's files and results take
  int64_t max_lines = 200'000;           // of a tenant that are still to be run
  int64_t max_files = 10'000;
  // Where several processes share the work: a claim that nobody renews ends after so long.
  int64_t claim_s = 30;
};

// kExhausted, in words for the tenant, when it has `files` of `bytes` and wants `more` bytes.
Status CheckFiles(const BatchQuota& quota, int64_t files, int64_t bytes, int64_t more);
// The same when `pending` of its lines are to be run and a file has `more`.
Status CheckPending(const BatchQuota& quota, int64_t pending, size_t more);

// kIo for want of room on the disk below the store: it may work again when somebody makes some.
// `why` is the store's word for it.
Status NoRoom(const char* why);
bool IsNoRoom(const Status& status);

// Whether `--batches` names a database and not a file.
bool IsPostgresUrl(const std::string& path);

// What all jobs together are.
struct JobCounts {
  std::vector<std::pair<std::string, int64_t>> jobs = {};  // by status
  int64_t unanswered = 0;                                  // lines of those in progress
};

// Several processes may use one store: then each claims a line before it runs it, and a claim that
// is not renewed ends, so that another takes over what a dead process had. Thread: any.
class BatchStore {
 public:
  // A file for SQLite, or a postgresql:// URL. An empty path: in memory, for tests.
  static Result<std::unique_ptr<BatchStore>> Open(const std::string& path,
                                                  const BatchQuota& quota = {});
  virtual ~BatchStore() = default;

  // How long the store has been, by a clock that cannot jump (base/age_clock.h). Of several
  // processes the same.
  virtual Result<int64_t> Age(const ClockReading& now) = 0;

  // kExhausted beyond the quota.
  virtual Status AddFile(const FileRow& file, const std::string& content) = 0;
  virtual Result<std::optional<FileRow>> FindFile(const std::string& tenant,
                                                  const std::string& id) = 0;
  // The newest first.
  virtual Result<std::vector<FileRow>> ListFiles(const std::string& tenant,
                                                 const std::string& purpose,
                                                 const ListRange& range) = 0;
  virtual Result<std::string> ReadFile(const FileRow& file) = 0;
  // kInvalid while a batch reads it.
  virtual Status DeleteFile(const FileRow& file) = 0;
  virtual Status DeleteExpired(int64_t age_s) = 0;

  virtual Status AddBatch(const BatchRow& batch) = 0;
  virtual Result<std::optional<BatchRow>> FindBatch(const std::string& tenant,
                                                    const std::string& id) = 0;
  virtual Result<std::vector<BatchRow>> ListBatches(const std::string& tenant,
                                                    const ListRange& range) = 0;
  // Those that are not over, the oldest first.
  virtual Result<std::vector<BatchRow>> Unfinished() = 0;
  virtual Result<JobCounts> Count() = 0;

  // The lines of a batch that was validated: it is in progress. kExhausted beyond the quota.
  virtual Status Begin(const BatchRow& batch, const std::vector<BatchLine>& lines,
                       int64_t now_s) = 0;
  virtual Status Fail(const BatchRow& batch, const std::string& errors, int64_t now_s) = 0;
  // From validating or in progress; any other stays what it is.
  virtual Status BeginCancel(const BatchRow& batch, int64_t now_s) = 0;

  // An unanswered line that no other process runs, to be run by this one. Of a store with one
  // process: one behind the number `after`.
  virtual Result<std::optional<LineRow>> Claim(const std::string& batch, int64_t after) = 0;
  // It was not answered and will not be by this process: anybody may run it.
  virtual Status GiveBack(const std::string& batch, int64_t number) = 0;
  // This process is alive and runs these. To be called more often than claims end.
  virtual Status RenewClaims(const std::string& batch, const std::vector<int64_t>& numbers) = 0;
  // Ends all claims of this process.
  virtual Status DropClaims() = 0;
  virtual Result<bool> HasUnanswered(const std::string& batch) = 0;
  // The one answer to a line. False: it had one.
  virtual Result<bool> PutResult(const std::string& batch, int64_t number, bool is_error,
                                 const std::string& result) = 0;
  // Nothing is left to run: the batch gets its files and its last status, "completed", "cancelled"
  // or "expired". What was not answered is answered with `unrun`, if it has a code. A batch that is
  // over stays as it is.
  struct Unrun {
    std::string code, message;
  };
  virtual Status Finish(const BatchRow& batch, const std::string& status, const Unrun& unrun,
                        int64_t now_s) = 0;
};

}  // namespace hearth
