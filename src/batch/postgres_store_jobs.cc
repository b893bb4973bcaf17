// SPDX-License-Identifier: Apache-2.0
// The part of the store in PostgreSQL that keeps jobs and their lines. Whoever changes both a line
// and its batch locks the batch first, so that no two wait for each other.
#include <utility>

#include "batch/postgres_store.h"
#include "server/turns/request_names.h"

namespace hearth {
namespace {

constexpr const char* kBatchColumns =
    "SELECT id, tenant, endpoint, input_file, completion_window, metadata, status, created,"
    " in_progress, expires, finalizing, completed_at, failed_at, expired, cancelling, cancelled,"
    " total, completed, failed, errors, output_file, error_file,"
    " CASE WHEN due = 0 THEN expires ELSE due END FROM hearth_batches ";

BatchRow BatchFrom(const PgRows& rows, int row) {
  const auto text = [&](int column) { return rows.Text(row, column); };
  BatchRow batch{text(0), text(1), text(2), text(3), text(4), text(5)};
  batch.status = text(6);
  int column = 7;
  for (int64_t* number :
       {&batch.created_s, &batch.in_progress_s, &batch.expires_s, &batch.finalizing_s,
        &batch.completed_s, &batch.failed_s, &batch.expired_s, &batch.cancelling_s,
        &batch.cancelled_s, &batch.total, &batch.completed, &batch.failed}) {
    *number = rows.Number(row, column++);
  }
  batch.errors = text(column++);
  batch.output_file = text(column++);
  batch.error_file = text(column++);
  batch.due_s = rows.Number(row, column);
  return batch;
}

std::vector<BatchRow> AllOf(const PgRows& rows) {
  std::vector<BatchRow> batches;
  for (int i = 0; i < rows.size(); ++i) batches.push_back(BatchFrom(rows, i));
  return batches;
}

// Bytes as COPY wants them in a column of bytea.
void AppendHex(const std::string& bytes, std::string& out) {
  constexpr const char* kDigits = "0123456789abcdef";
  out += "\\\\x";
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
}

bool IsOver(const std::string& status) {
  return status != "validating" && status != "in_progress" && status != "cancelling";
}

}  // namespace

Status PostgresStore::AddBatch(const BatchRow& batch) {
  const MutexLock lock(mu_);
  return db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    return db_
        .Run(
            "INSERT INTO hearth_batches (id, tenant, endpoint, input_file, completion_window,"
            " metadata, status, created, expires, due) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9,"
            " $10)"
            " ON CONFLICT (id) DO NOTHING",
            batch.id, batch.tenant, batch.endpoint, batch.input_file, batch.window,
            PgBytes{batch.metadata}, batch.status, batch.created_s, batch.expires_s, batch.due_s)
        .status();
  });
}

Result<std::optional<BatchRow>> PostgresStore::FindBatch(const std::string& tenant,
                                                         const std::string& id) {
  const MutexLock lock(mu_);
  std::optional<BatchRow> batch;
  HEARTH_TRY(db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    const std::string sql = std::string(kBatchColumns) + "WHERE id = $1 AND tenant = $2";
    HEARTH_ASSIGN(const PgRows rows, db_.Run(sql.c_str(), id, tenant));
    if (rows.size() > 0) batch = BatchFrom(rows, 0);
    return Status();
  }));
  return batch;
}

Result<std::vector<BatchRow>> PostgresStore::ListBatches(const std::string& tenant,
                                                         const ListRange& range) {
  const MutexLock lock(mu_);
  std::vector<BatchRow> batches;
  HEARTH_TRY(db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    const std::string sql =
        std::string(kBatchColumns) +
        "WHERE tenant = $1 AND ($2 = '' OR seq < (SELECT seq FROM hearth_batches WHERE id = $2 AND"
        " tenant = $1)) ORDER BY seq DESC LIMIT $3";
    HEARTH_ASSIGN(const PgRows rows,
                  db_.Run(sql.c_str(), tenant, range.after, int64_t{range.limit}));
    batches = AllOf(rows);
    return Status();
  }));
  return batches;
}

