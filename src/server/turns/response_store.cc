// SPDX-License-Identifier: Apache-2.0
#include "server/turns/response_store.h"

#include <sqlite3.h>

#include <algorithm>
#include <new>
#include <utility>

#include "server/turns/private_file.h"

namespace hearth {
namespace {

Status Complaint(sqlite3* db, const char* doing) {
  return Error(Code::kIo, "stored responses: %s: %s", doing, sqlite3_errmsg(db));
}

Status Gone(const std::string& id) {
  return Error(Code::kNotFound, "response %s is not stored, or no longer stored",
               Quoted(id).c_str());
}

// SQLite's user_version of the file. Another one needs a step from each before it.
constexpr int64_t kFormat = 1;

}  // namespace

// One SQL statement with its values; every text is bound, none is ever part of the SQL.
struct ResponseStore::Statement {
  Statement(sqlite3* db, const char* sql) { sqlite3_prepare_v2(db, sql, -1, &handle, nullptr); }
  ~Statement() { sqlite3_finalize(handle); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  // A value that could not be bound is NULL for SQLite, and the statement means something else.
  void Bind(const std::string& text) {
    Keep(sqlite3_bind_text64(handle, ++num_bound, text.data(), text.size(), SQLITE_TRANSIENT,
                             SQLITE_UTF8));
  }
  void Bind(int64_t number) { Keep(sqlite3_bind_int64(handle, ++num_bound, number)); }
  void Keep(int bound) {
    if (bound != SQLITE_OK) error = bound;
  }
  int Step() {
    if (handle == nullptr) return SQLITE_ERROR;
    return error != SQLITE_OK ? error : sqlite3_step(handle);
  }
  std::string Text(int column) const {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(handle, column));
    const int size = sqlite3_column_bytes(handle, column);
    if (bytes != nullptr) return std::string(bytes, static_cast<size_t>(size));
    // Nothing is an empty text, or one that it had no memory to show.
    if (sqlite3_errcode(sqlite3_db_handle(handle)) == SQLITE_NOMEM) throw std::bad_alloc();
    return std::string();
  }
  int64_t Number(int column) const { return sqlite3_column_int64(handle, column); }

