// SPDX-License-Identifier: Apache-2.0
#include "batch/sqlite_store.h"

#include <sqlite3.h>

#include <utility>

#include "batch/sqlite_sql.h"
#include "server/turns/private_file.h"

namespace hearth {
namespace {

// SQLite's user_version of the file. Another one needs a step from each before it.
// 1: without ages.
constexpr int64_t kFormat = 2;

constexpr const char* kFileColumns =
    "SELECT id, tenant, name, purpose, bytes, created, expires, batch, has_errors, due"
    " FROM files ";
FileRow FileFrom(const Sql& row) {
  FileRow file{row.Text(0), row.Text(1), row.Text(2), row.Text(3)};
  file.bytes = row.Number(4);
  file.created_s = row.Number(5);
  file.expires_s = row.Number(6);
  file.batch = row.Text(7);
  file.has_errors = row.Number(8) != 0;
  file.due_s = row.Number(9);
  return file;
}

}  // namespace

Result<std::unique_ptr<BatchStore>> SqliteStore::Open(const std::string& path,
                                                      const BatchQuota& quota) {
  // SQLite would make it readable by everybody.
  if (!path.empty()) HEARTH_TRY(MakePrivate(path).Within("batch jobs"));
  sqlite3* db = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int opened = sqlite3_open_v2(path.empty() ? ":memory:" : path.c_str(), &db, flags, nullptr);
  std::unique_ptr<SqliteStore> store(new SqliteStore(db, quota));
  if (opened != SQLITE_OK) {
    return Error(Code::kIo, "batch jobs: %s: %s", Quoted(path).c_str(),
                 db == nullptr ? "no memory" : sqlite3_errmsg(db));
  }
  sqlite3_busy_timeout(db, 5000);
  HEARTH_TRY(store->Make());
  return std::unique_ptr<BatchStore>(std::move(store));
}

SqliteStore::~SqliteStore() { sqlite3_close_v2(db_); }

Status SqliteStore::Make() {
  const MutexLock lock(mu_);
  int64_t format = 0;
  {
    Sql version(db_, "PRAGMA user_version");
    if (!version.Next()) return version.status();
    format = version.Number(0);
    if (format > kFormat) {
      return Error(Code::kUnsupported,
                   "batch jobs: the file has format %lld, this version of Hearth reads up to %lld",
                   static_cast<long long>(version.Number(0)), static_cast<long long>(kFormat));
    }
  }
  for (const char* sql :
       {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", "PRAGMA secure_delete = ON",
        "PRAGMA temp_store = MEMORY", "PRAGMA foreign_keys = ON",
        "CREATE TABLE IF NOT EXISTS files (id TEXT PRIMARY KEY, tenant TEXT NOT NULL,"
        " name TEXT NOT NULL, purpose TEXT NOT NULL, bytes INTEGER NOT NULL,"
        " created INTEGER NOT NULL, expires INTEGER NOT NULL, batch TEXT NOT NULL,"
        " has_errors INTEGER NOT NULL, content BLOB NOT NULL)",
        "CREATE INDEX IF NOT EXISTS files_of ON files (tenant, created)",
        "CREATE TABLE IF NOT EXISTS batches (id TEXT PRIMARY KEY, tenant TEXT NOT NULL,"
        " endpoint TEXT NOT NULL, input_file TEXT NOT NULL, window TEXT NOT NULL,"
        " metadata TEXT NOT NULL, status TEXT NOT NULL, created INTEGER NOT NULL,"
        " in_progress INTEGER NOT NULL DEFAULT 0, expires INTEGER NOT NULL DEFAULT 0,"
        " finalizing INTEGER NOT NULL DEFAULT 0, completed_at INTEGER NOT NULL DEFAULT 0,"
        " failed_at INTEGER NOT NULL DEFAULT 0, expired INTEGER NOT NULL DEFAULT 0,"
        " cancelling INTEGER NOT NULL DEFAULT 0, cancelled INTEGER NOT NULL DEFAULT 0,"
        " total INTEGER NOT NULL DEFAULT 0, completed INTEGER NOT NULL DEFAULT 0,"
        " failed INTEGER NOT NULL DEFAULT 0, errors TEXT NOT NULL DEFAULT '',"
        " output_file TEXT NOT NULL DEFAULT '', error_file TEXT NOT NULL DEFAULT '')",
        "CREATE INDEX IF NOT EXISTS batches_of ON batches (tenant, created)",
        // state: 0 to be run, 1 answered, 2 answered with an error
        "CREATE TABLE IF NOT EXISTS lines (batch TEXT NOT NULL, number INTEGER NOT NULL,"
        " custom_id TEXT NOT NULL, body TEXT NOT NULL, state INTEGER NOT NULL DEFAULT 0,"
        " result TEXT NOT NULL DEFAULT '', PRIMARY KEY (batch, number)) WITHOUT ROWID"}) {
    HEARTH_TRY(Sql(db_, sql).Run());
  }
  return format < kFormat ? AddAges() : Status();
}

// All at once, with the number of the format: one that was cut short is begun again.
Status SqliteStore::AddAges() {
  SqlTransaction all(db_);
  HEARTH_TRY(all.begun());
  for (const char* sql : {"ALTER TABLE files ADD COLUMN due INTEGER NOT NULL DEFAULT 0",
                          "ALTER TABLE batches ADD COLUMN due INTEGER NOT NULL DEFAULT 0",
                          "UPDATE files SET due = expires", "UPDATE batches SET due = expires",
                          "CREATE TABLE clock (one INTEGER PRIMARY KEY, record TEXT NOT NULL)",
                          // What is there has dates for ages, and AgeRecord::Begin says so.
                          "INSERT INTO clock SELECT 1, MIN(created) || ' 0 - 0' FROM"
                          " (SELECT created FROM files UNION ALL SELECT created FROM batches)"
                          " HAVING COUNT(*) > 0",
                          "PRAGMA user_version = 2"}) {
    HEARTH_TRY(Sql(db_, sql).Run());
  }
  return all.Commit();
}

Result<std::optional<AgeRecord>> SqliteStore::KeptAge() {
  Sql row(db_, "SELECT record FROM clock WHERE one = 1");
  if (row.Next()) return AgeRecord::Parse(row.Text(0));
  HEARTH_TRY(row.status());
  return std::optional<AgeRecord>();
}

Result<int64_t> SqliteStore::Age(const ClockReading& now) {
  const MutexLock lock(mu_);
  if (!age_.IsDue(now)) return age_.Age(now);
  HEARTH_ASSIGN(const std::optional<AgeRecord> kept, KeptAge());
  const AgeRecord record = age_.Sync(now, kept ? *kept : AgeRecord::Begin(now));
  // On a full disk the age is right all the same, and written when there is room.
  if (!kept || record.IsNews(*kept)) {
    (void)Sql(db_, "INSERT OR REPLACE INTO clock VALUES (1, ?1)", record.Write()).Run().ok();
  }
  return age_.Age(now);
}

// Results count as well: their files' sizes are known when they are made.
Status SqliteStore::CheckBytes(const std::string& tenant, int64_t more) {
  Sql sum(db_, "SELECT COUNT(*), COALESCE(SUM(bytes), 0) FROM files WHERE tenant = ?1", tenant);
  if (!sum.Next()) return sum.status();
  return CheckFiles(quota_, sum.Number(0), sum.Number(1), more);
}

Status SqliteStore::AddFile(const FileRow& file, const std::string& content) {
  const MutexLock lock(mu_);
  HEARTH_TRY(CheckBytes(file.tenant, file.bytes));
  return Sql(db_, "INSERT INTO files VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
             file.id, file.tenant, file.name, file.purpose, file.bytes, file.created_s,
             file.expires_s, file.batch, int64_t{file.has_errors}, content, file.due_s)
      .Run();
}

Result<std::optional<FileRow>> SqliteStore::FindFile(const std::string& tenant,
                                                     const std::string& id) {
  const MutexLock lock(mu_);
  const std::string sql = std::string(kFileColumns) + "WHERE id = ?1 AND tenant = ?2";
  Sql row(db_, sql.c_str(), id, tenant);
  if (row.Next()) return std::optional(FileFrom(row));
  HEARTH_TRY(row.status());
  return std::optional<FileRow>();
}

Result<std::vector<FileRow>> SqliteStore::ListFiles(const std::string& tenant,
                                                    const std::string& purpose,
                                                    const ListRange& range) {
  const MutexLock lock(mu_);
  const std::string sql =
      std::string(kFileColumns) +
      "WHERE tenant = ?1 AND (?2 = '' OR purpose = ?2) AND (?3 = '' OR rowid <"
      " (SELECT rowid FROM files WHERE id = ?3 AND tenant = ?1)) ORDER BY rowid DESC LIMIT ?4";
  Sql row(db_, sql.c_str(), tenant, purpose, range.after, int64_t{range.limit});
  std::vector<FileRow> files;
  while (row.Next()) files.push_back(FileFrom(row));
  HEARTH_TRY(row.status());
  return files;
}

Result<std::string> SqliteStore::ReadFile(const FileRow& file) {
  const MutexLock lock(mu_);
  if (file.batch.empty()) {
    Sql row(db_, "SELECT content FROM files WHERE id = ?1", file.id);
    if (row.Next()) return row.Text(0);
    HEARTH_TRY(row.status());
    return Error(Code::kNotFound, "the file is gone");
  }
  std::string content;
  content.reserve(static_cast<size_t>(file.bytes));
  Sql row(db_, "SELECT result FROM lines WHERE batch = ?1 AND state = ?2 ORDER BY number",
          file.batch, int64_t{file.has_errors ? 2 : 1});
  while (row.Next()) content += row.Text(0) + "\n";
  HEARTH_TRY(row.status());
  return content;
}

Status SqliteStore::DeleteFile(const FileRow& file) {
  const MutexLock lock(mu_);
  SqlTransaction all(db_);
  HEARTH_TRY(all.begun());
  Sql reading(db_, "SELECT id FROM batches WHERE input_file = ?1 AND status = 'validating'",
              file.id);
  if (reading.Next()) return Error(Code::kInvalid, "a batch is being made of this file");
  HEARTH_TRY(reading.status());
  HEARTH_TRY(Sql(db_, "DELETE FROM files WHERE id = ?1", file.id).Run());
  if (!file.batch.empty()) {
    HEARTH_TRY(Sql(db_, "DELETE FROM lines WHERE batch = ?1 AND state = ?2", file.batch,
                   int64_t{file.has_errors ? 2 : 1})
                   .Run());
  }
  return all.Commit();
}

Status SqliteStore::DeleteExpired(int64_t age_s) {
  std::vector<FileRow> old;
  {
    const MutexLock lock(mu_);
    const std::string sql = std::string(kFileColumns) + "WHERE due > 0 AND due <= ?1";
    Sql row(db_, sql.c_str(), age_s);
    while (row.Next()) old.push_back(FileFrom(row));
    HEARTH_TRY(row.status());
  }
  for (const FileRow& file : old) {
    const Status status = DeleteFile(file);
    if (!status.ok() && status.code() != Code::kInvalid) return status;
  }
  return Status();
}

}  // namespace hearth
