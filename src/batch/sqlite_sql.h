// SPDX-License-Identifier: Apache-2.0
// SQLite as the batch store uses it: statements whose values are bound, and transactions.
#pragma once
#include <sqlite3.h>

#include <cerrno>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>

#include "base/result.h"
#include "batch/batch_store.h"
namespace hearth {

// One statement with its values, by their order. Thread: one.
class Sql {
 public:
  template <class... Values>
  Sql(sqlite3* db, const char* text, const Values&... values) : db_(db) {
    error_ = sqlite3_prepare_v2(db, text, -1, &handle_, nullptr);
    (Bind(values), ...);
  }
  ~Sql() { sqlite3_finalize(handle_); }
  Sql(const Sql&) = delete;
  Sql& operator=(const Sql&) = delete;

  // True: a row is there. False: no more, or it failed (`status`).
  bool Next() {
    if (error_ == SQLITE_OK || error_ == SQLITE_ROW) error_ = sqlite3_step(handle_);
    return error_ == SQLITE_ROW;
  }
  Status Run() {
    while (Next()) {
    }
    return status();
  }
  Status status() const {
    if (error_ == SQLITE_DONE || error_ == SQLITE_ROW || error_ == SQLITE_OK) return Status();
    if (has_no_room()) return NoRoom(sqlite3_errmsg(db_));
    return Error(Code::kIo, "batch jobs: %s", sqlite3_errmsg(db_));
  }
  int64_t Number(int column) const { return sqlite3_column_int64(handle_, column); }
  std::string Text(int column) const {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(handle_, column));
    const int size = sqlite3_column_bytes(handle_, column);
    if (bytes != nullptr) return std::string(bytes, static_cast<size_t>(size));
    // Nothing is an empty text, or one that it had no memory to show.
    if (sqlite3_errcode(db_) == SQLITE_NOMEM) throw std::bad_alloc();
    return std::string();
  }

 private:
  // Of quotas and limits of a file's size SQLite knows only that writing failed.
  bool has_no_room() const {
    const int error = error_ & 0xff, cause = sqlite3_system_errno(db_);
    if (error == SQLITE_FULL) return true;
    return error == SQLITE_IOERR && (cause == ENOSPC || cause == EDQUOT || cause == EFBIG);
  }
  void Bind(std::string_view text) {
    Keep(sqlite3_bind_text64(handle_, ++num_bound_, text.data(), text.size(), SQLITE_TRANSIENT,
                             SQLITE_UTF8));
  }
  void Bind(int64_t number) { Keep(sqlite3_bind_int64(handle_, ++num_bound_, number)); }
  // A value that could not be bound is NULL for SQLite, and the statement means something else.
  void Keep(int bound) {
    if (error_ == SQLITE_OK) error_ = bound;
  }

  sqlite3* const db_;
  sqlite3_stmt* handle_ = nullptr;
  int num_bound_ = 0;
  int error_ = SQLITE_OK;
};

// All of it or nothing: what is not committed is undone.
class SqlTransaction {
 public:
  explicit SqlTransaction(sqlite3* db) : db_(db), begun_(Sql(db, "BEGIN IMMEDIATE").Run()) {}
  ~SqlTransaction() {
    if (begun_.ok() && !is_done_) (void)Sql(db_, "ROLLBACK").Run().ok();
  }
  SqlTransaction(const SqlTransaction&) = delete;
  SqlTransaction& operator=(const SqlTransaction&) = delete;
  const Status& begun() const { return begun_; }
  Status Commit() {
    Status status = Sql(db_, "COMMIT").Run();
    is_done_ = status.ok();
    return status;
  }

 private:
  sqlite3* const db_;
  const Status begun_;
  bool is_done_ = false;
};

}  // namespace hearth