  sqlite3_stmt* handle = nullptr;
  int num_bound = 0;
  int error = SQLITE_OK;  // of binding
};

Result<std::unique_ptr<ResponseStore>> ResponseStore::Open(const std::string& path,
                                                           const StoreLimits& limits,
                                                           ClockFn clocks) {
  std::unique_ptr<ResponseStore> store(new ResponseStore(path, limits, std::move(clocks)));
  const MutexLock lock(store->mu_);
  HEARTH_TRY(store->Connect());
  HEARTH_TRY(store->Count());
  HEARTH_TRY(store->ReadCipherKey());
  return store;
}

Status ResponseStore::Connect() {
  // SQLite would make it readable by everybody.
  if (!path_.empty()) HEARTH_TRY(MakePrivate(path_).Within("stored responses"));
  // First: connections of one process share what they know of the file's locks.
  sqlite3_close_v2(std::exchange(db_, nullptr));
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int opened =
      sqlite3_open_v2(path_.empty() ? ":memory:" : path_.c_str(), &db_, flags, nullptr);
  if (opened != SQLITE_OK) return Complaint(db_, Quoted(path_).c_str());
  sqlite3_busy_timeout(db_, 2000);
  HEARTH_TRY(CheckFormat());
  for (const char* sql :
       {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", "PRAGMA secure_delete = ON",
        // No copies of texts in the system's folder for temporary files.
        "PRAGMA temp_store = MEMORY",
        "CREATE TABLE IF NOT EXISTS responses (tenant TEXT NOT NULL, id TEXT NOT NULL,"
        " previous TEXT NOT NULL, input TEXT NOT NULL, response TEXT NOT NULL,"
        " bytes INTEGER NOT NULL, created INTEGER NOT NULL, used INTEGER NOT NULL,"
        " PRIMARY KEY (tenant, id))",
        "CREATE TABLE IF NOT EXISTS secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL)",
        // Of those who know nothing of it, the ages here are dates.
        "CREATE TABLE IF NOT EXISTS clock (one INTEGER PRIMARY KEY, record TEXT NOT NULL)",
        "CREATE INDEX IF NOT EXISTS by_use ON responses (used)",
        "CREATE INDEX IF NOT EXISTS by_tenant ON responses (tenant, used)",
        "CREATE INDEX IF NOT EXISTS by_age ON responses (created)",
        // Last: a file that was begun and is not whole is begun again.
        "PRAGMA user_version = 1"}) {
    HEARTH_TRY(Run(sql));
  }
  return Status();
}

// A lock that the system failed to take or give back leaves a connection that waits ten seconds for
// itself, each time: another one knows nothing of that.
Status ResponseStore::Heal() {
  if (!is_hurt_) return Status();
  HEARTH_TRY(Connect());
  HEARTH_TRY(Count());
  is_hurt_ = false;
  return Status();
}

Status ResponseStore::Complain(const char* doing) {
  const int code = db_ == nullptr ? SQLITE_IOERR : sqlite3_errcode(db_) & 0xff;
  if (!path_.empty() && (code == SQLITE_IOERR || code == SQLITE_PROTOCOL)) is_hurt_ = true;
  return Complaint(db_, doing);
}

// Before anything in the file is changed. 0: a new file, or one of before formats had numbers,
// whose tables are those of 1.
Status ResponseStore::CheckFormat() {
  Statement read(db_, "PRAGMA user_version");
  if (read.Step() != SQLITE_ROW) return Complaint(db_, Quoted(path_).c_str());
  const int64_t format = read.Number(0);
  if (format >= 0 && format <= kFormat) return Status();
  return Error(Code::kUnsupported,
               "stored responses: %s has format %lld, this version of Hearth reads up to %lld; use "
               "a newer version, or another file",
               Quoted(path_).c_str(), static_cast<long long>(format),
               static_cast<long long>(kFormat));
}

// Made once; whoever comes second to a new file takes the first one's.
Status ResponseStore::ReadCipherKey() {
  const CipherKey fresh = NewCipherKey();
  Statement make(db_, "INSERT OR IGNORE INTO secrets VALUES ('seal', ?1)");
  make.Bind(std::string(fresh.begin(), fresh.end()));
  if (make.Step() != SQLITE_DONE) return Complain("storing a secret");
  Statement read(db_, "SELECT value FROM secrets WHERE name = 'seal'");
  if (read.Step() != SQLITE_ROW) return Complain("reading a secret");
  const std::string value = read.Text(0);
  if (value.size() != cipher_key_.size()) {
    return Error(Code::kCorrupt, "stored responses: a secret of %zu bytes, expected %zu",
                 value.size(), cipher_key_.size());
  }
  std::copy(value.begin(), value.end(), cipher_key_.begin());
  return Status();
}

ResponseStore::~ResponseStore() { sqlite3_close_v2(db_); }

Status ResponseStore::Run(const char* sql) {
  if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return Status();
  return Complain("opening");
}

Status ResponseStore::Count() {
  Statement sums(db_, "SELECT tenant, COUNT(*), SUM(bytes) FROM responses GROUP BY tenant");
  holdings_.clear();
  count_ = bytes_ = 0;
  int step = sums.Step();
  for (; step == SQLITE_ROW; step = sums.Step()) {
    holdings_[sums.Text(0)] = {sums.Number(1), sums.Number(2)};
    count_ += sums.Number(1);
    bytes_ += sums.Number(2);
  }
  return step == SQLITE_DONE ? Status() : Complain("counting");
}

// Who holds the largest part of what is scarce.
std::string ResponseStore::Greediest() const {
  const auto part = [this](const Holding& holding) {
    return std::max(static_cast<double>(holding.count) / static_cast<double>(limits_.max_count),
                    static_cast<double>(holding.bytes) / static_cast<double>(limits_.max_bytes));
  };
  const auto most = std::max_element(
      holdings_.begin(), holdings_.end(),
      [&](const auto& a, const auto& b) { return part(a.second) < part(b.second); });
  return most == holdings_.end() ? "" : most->first;
}

// The SQL ends in RETURNING bytes, tenant; answers how many rows went.
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
    const auto holding = holdings_.find(remove.Text(1));
    if (holding == holdings_.end()) continue;
    holding->second.bytes -= remove.Number(0);
    if (--holding->second.count == 0) holdings_.erase(holding);
  }
  if (step != SQLITE_DONE) return Complain("deleting");
  return removed;
}