Result<std::vector<BatchRow>> PostgresStore::Unfinished() {
  const MutexLock lock(mu_);
  std::vector<BatchRow> batches;
  HEARTH_TRY(db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    const std::string sql =
        std::string(kBatchColumns) +
        "WHERE status IN ('validating', 'in_progress', 'cancelling') ORDER BY seq";
    HEARTH_ASSIGN(const PgRows rows, db_.Run(sql.c_str()));
    batches = AllOf(rows);
    return Status();
  }));
  return batches;
}

Result<JobCounts> PostgresStore::Count() {
  const MutexLock lock(mu_);
  JobCounts counts;
  HEARTH_TRY(db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    counts = {};
    HEARTH_ASSIGN(const PgRows rows,
                  db_.Run("SELECT status, COUNT(*), SUM(total - completed - failed)::int8"
                          " FROM hearth_batches GROUP BY status"));
    for (int i = 0; i < rows.size(); ++i) {
      counts.jobs.emplace_back(rows.Text(i, 0), rows.Number(i, 1));
      if (rows.Text(i, 0) == "in_progress") counts.unanswered += rows.Number(i, 2);
    }
    return Status();
  }));
  return counts;
}

Result<std::string> PostgresStore::Lock(const BatchRow& batch) {
  HEARTH_ASSIGN(const PgRows rows,
                db_.Run("SELECT status FROM hearth_batches WHERE id = $1 FOR UPDATE", batch.id));
  if (rows.size() == 0) return Error(Code::kNotFound, "the batch is gone");
  return rows.Text(0, 0);
}

Status PostgresStore::CheckLines(const BatchRow& batch, size_t more) {
  HEARTH_TRY(db_.Run("SELECT pg_advisory_xact_lock(2, hashtext($1))", batch.tenant).status());
  HEARTH_ASSIGN(const PgRows pending,
                db_.Run("SELECT COALESCE(SUM(total - completed - failed), 0)::int8 FROM"
                        " hearth_batches WHERE tenant = $1 AND status = 'in_progress'",
                        batch.tenant));
  return CheckPending(quota_, pending.Number(0, 0), more);
}

// Several replicas may have read the file: the first one's lines count.
Status PostgresStore::Begin(const BatchRow& batch, const std::vector<BatchLine>& lines,
                            int64_t now_s) {
  std::string rows;
  int64_t number = 0;
  for (const BatchLine& line : lines) {
    rows += batch.id + "\t" + std::to_string(++number) + "\t";
    AppendHex(line.custom_id, rows);
    rows += "\t";
    AppendHex(line.body, rows);
    rows += "\n";
  }
  const MutexLock lock(mu_);
  return db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    HEARTH_ASSIGN(const std::string status, Lock(batch));
    if (status != "validating") return Status();
    HEARTH_TRY(CheckLines(batch, lines.size()));
    HEARTH_TRY(db_.Copy("COPY hearth_lines (batch, number, custom_id, body) FROM STDIN", rows));
    return db_
        .Run(
            "UPDATE hearth_batches SET total = $2, in_progress = $3, status = 'in_progress'"
            " WHERE id = $1",
            batch.id, number, now_s)
        .status();
  });
}

Status PostgresStore::Fail(const BatchRow& batch, const std::string& errors, int64_t now_s) {
  const MutexLock lock(mu_);
  return db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    return db_
        .Run(
            "UPDATE hearth_batches SET status = 'failed', errors = $2, failed_at = $3"
            " WHERE id = $1 AND status = 'validating'",
            batch.id, PgBytes{errors}, now_s)
        .status();
  });
}

