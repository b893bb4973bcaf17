// SPDX-License-Identifier: Apache-2.0
// The part of the store that keeps jobs and their lines.
#include <sqlite3.h>

#include <utility>

#include "batch/sqlite_sql.h"
#include "batch/sqlite_store.h"
#include "server/turns/request_names.h"

namespace hearth {
namespace {

constexpr const char* kBatchColumns =
    "SELECT id, tenant, endpoint, input_file, window, metadata, status, created, in_progress,"
    " expires, finalizing, completed_at, failed_at, expired, cancelling, cancelled, total,"
    " completed, failed, errors, output_file, error_file, due FROM batches ";

BatchRow BatchFrom(const Sql& row) {
  BatchRow batch{row.Text(0), row.Text(1), row.Text(2), row.Text(3), row.Text(4), row.Text(5)};
  batch.status = row.Text(6);
  int column = 7;
  for (int64_t* number :
       {&batch.created_s, &batch.in_progress_s, &batch.expires_s, &batch.finalizing_s,
        &batch.completed_s, &batch.failed_s, &batch.expired_s, &batch.cancelling_s,
        &batch.cancelled_s, &batch.total, &batch.completed, &batch.failed}) {
    *number = row.Number(column++);
  }
  batch.errors = row.Text(column++);
  batch.output_file = row.Text(column++);
  batch.error_file = row.Text(column++);
  batch.due_s = row.Number(column);
  return batch;
}

Result<std::vector<BatchRow>> AllOf(Sql& row) {
  std::vector<BatchRow> batches;
  while (row.Next()) batches.push_back(BatchFrom(row));
  HEARTH_TRY(row.status());
  return batches;
}

}  // namespace

Status SqliteStore::AddBatch(const BatchRow& batch) {
  const MutexLock lock(mu_);
  return Sql(db_,
             "INSERT INTO batches (id, tenant, endpoint, input_file, window, metadata, status,"
             " created, expires, due) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
             batch.id, batch.tenant, batch.endpoint, batch.input_file, batch.window, batch.metadata,
             batch.status, batch.created_s, batch.expires_s, batch.due_s)
      .Run();
}

Result<std::optional<BatchRow>> SqliteStore::FindBatch(const std::string& tenant,
                                                       const std::string& id) {
  const MutexLock lock(mu_);
  const std::string sql = std::string(kBatchColumns) + "WHERE id = ?1 AND tenant = ?2";
  Sql row(db_, sql.c_str(), id, tenant);
  if (row.Next()) return std::optional(BatchFrom(row));
  HEARTH_TRY(row.status());
  return std::optional<BatchRow>();
}

Result<std::vector<BatchRow>> SqliteStore::ListBatches(const std::string& tenant,
                                                       const ListRange& range) {
  const MutexLock lock(mu_);
  const std::string sql =
      std::string(kBatchColumns) +
      "WHERE tenant = ?1 AND (?2 = '' OR rowid <"
      " (SELECT rowid FROM batches WHERE id = ?2 AND tenant = ?1)) ORDER BY rowid DESC LIMIT ?3";
  Sql rows(db_, sql.c_str(), tenant, range.after, int64_t{range.limit});
  return AllOf(rows);
}

Result<std::vector<BatchRow>> SqliteStore::Unfinished() {
  const MutexLock lock(mu_);
  const std::string sql = std::string(kBatchColumns) +
                          "WHERE status IN ('validating', 'in_progress', 'cancelling')"
                          " ORDER BY rowid";
  Sql rows(db_, sql.c_str());
  return AllOf(rows);
}

Status SqliteStore::Begin(const BatchRow& batch, const std::vector<BatchLine>& lines,
                          int64_t now_s) {
  const MutexLock lock(mu_);
  SqlTransaction all(db_);
  HEARTH_TRY(all.begun());
  Sql pending(db_,
              "SELECT COALESCE(SUM(total - completed - failed), 0) FROM batches WHERE tenant = ?1"
              " AND status = 'in_progress'",
              batch.tenant);
  if (!pending.Next()) return pending.status();
  HEARTH_TRY(CheckPending(quota_, pending.Number(0), lines.size()));
  int64_t number = 0;
  for (const BatchLine& line : lines) {
    HEARTH_TRY(Sql(db_,
                   "INSERT INTO lines (batch, number, custom_id, body) VALUES (?1, ?2, ?3, ?4)",
                   batch.id, ++number, line.custom_id, line.body)
                   .Run());
  }
  // One that was cancelled meanwhile stays so.
  HEARTH_TRY(Sql(db_,
                 "UPDATE batches SET total = ?2, in_progress = ?3, status = CASE status WHEN"
                 " 'validating' THEN 'in_progress' ELSE status END WHERE id = ?1",
                 batch.id, number, now_s)
                 .Run());
  return all.Commit();
}

Status SqliteStore::Fail(const BatchRow& batch, const std::string& errors, int64_t now_s) {
  const MutexLock lock(mu_);
  return Sql(db_, "UPDATE batches SET status = 'failed', errors = ?2, failed_at = ?3 WHERE id = ?1",
             batch.id, errors, now_s)
      .Run();
}

Status SqliteStore::BeginCancel(const BatchRow& batch, int64_t now_s) {
  const MutexLock lock(mu_);
  return Sql(db_,
             "UPDATE batches SET status = 'cancelling', cancelling = ?2 WHERE id = ?1 AND status IN"
             " ('validating', 'in_progress')",
             batch.id, now_s)
      .Run();
}

Result<std::optional<LineRow>> SqliteStore::Claim(const std::string& batch, int64_t after) {
  const MutexLock lock(mu_);
  Sql row(db_,
          "SELECT number, custom_id, body FROM lines WHERE batch = ?1 AND number > ?2 AND state = 0"
          " ORDER BY number LIMIT 1",
          batch, after);
  if (row.Next()) return std::optional(LineRow{row.Number(0), row.Text(1), row.Text(2)});
  HEARTH_TRY(row.status());
  return std::optional<LineRow>();
}

Result<bool> SqliteStore::HasUnanswered(const std::string& batch) {
  const MutexLock lock(mu_);
  Sql row(db_, "SELECT 1 FROM lines WHERE batch = ?1 AND state = 0 LIMIT 1", batch);
  const bool has_one = row.Next();
  HEARTH_TRY(row.status());
  return has_one;
}

Result<JobCounts> SqliteStore::Count() {
  const MutexLock lock(mu_);
  JobCounts counts;
  Sql row(db_,
          "SELECT status, COUNT(*), SUM(total - completed - failed) FROM batches GROUP BY status");
  while (row.Next()) {
    counts.jobs.emplace_back(row.Text(0), row.Number(1));
    if (row.Text(0) == "in_progress") counts.unanswered += row.Number(2);
  }
  HEARTH_TRY(row.status());
  return counts;
}

// The state is part of the question: a second answer changes nothing and counts nothing.
Result<bool> SqliteStore::PutResult(const std::string& batch, int64_t number, bool is_error,
                                    const std::string& result) {
  const MutexLock lock(mu_);
  SqlTransaction all(db_);
  HEARTH_TRY(all.begun());
  HEARTH_TRY(Sql(db_,
                 "UPDATE lines SET state = ?3, result = ?4, body = '' WHERE batch = ?1 AND"
                 " number = ?2 AND state = 0",
                 batch, number, int64_t{is_error ? 2 : 1}, result)
                 .Run());
  const bool is_first = sqlite3_changes(db_) == 1;
  if (is_first) {
    HEARTH_TRY(Sql(db_,
                   "UPDATE batches SET completed = completed + ?2, failed = failed + ?3"
                   " WHERE id = ?1",
                   batch, int64_t{!is_error}, int64_t{is_error})
                   .Run());
  }
  HEARTH_TRY(all.Commit());
  return is_first;
}

Status SqliteStore::AnswerRest(const BatchRow& batch, const Unrun& unrun) {
  std::vector<std::pair<int64_t, std::string>> rest;
  {
    Sql row(db_, "SELECT number, custom_id FROM lines WHERE batch = ?1 AND state = 0", batch.id);
    while (row.Next()) rest.emplace_back(row.Number(0), row.Text(1));
    HEARTH_TRY(row.status());
  }
  for (const auto& [number, custom_id] : rest) {
    HEARTH_TRY(Sql(db_,
                   "UPDATE lines SET state = 2, result = ?3, body = '' WHERE batch = ?1 AND"
                   " number = ?2",
                   batch.id, number, UnrunLine(custom_id, NewId(), unrun.code, unrun.message))
                   .Run());
  }
  return Sql(db_, "UPDATE batches SET failed = failed + ?2 WHERE id = ?1", batch.id,
             static_cast<int64_t>(rest.size()))
      .Run();
}

// None when no line is of that kind.
Status SqliteStore::AddResultFile(const BatchRow& batch, const std::string& id, bool has_errors,
                                  int64_t now_s) {
  const int64_t state = has_errors ? 2 : 1;
  Sql sum(db_,
          "SELECT COUNT(*), COALESCE(SUM(LENGTH(CAST(result AS BLOB)) + 1), 0) FROM lines"
          " WHERE batch = ?1 AND state = ?2",
          batch.id, state);
  if (!sum.Next()) return sum.status();
  if (sum.Number(0) == 0) return Status();
  const std::string name = batch.id + (has_errors ? "_error.jsonl" : "_output.jsonl");
  HEARTH_TRY(Sql(db_,
                 "INSERT INTO files VALUES (?1, ?2, ?3, 'batch_output', ?4, ?5, 0, ?6, ?7, '', 0)",
                 id, batch.tenant, name, sum.Number(1), now_s, batch.id, int64_t{has_errors})
                 .Run());
  return Sql(db_,
             has_errors ? "UPDATE batches SET error_file = ?2 WHERE id = ?1"
                        : "UPDATE batches SET output_file = ?2 WHERE id = ?1",
             batch.id, id)
      .Run();
}

Status SqliteStore::Finish(const BatchRow& batch, const std::string& status, const Unrun& unrun,
                           int64_t now_s) {
  const MutexLock lock(mu_);
  SqlTransaction all(db_);
  HEARTH_TRY(all.begun());
  if (!unrun.code.empty()) HEARTH_TRY(AnswerRest(batch, unrun));
  // Lines of a cancelled batch that were not run have no answer, and are nobody's any more.
  HEARTH_TRY(Sql(db_, "DELETE FROM lines WHERE batch = ?1 AND state = 0", batch.id).Run());
  HEARTH_TRY(AddResultFile(batch, "file-" + NewId(), false, now_s));
  HEARTH_TRY(AddResultFile(batch, "file-" + NewId(), true, now_s));
  const char* time = status == "completed"   ? "completed_at"
                     : status == "cancelled" ? "cancelled"
                                             : "expired";
  const std::string sql = std::string("UPDATE batches SET status = ?2, finalizing = ?3, ") + time +
                          " = ?3 WHERE id = ?1";
  HEARTH_TRY(Sql(db_, sql.c_str(), batch.id, status, now_s).Run());
  return all.Commit();
}

}  // namespace hearth