Result<int64_t> ResponseStore::OldestDate() {
  Statement oldest(db_, "SELECT COALESCE(MIN(created), 0) FROM responses");
  if (oldest.Step() != SQLITE_ROW) return Complain("reading");
  return oldest.Number(0);
}

Result<int64_t> ResponseStore::Age() {
  const ClockReading now = clocks_();
  if (!age_.IsDue(now)) return age_.Age(now);
  std::optional<AgeRecord> kept;
  {
    Statement read(db_, "SELECT record FROM clock WHERE one = 1");
    const int step = read.Step();
    if (step == SQLITE_ROW) kept = AgeRecord::Parse(read.Text(0));
    if (step != SQLITE_ROW && step != SQLITE_DONE) return Complain("reading");
  }
  AgeRecord begun;
  if (!kept) {
    HEARTH_ASSIGN(const int64_t oldest_s, OldestDate());
    begun = AgeRecord::Begin(now, oldest_s);
  }
  const AgeRecord record = age_.Sync(now, kept ? *kept : begun);
  if (!kept || record.IsNews(*kept)) {
    Statement write(db_, "INSERT OR REPLACE INTO clock VALUES (1, ?1)");
    write.Bind(record.Write());
    // On a full disk the age is right all the same, and written when there is room.
    if (write.Step() != SQLITE_DONE) (void)Complain("dating").ok();
  }
  return age_.Age(now);
}

// What an older version stored under a date yet to come would never be old; it counts from now.
Status ResponseStore::EvictOld(int64_t age_s) {
  if (!age_.is_sure()) return Status();
  constexpr int64_t kDay_s = 24 * 3600;
  Statement back(db_, "UPDATE responses SET created = ?1 WHERE created > ?2");
  back.Bind(age_s);
  back.Bind(age_s + kDay_s);
  if (back.Step() != SQLITE_DONE) return Complain("dating");
  return Remove("DELETE FROM responses WHERE created < ?1 RETURNING bytes, tenant", {},
                {age_s - limits_.max_age_s})
      .status();
}

Status ResponseStore::Evict(int64_t age_s) {
  HEARTH_TRY(EvictOld(age_s));
  while (count_ > limits_.max_count || bytes_ > limits_.max_bytes) {
    HEARTH_ASSIGN(const int64_t removed,
                  Remove("DELETE FROM responses WHERE rowid ="
                         " (SELECT rowid FROM responses WHERE tenant = ?1"
                         " ORDER BY used, rowid LIMIT 1) RETURNING bytes, tenant",
                         {Greediest()}, {}));
    if (removed == 0) return Count();
  }
  return Status();
}

Status ResponseStore::Put(const std::string& tenant, const StoredResponse& response) {
  const MutexLock lock(mu_);
  const auto put = [&]() HEARTH_REQUIRES(mu_) -> Status {
    HEARTH_TRY(Heal());
    HEARTH_ASSIGN(const int64_t age_s, Age());
    // A reply that was asked for again is the same reply.
    HEARTH_ASSIGN(const std::optional<StoredResponse> known, Find(tenant, response.id, age_s));
    if (known && known->response == response.response) return Status();
    return Insert(tenant, response, age_s);
  };
  Status status = put();
  if (!status.ok() && is_hurt_) status = put();  // with another connection
  if (!status.ok()) ++failures_;
  return status;
}

