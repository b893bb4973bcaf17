// SPDX-License-Identifier: Apache-2.0
#include "server/turns/response_store.h"

#include <sqlite3.h>

#include <algorithm>
#include <utility>

namespace hearth {
namespace {

Status Complaint(sqlite3* db, const char* doing) {
  return Error(Code::kIo, "stored responses: %s: %s", doing, sqlite3_errmsg(db));
}

}  // namespace

// One SQL statement with its values; every text is bound, none is ever part of the SQL.
struct ResponseStore::Statement {
  Statement(sqlite3* db, const char* sql) { sqlite3_prepare_v2(db, sql, -1, &handle, nullptr); }
  ~Statement() { sqlite3_finalize(handle); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  void Bind(const std::string& text) {
    sqlite3_bind_text64(handle, ++num_bound, text.data(), text.size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
  }
  void Bind(int64_t number) { sqlite3_bind_int64(handle, ++num_bound, number); }
  int Step() { return handle == nullptr ? SQLITE_ERROR : sqlite3_step(handle); }
  std::string Text(int column) const {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(handle, column));
    const int size = sqlite3_column_bytes(handle, column);
    return bytes == nullptr ? std::string() : std::string(bytes, static_cast<size_t>(size));
  }
  int64_t Number(int column) const { return sqlite3_column_int64(handle, column); }

  sqlite3_stmt* handle = nullptr;
  int num_bound = 0;
};

Result<std::unique_ptr<ResponseStore>> ResponseStore::Open(const std::string& path,
                                                           const StoreLimits& limits) {
  sqlite3* db = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int opened = sqlite3_open_v2(path.empty() ? ":memory:" : path.c_str(), &db, flags, nullptr);
  std::unique_ptr<ResponseStore> store(new ResponseStore(db, limits));
  if (opened != SQLITE_OK) return Complaint(db, Quoted(path).c_str());
  sqlite3_busy_timeout(db, 2000);
  const MutexLock lock(store->mu_);
  for (const char* sql :
       {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", "PRAGMA secure_delete = ON",
        "CREATE TABLE IF NOT EXISTS responses (tenant TEXT NOT NULL, id TEXT NOT NULL,"
        " previous TEXT NOT NULL, input TEXT NOT NULL, response TEXT NOT NULL,"
        " bytes INTEGER NOT NULL, created INTEGER NOT NULL, used INTEGER NOT NULL,"
        " PRIMARY KEY (tenant, id))",
        "CREATE TABLE IF NOT EXISTS secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL)",
        "CREATE INDEX IF NOT EXISTS by_use ON responses (used)",
        "CREATE INDEX IF NOT EXISTS by_age ON responses (created)"}) {
    HEARTH_TRY(store->Run(sql));
  }
  HEARTH_TRY(store->Count());
  HEARTH_TRY(store->ReadSealKey());
  return store;
}

// Made once; whoever comes second to a new file takes the first one's.
Status ResponseStore::ReadSealKey() {
  const SealKey fresh = NewSealKey();
  Statement make(db_, "INSERT OR IGNORE INTO secrets VALUES ('seal', ?1)");
  make.Bind(std::string(fresh.begin(), fresh.end()));
  if (make.Step() != SQLITE_DONE) return Complaint(db_, "storing a secret");
  Statement read(db_, "SELECT value FROM secrets WHERE name = 'seal'");
  if (read.Step() != SQLITE_ROW) return Complaint(db_, "reading a secret");
  const std::string value = read.Text(0);
  if (value.size() != seal_key_.size()) {
    return Error(Code::kCorrupt, "stored responses: a secret of %zu bytes, expected %zu",
                 value.size(), seal_key_.size());
  }
  std::copy(value.begin(), value.end(), seal_key_.begin());
  return Status();
}

ResponseStore::~ResponseStore() { sqlite3_close_v2(db_); }

Status ResponseStore::Run(const char* sql) {
  if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return Status();
  return Complaint(db_, "opening");
}

Status ResponseStore::Count() {
  Statement sums(db_, "SELECT COUNT(*), COALESCE(SUM(bytes), 0) FROM responses");
  if (sums.Step() != SQLITE_ROW) return Complaint(db_, "counting");
  count_ = sums.Number(0);
  bytes_ = sums.Number(1);
  return Status();
}

// The SQL ends in RETURNING bytes; answers how many rows went.
Result<int64_t> ResponseStore::Remove(const char* sql, const std::vector<std::string>& texts,
                                      const std::vector<int64_t>& numbers) {
  Statement remove(db_, sql);
  for (const std::string& text : texts) remove.Bind(text);
  for (const int64_t number : numbers) remove.Bind(number);
  int64_t removed = 0;
  int step = remove.Step();
  for (; step == SQLITE_ROW; step = remove.Step()) {
    ++removed;
    --count_;
    bytes_ -= remove.Number(0);
  }
  if (step != SQLITE_DONE) return Complaint(db_, "deleting");
  return removed;
}

Status ResponseStore::Evict(int64_t now_s) {
  HEARTH_TRY(Remove("DELETE FROM responses WHERE created < ?1 RETURNING bytes", {},
                    {now_s - limits_.max_age_s})
                 .status());
  while (count_ > limits_.max_count || bytes_ > limits_.max_bytes) {
    HEARTH_ASSIGN(const int64_t removed,
                  Remove("DELETE FROM responses WHERE rowid ="
                         " (SELECT rowid FROM responses ORDER BY used, rowid LIMIT 1)"
                         " RETURNING bytes",
                         {}, {}));
    if (removed == 0) return Count();
  }
  return Status();
}

Status ResponseStore::Put(const std::string& tenant, const StoredResponse& response,
                          int64_t now_s) {
  const MutexLock lock(mu_);
  Status status = Insert(tenant, response, now_s);
  if (!status.ok()) ++failures_;
  return status;
}

Status ResponseStore::Insert(const std::string& tenant, const StoredResponse& response,
                             int64_t now_s) {
  const auto bytes = static_cast<int64_t>(response.input.size() + response.response.size());
  if (bytes > limits_.max_bytes) {
    return Error(Code::kExhausted, "a response of %lld bytes is not stored: at most %lld",
                 static_cast<long long>(bytes), static_cast<long long>(limits_.max_bytes));
  }
  Statement insert(db_, "INSERT INTO responses VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
  for (const std::string* text :
       {&tenant, &response.id, &response.previous_id, &response.input, &response.response}) {
    insert.Bind(*text);
  }
  for (const int64_t number : {bytes, now_s, now_s}) insert.Bind(number);
  if (insert.Step() != SQLITE_DONE) return Complaint(db_, "storing");
  ++count_;
  bytes_ += bytes;
  return Evict(now_s);
}

Result<std::optional<StoredResponse>> ResponseStore::Find(const std::string& tenant,
                                                          const std::string& id, int64_t now_s) {
  Statement use(db_,
                "UPDATE responses SET used = ?3 WHERE tenant = ?1 AND id = ?2 AND created >= ?4"
                " RETURNING previous, input, response");
  use.Bind(tenant);
  use.Bind(id);
  use.Bind(now_s);
  use.Bind(now_s - limits_.max_age_s);
  const int step = use.Step();
  if (step == SQLITE_DONE) return std::optional<StoredResponse>();
  if (step != SQLITE_ROW) return Complaint(db_, "reading");
  return std::optional(StoredResponse{id, use.Text(0), use.Text(1), use.Text(2)});
}

Result<std::optional<StoredResponse>> ResponseStore::Get(const std::string& tenant,
                                                         const std::string& id, int64_t now_s) {
  const MutexLock lock(mu_);
  return Find(tenant, id, now_s);
}

Result<std::vector<StoredResponse>> ResponseStore::Chain(const std::string& tenant,
                                                         const std::string& id, int64_t now_s) {
  const MutexLock lock(mu_);
  std::vector<StoredResponse> chain;
  for (std::string next = id; !next.empty(); next = chain.back().previous_id) {
    if (static_cast<int>(chain.size()) >= limits_.max_chain) {
      return Error(Code::kExhausted, "more than %d responses build on each other",
                   limits_.max_chain);
    }
    HEARTH_ASSIGN(std::optional<StoredResponse> found, Find(tenant, next, now_s));
    if (!found) {
      return Error(Code::kNotFound, "response %s is not stored, or no longer",
                   Quoted(next).c_str());
    }
    chain.push_back(*std::move(found));
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

Result<bool> ResponseStore::Delete(const std::string& tenant, const std::string& id) {
  const MutexLock lock(mu_);
  HEARTH_ASSIGN(const int64_t removed,
                Remove("DELETE FROM responses WHERE tenant = ?1 AND id = ?2 RETURNING bytes",
                       {tenant, id}, {}));
  return removed > 0;
}

StoreCounts ResponseStore::counts() const {
  const MutexLock lock(mu_);
  return {count_, bytes_, failures_};
}

}  // namespace hearth