Status PostgresStore::BeginCancel(const BatchRow& batch, int64_t now_s) {
  const MutexLock lock(mu_);
  return db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    return db_
        .Run(
            "UPDATE hearth_batches SET status = 'cancelling', cancelling = $2 WHERE id = $1 AND"
            " status IN ('validating', 'in_progress')",
            batch.id, now_s)
        .status();
  });
}

// Of two that ask at once each gets another line: what one is about to claim the other skips. Times
// are the server's own, whatever the replicas' clocks say. A claim that ends later than any claim
// may was made before the server's clock was set back: whoever made it renews it soon, or is dead.
Result<std::optional<LineRow>> PostgresStore::Claim(const std::string& batch, int64_t) {
  const MutexLock lock(mu_);
  std::optional<LineRow> line;
  HEARTH_TRY(db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    line.reset();
    HEARTH_ASSIGN(
        const PgRows rows,
        db_.Run(
            "UPDATE hearth_lines SET owner = $2, claimed = now() + $3 * interval '1 second'"
            " WHERE batch = $1 AND number = (SELECT number FROM hearth_lines WHERE batch = $1"
            " AND state = 0 AND (claimed < now() OR claimed > now() + 2 * $3 * interval '1 second')"
            " ORDER BY number LIMIT 1"
            " FOR UPDATE SKIP LOCKED) RETURNING number, custom_id, body",
            batch, owner_, quota_.claim_s));
    if (rows.size() > 0) line = LineRow{rows.Number(0, 0), rows.Text(0, 1), rows.Text(0, 2)};
    return Status();
  }));
  return line;
}

Status PostgresStore::GiveBack(const std::string& batch, int64_t number) {
  const MutexLock lock(mu_);
  return db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    return db_
        .Run(
            "UPDATE hearth_lines SET claimed = '-infinity' WHERE batch = $1 AND number = $2 AND"
            " owner = $3 AND state = 0",
            batch, number, owner_)
        .status();
  });
}

Status PostgresStore::RenewClaims(const std::string& batch, const std::vector<int64_t>& numbers) {
  std::string list;
  for (const int64_t number : numbers) list += (list.empty() ? "" : ",") + std::to_string(number);
  list = "{" + list + "}";
  const MutexLock lock(mu_);
  return db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    return db_
        .Run(
            "UPDATE hearth_lines SET claimed = now() + $4 * interval '1 second' WHERE batch = $1"
            " AND number = ANY($2::text::int8[]) AND owner = $3 AND state = 0",
            batch, list, owner_, quota_.claim_s)
        .status();
  });
}

Status PostgresStore::DropClaims() {
  const MutexLock lock(mu_);
  return db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    return db_
        .Run("UPDATE hearth_lines SET claimed = '-infinity' WHERE owner = $1 AND state = 0", owner_)
        .status();
  });
}

Result<bool> PostgresStore::HasUnanswered(const std::string& batch) {
  const MutexLock lock(mu_);
  bool has_one = false;
  HEARTH_TRY(db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    HEARTH_ASSIGN(const PgRows rows, db_.Run("SELECT 1::int8 FROM hearth_lines WHERE batch = $1"
                                             " AND state = 0 LIMIT 1",
                                             batch));
    has_one = rows.size() > 0;
    return Status();
  }));
  return has_one;
}

// The state is part of the question: a second answer changes nothing and counts nothing.
Result<bool> PostgresStore::PutResult(const std::string& batch, int64_t number, bool is_error,
                                      const std::string& result) {
  const MutexLock lock(mu_);
  bool is_first = false;
  const Status status = db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    HEARTH_TRY(db_.Run("SELECT id FROM hearth_batches WHERE id = $1 FOR UPDATE", batch).status());
    HEARTH_ASSIGN(const PgRows rows,
                  db_.Run("UPDATE hearth_lines SET state = $3, result = $4, body = '' WHERE"
                          " batch = $1 AND number = $2 AND state = 0 RETURNING number",
                          batch, number, int64_t{is_error ? 2 : 1}, PgBytes{result}));
    is_first = rows.size() == 1;
    if (!is_first) return Status();
    return db_
        .Run(
            "UPDATE hearth_batches SET completed = completed + $2, failed = failed + $3"
            " WHERE id = $1",
            batch, int64_t{!is_error}, int64_t{is_error})
        .status();
  });
  HEARTH_TRY(status);
  return is_first;
}