Status ResponseStore::Insert(const std::string& tenant, const StoredResponse& response,
                             int64_t age_s) {
  const auto bytes = static_cast<int64_t>(response.input.size() + response.response.size());
  if (bytes > limits_.max_bytes) {
    return Error(Code::kExhausted,
                 "the response has %lld bytes and is not stored; the limit is %lld",
                 static_cast<long long>(bytes), static_cast<long long>(limits_.max_bytes));
  }
  Statement insert(db_, "INSERT INTO responses VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
  for (const std::string* text :
       {&tenant, &response.id, &response.previous_id, &response.input, &response.response}) {
    insert.Bind(*text);
  }
  for (const int64_t number : {bytes, age_s, age_s}) insert.Bind(number);
  if (insert.Step() != SQLITE_DONE) return Complain("storing");
  ++count_;
  bytes_ += bytes;
  Holding& holding = holdings_[tenant];
  ++holding.count;
  holding.bytes += bytes;
  return Evict(age_s);
}

Result<std::optional<StoredResponse>> ResponseStore::Find(const std::string& tenant,
                                                          const std::string& id, int64_t age_s) {
  Statement find(db_,
                 "SELECT previous, input, response, used FROM responses"
                 " WHERE tenant = ?1 AND id = ?2 AND created >= ?3");
  find.Bind(tenant);
  find.Bind(id);
  find.Bind(age_s - limits_.max_age_s);
  const int step = find.Step();
  if (step == SQLITE_DONE) return std::optional<StoredResponse>();
  if (step != SQLITE_ROW) return Complain("reading");
  std::optional<StoredResponse> found({id, find.Text(0), find.Text(1), find.Text(2)});
  if (age_s - find.Number(3) < limits_.use_precision_s) return found;
  Statement use(db_, "UPDATE responses SET used = ?3 WHERE tenant = ?1 AND id = ?2");
  use.Bind(tenant);
  use.Bind(id);
  use.Bind(age_s);
  if (use.Step() != SQLITE_DONE) return Complain("reading");
  return found;
}

Result<std::optional<StoredResponse>> ResponseStore::Get(const std::string& tenant,
                                                         const std::string& id) {
  const MutexLock lock(mu_);
  const auto get = [&]() HEARTH_REQUIRES(mu_) -> Result<std::optional<StoredResponse>> {
    HEARTH_TRY(Heal());
    HEARTH_ASSIGN(const int64_t age_s, Age());
    return Find(tenant, id, age_s);
  };
  Result<std::optional<StoredResponse>> found = get();
  if (found.ok() || !is_hurt_) return found;
  return get();  // with another connection
}

// Without reading the texts: what is too long is refused before it is held.
Result<int64_t> ResponseStore::ChainBytes(const std::string& tenant, const std::string& id) {
  const MutexLock lock(mu_);
  HEARTH_TRY(Heal());
  HEARTH_ASSIGN(const int64_t age_s, Age());
  int64_t bytes = 0;
  int length = 0;
  std::string next = id;
  while (!next.empty()) {
    if (++length > limits_.max_chain) {
      return Error(Code::kExhausted, "previous_response_id: the chain has more than %d responses",
                   limits_.max_chain);
    }
    Statement step(db_,
                   "SELECT previous, bytes FROM responses"
                   " WHERE tenant = ?1 AND id = ?2 AND created >= ?3");
    step.Bind(tenant);
    step.Bind(next);
    step.Bind(age_s - limits_.max_age_s);
    const int found = step.Step();
    if (found == SQLITE_DONE) return Gone(next);
    if (found != SQLITE_ROW) return Complain("reading");
    next = step.Text(0);
    bytes += step.Number(1);
  }
  return bytes;
}

Result<std::vector<StoredResponse>> ResponseStore::Chain(const std::string& tenant,
                                                         const std::string& id) {
  HEARTH_ASSIGN(const int64_t bytes, ChainBytes(tenant, id));
  if (bytes > limits_.max_chain_bytes) {
    return Error(Code::kInvalid,
                 "previous_response_id: the responses that this one builds on have %lld bytes; the "
                 "limit is %lld",
                 static_cast<long long>(bytes), static_cast<long long>(limits_.max_chain_bytes));
  }
  std::vector<StoredResponse> chain;
  for (std::string next = id; !next.empty(); next = chain.back().previous_id) {
    HEARTH_ASSIGN(std::optional<StoredResponse> found, Get(tenant, next));
    if (!found) return Gone(next);
    chain.push_back(*std::move(found));
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

Result<bool> ResponseStore::Delete(const std::string& tenant, const std::string& id) {
  const MutexLock lock(mu_);
  HEARTH_TRY(Heal());
  HEARTH_ASSIGN(
      const int64_t removed,
      Remove("DELETE FROM responses WHERE tenant = ?1 AND id = ?2 RETURNING bytes, tenant",
             {tenant, id}, {}));
  return removed > 0;
}

StoreCounts ResponseStore::counts() const {
  const MutexLock lock(mu_);
  return {count_, bytes_, failures_};
}

}  // namespace hearth
