// SPDX-License-Identifier: Apache-2.0
#include "batch/postgres_store.h"

#include <utility>

#include "server/turns/request_names.h"

namespace hearth {
namespace {

// In the table hearth_format. Another one needs a step from each before it.
// 1: without ages.
constexpr int64_t kFormat = 2;

// The database's locks that are not for one tenant.
constexpr int64_t kMakeLock = 0x686561727468, kClockLock = kMakeLock + 1;

constexpr const char* kFileColumns =
    "SELECT id, tenant, name, purpose, bytes, created, expires, batch, has_errors, due"
    " FROM hearth_files ";
FileRow FileFrom(const PgRows& rows, int row) {
  FileRow file{rows.Text(row, 0), rows.Text(row, 1), rows.Text(row, 2), rows.Text(row, 3)};
  file.bytes = rows.Number(row, 4);
  file.created_s = rows.Number(row, 5);
  file.expires_s = rows.Number(row, 6);
  file.batch = rows.Text(row, 7);
  file.has_errors = rows.Number(row, 8) != 0;
  file.due_s = rows.Number(row, 9);
  return file;
}

// What clients wrote is bytea: it need not be text that PostgreSQL takes.
constexpr const char* kSchema[] = {
    "CREATE TABLE IF NOT EXISTS hearth_format (version INT8 NOT NULL)",
    "INSERT INTO hearth_format SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM hearth_format)",
    "CREATE TABLE IF NOT EXISTS hearth_files (seq BIGSERIAL, id TEXT PRIMARY KEY,"
    " tenant TEXT NOT NULL, name BYTEA NOT NULL, purpose BYTEA NOT NULL, bytes INT8 NOT NULL,"
    " created INT8 NOT NULL, expires INT8 NOT NULL, batch TEXT NOT NULL, has_errors INT8 NOT NULL,"
    " content BYTEA NOT NULL)",
    "CREATE INDEX IF NOT EXISTS hearth_files_of ON hearth_files (tenant, seq)",
    "CREATE TABLE IF NOT EXISTS hearth_batches (seq BIGSERIAL, id TEXT PRIMARY KEY,"
    " tenant TEXT NOT NULL, endpoint TEXT NOT NULL, input_file TEXT NOT NULL,"
    " completion_window TEXT NOT NULL, metadata BYTEA NOT NULL, status TEXT NOT NULL,"
    " created INT8 NOT NULL, in_progress INT8 NOT NULL DEFAULT 0, expires INT8 NOT NULL DEFAULT 0,"
    " finalizing INT8 NOT NULL DEFAULT 0, completed_at INT8 NOT NULL DEFAULT 0,"
    " failed_at INT8 NOT NULL DEFAULT 0, expired INT8 NOT NULL DEFAULT 0,"
    " cancelling INT8 NOT NULL DEFAULT 0, cancelled INT8 NOT NULL DEFAULT 0,"
    " total INT8 NOT NULL DEFAULT 0, completed INT8 NOT NULL DEFAULT 0,"
    " failed INT8 NOT NULL DEFAULT 0, errors BYTEA NOT NULL DEFAULT '',"
    " output_file TEXT NOT NULL DEFAULT '', error_file TEXT NOT NULL DEFAULT '')",
    "CREATE INDEX IF NOT EXISTS hearth_batches_of ON hearth_batches (tenant, seq)",
    // state: 0 to be run, 1 answered, 2 answered with an error; claimed: until when
    "CREATE TABLE IF NOT EXISTS hearth_lines (batch TEXT NOT NULL, number INT8 NOT NULL,"
    " custom_id BYTEA NOT NULL, body BYTEA NOT NULL, state INT8 NOT NULL DEFAULT 0,"
    " result BYTEA NOT NULL DEFAULT '', owner TEXT NOT NULL DEFAULT '',"
    " claimed TIMESTAMPTZ NOT NULL DEFAULT '-infinity', PRIMARY KEY (batch, number))",
    "CREATE INDEX IF NOT EXISTS hearth_lines_left ON hearth_lines (batch, number) WHERE state = 0",
};

}  // namespace

PostgresStore::PostgresStore(const std::string& url, const BatchQuota& quota)
    : db_(url), quota_(quota), owner_(NewId()) {}

Result<std::unique_ptr<BatchStore>> PostgresStore::Open(const std::string& url,
                                                        const BatchQuota& quota) {
  std::unique_ptr<PostgresStore> store(new PostgresStore(url, quota));
  HEARTH_TRY(store->Make());
  return std::unique_ptr<BatchStore>(std::move(store));
}

Status PostgresStore::CheckFormat() {
  HEARTH_ASSIGN(const PgRows version, db_.Run("SELECT version FROM hearth_format"));
  if (version.size() == 1 && version.Number(0, 0) <= kFormat) return Status();
  return Error(Code::kUnsupported,
               "batch jobs: the database has format %lld, this version of Hearth reads up to %lld",
               static_cast<long long>(version.size() == 1 ? version.Number(0, 0) : -1),
               static_cast<long long>(kFormat));
}

Status PostgresStore::Make() {
  const MutexLock lock(mu_);
  const Status made = db_.Transact([this]() HEARTH_REQUIRES(mu_) -> Status {
    // IF NOT EXISTS does not keep two replicas that start together from making a table twice.
    HEARTH_TRY(db_.Run("SELECT pg_advisory_xact_lock($1)", kMakeLock).status());
    // All of it was made at once if its last part is there. Making it again would lock tables that
    // other replicas write to, in another order than theirs: a deadlock.
    HEARTH_ASSIGN(const PgRows last,
                  db_.Run("SELECT (to_regclass('hearth_lines_left') IS NOT NULL)::int::int8"));
    if (last.Number(0, 0) == 0) {
      HEARTH_TRY(db_.Run("SET LOCAL client_min_messages = warning").status());
      for (const char* sql : kSchema) HEARTH_TRY(db_.Run(sql).status());
    }
    return CheckFormat();
  });
  HEARTH_TRY(made);
  return AddAges();
}

// Replicas of the version before may be at work: one statement at a time, since a lock on two
// tables would be a deadlock with theirs. What they still add has no age of its own, and by its
// date it goes.
Status PostgresStore::AddAges() {
  for (const char* sql :
       {"ALTER TABLE hearth_files ADD COLUMN IF NOT EXISTS due INT8 NOT NULL DEFAULT 0",
        "ALTER TABLE hearth_batches ADD COLUMN IF NOT EXISTS due INT8 NOT NULL DEFAULT 0",
        "UPDATE hearth_files SET due = expires WHERE due = 0 AND expires > 0",
        "UPDATE hearth_batches SET due = expires WHERE due = 0 AND expires > 0",
        "CREATE TABLE IF NOT EXISTS hearth_clock (one INT8 PRIMARY KEY, record TEXT NOT NULL)",
        // What is there has dates for ages, and AgeRecord::Begin says so.
        "INSERT INTO hearth_clock SELECT 1, MIN(created)::text || ' 0 - 0' FROM (SELECT created"
        " FROM hearth_files UNION ALL SELECT created FROM hearth_batches) AS dates"
        " HAVING COUNT(*) > 0 ON CONFLICT (one) DO NOTHING",
        "UPDATE hearth_format SET version = 2 WHERE version < 2"}) {
    bool is_new = false;
    const Status added = db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
      HEARTH_TRY(db_.Run("SELECT pg_advisory_xact_lock($1)", kMakeLock).status());
      HEARTH_ASSIGN(const PgRows version, db_.Run("SELECT version FROM hearth_format"));
      is_new = version.Number(0, 0) >= 2;
      if (is_new) return Status();
      HEARTH_TRY(db_.Run("SET LOCAL client_min_messages = warning").status());
      return db_.Run(sql).status();
    });
    HEARTH_TRY(added);
    if (is_new) break;
  }
  return Status();
}