Status PostgresStore::AnswerRest(const BatchRow& batch, const Unrun& unrun) {
  HEARTH_ASSIGN(const PgRows rest, db_.Run("SELECT number, custom_id FROM hearth_lines WHERE"
                                           " batch = $1 AND state = 0",
                                           batch.id));
  for (int i = 0; i < rest.size(); ++i) {
    const std::string answer = UnrunLine(rest.Text(i, 1), NewId(), unrun.code, unrun.message);
    HEARTH_TRY(db_.Run("UPDATE hearth_lines SET state = 2, result = $3, body = '' WHERE"
                       " batch = $1 AND number = $2",
                       batch.id, rest.Number(i, 0), PgBytes{answer})
                   .status());
  }
  return db_
      .Run("UPDATE hearth_batches SET failed = failed + $2 WHERE id = $1", batch.id,
           int64_t{rest.size()})
      .status();
}

// None when no line is of that kind.
Status PostgresStore::AddResultFile(const BatchRow& batch, const std::string& id, bool has_errors,
                                    int64_t now_s) {
  HEARTH_ASSIGN(const PgRows sum,
                db_.Run("SELECT COUNT(*), COALESCE(SUM(LENGTH(result) + 1), 0)::int8 FROM"
                        " hearth_lines WHERE batch = $1 AND state = $2",
                        batch.id, int64_t{has_errors ? 2 : 1}));
  if (sum.Number(0, 0) == 0) return Status();
  const std::string name = batch.id + (has_errors ? "_error.jsonl" : "_output.jsonl");
  HEARTH_TRY(db_.Run("INSERT INTO hearth_files (id, tenant, name, purpose, bytes, created, expires,"
                     " batch, has_errors, content) VALUES ($1, $2, $3, 'batch_output', $4, $5, 0,"
                     " $6, $7, '')",
                     id, batch.tenant, PgBytes{name}, sum.Number(0, 1), now_s, batch.id,
                     int64_t{has_errors})
                 .status());
  return db_
      .Run(has_errors ? "UPDATE hearth_batches SET error_file = $2 WHERE id = $1"
                      : "UPDATE hearth_batches SET output_file = $2 WHERE id = $1",
           batch.id, id)
      .status();
}

Status PostgresStore::Finish(const BatchRow& batch, const std::string& status, const Unrun& unrun,
                             int64_t now_s) {
  const MutexLock lock(mu_);
  return db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    HEARTH_ASSIGN(const std::string before, Lock(batch));
    if (IsOver(before)) return Status();  // another replica was first
    if (!unrun.code.empty()) HEARTH_TRY(AnswerRest(batch, unrun));
    // Lines of a cancelled batch that were not run have no answer, and are nobody's any more.
    HEARTH_TRY(
        db_.Run("DELETE FROM hearth_lines WHERE batch = $1 AND state = 0", batch.id).status());
    HEARTH_TRY(AddResultFile(batch, "file-" + NewId(), false, now_s));
    HEARTH_TRY(AddResultFile(batch, "file-" + NewId(), true, now_s));
    const char* time = status == "completed"   ? "completed_at"
                       : status == "cancelled" ? "cancelled"
                                               : "expired";
    const std::string sql =
        std::string("UPDATE hearth_batches SET status = $2, finalizing = $3, ") + time +
        " = $3 WHERE id = $1";
    return db_.Run(sql.c_str(), batch.id, status, now_s).status();
  });
}

}  // namespace hearth