// All replicas are as old as the oldest of them thinks: their clocks go alike, and whatever dates
// they have, the one on the wall that counts is the database's.
Status PostgresStore::SyncAge(ClockReading now) {
  HEARTH_TRY(db_.Run("SELECT pg_advisory_xact_lock($1)", kClockLock).status());
  HEARTH_ASSIGN(const PgRows wall, db_.Run("SELECT EXTRACT(EPOCH FROM clock_timestamp())::int8,"
                                           " (SELECT record FROM hearth_clock WHERE one = 1)"));
  now.wall_s = wall.Number(0, 0);
  const std::optional<AgeRecord> kept = AgeRecord::Parse(wall.Text(0, 1));
  const AgeRecord record = age_.Sync(now, kept ? *kept : AgeRecord::Begin(now));
  // Each time, so that the others need not wait for news: the row is small.
  return db_
      .Run(
          "INSERT INTO hearth_clock VALUES (1, $1) ON CONFLICT (one) DO UPDATE SET"
          " record = EXCLUDED.record",
          record.Write())
      .status();
}

Result<int64_t> PostgresStore::Age(const ClockReading& now) {
  const MutexLock lock(mu_);
  if (!age_.IsDue(now)) return age_.Age(now);
  // Failing, such as on a full disk, is no reason to have no age.
  const Status synced = db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status { return SyncAge(now); });
  if (!synced.ok() && !age_.has_begun()) return synced;
  return age_.Age(now);
}

// Results count as well: their files' sizes are known when they are made.
Status PostgresStore::CheckBytes(const std::string& tenant, int64_t more) {
  // Two replicas must not both find the same room.
  HEARTH_TRY(db_.Run("SELECT pg_advisory_xact_lock(1, hashtext($1))", tenant).status());
  HEARTH_ASSIGN(const PgRows sum,
                db_.Run("SELECT COUNT(*), COALESCE(SUM(bytes), 0)::int8 FROM hearth_files"
                        " WHERE tenant = $1",
                        tenant));
  return CheckFiles(quota_, sum.Number(0, 0), sum.Number(0, 1), more);
}

Status PostgresStore::AddFile(const FileRow& file, const std::string& content) {
  const MutexLock lock(mu_);
  return db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    HEARTH_TRY(CheckBytes(file.tenant, file.bytes));
    return db_
        .Run(
            "INSERT INTO hearth_files (id, tenant, name, purpose, bytes, created, expires, batch,"
            " has_errors, content, due) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
            " ON CONFLICT (id) DO NOTHING",
            file.id, file.tenant, PgBytes{file.name}, PgBytes{file.purpose}, file.bytes,
            file.created_s, file.expires_s, file.batch, int64_t{file.has_errors}, PgBytes{content},
            file.due_s)
        .status();
  });
}

Result<std::optional<FileRow>> PostgresStore::FindFile(const std::string& tenant,
                                                       const std::string& id) {
  const MutexLock lock(mu_);
  std::optional<FileRow> file;
  HEARTH_TRY(db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    const std::string sql = std::string(kFileColumns) + "WHERE id = $1 AND tenant = $2";
    HEARTH_ASSIGN(const PgRows rows, db_.Run(sql.c_str(), id, tenant));
    if (rows.size() > 0) file = FileFrom(rows, 0);
    return Status();
  }));
  return file;
}

Result<std::vector<FileRow>> PostgresStore::ListFiles(const std::string& tenant,
                                                      const std::string& purpose,
                                                      const ListRange& range) {
  const MutexLock lock(mu_);
  std::vector<FileRow> files;
  HEARTH_TRY(db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    files.clear();
    const std::string sql =
        std::string(kFileColumns) +
        "WHERE tenant = $1 AND ($2 = ''::bytea OR purpose = $2) AND ($3 = '' OR seq <"
        " (SELECT seq FROM hearth_files WHERE id = $3 AND tenant = $1)) ORDER BY seq DESC LIMIT $4";
    HEARTH_ASSIGN(const PgRows rows, db_.Run(sql.c_str(), tenant, PgBytes{purpose}, range.after,
                                             int64_t{range.limit}));
    for (int i = 0; i < rows.size(); ++i) files.push_back(FileFrom(rows, i));
    return Status();
  }));
  return files;
}

Result<std::string> PostgresStore::ReadFile(const FileRow& file) {
  const MutexLock lock(mu_);
  std::string content;
  HEARTH_TRY(db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    content.clear();
    if (file.batch.empty()) {
      HEARTH_ASSIGN(const PgRows rows,
                    db_.Run("SELECT content FROM hearth_files WHERE id = $1", file.id));
      if (rows.size() == 0) return Error(Code::kNotFound, "the file is gone");
      content = rows.Text(0, 0);
      return Status();
    }
    HEARTH_ASSIGN(const PgRows rows,
                  db_.Run("SELECT result FROM hearth_lines WHERE batch = $1 AND state = $2"
                          " ORDER BY number",
                          file.batch, int64_t{file.has_errors ? 2 : 1}));
    content.reserve(static_cast<size_t>(file.bytes));
    for (int i = 0; i < rows.size(); ++i) content += rows.Text(i, 0) + "\n";
    return Status();
  }));
  return content;
}

Status PostgresStore::DeleteFile(const FileRow& file) {
  const MutexLock lock(mu_);
  return db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
    HEARTH_ASSIGN(const PgRows reading, db_.Run("SELECT id FROM hearth_batches WHERE input_file ="
                                                " $1 AND status = 'validating'",
                                                file.id));
    if (reading.size() > 0) return Error(Code::kInvalid, "a batch is being made of this file");
    HEARTH_TRY(db_.Run("DELETE FROM hearth_files WHERE id = $1", file.id).status());
    if (file.batch.empty()) return Status();
    return db_
        .Run("DELETE FROM hearth_lines WHERE batch = $1 AND state = $2", file.batch,
             int64_t{file.has_errors ? 2 : 1})
        .status();
  });
}

Status PostgresStore::DeleteExpired(int64_t age_s) {
  std::vector<FileRow> old;
  {
    const MutexLock lock(mu_);
    HEARTH_TRY(db_.Transact([&]() HEARTH_REQUIRES(mu_) -> Status {
      old.clear();
      const std::string sql = std::string(kFileColumns) +
                              "WHERE CASE WHEN due = 0 THEN expires ELSE due END BETWEEN 1 AND $1";
      HEARTH_ASSIGN(const PgRows rows, db_.Run(sql.c_str(), age_s));
      for (int i = 0; i < rows.size(); ++i) old.push_back(FileFrom(rows, i));
      return Status();
    }));
  }
  for (const FileRow& file : old) {
    const Status status = DeleteFile(file);
    if (!status.ok() && status.code() != Code::kInvalid) return status;
  }
  return Status();
}

}  // namespace hearth
