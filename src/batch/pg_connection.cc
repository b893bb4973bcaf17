// SPDX-License-Identifier: Apache-2.0
#include "batch/pg_connection.h"

#include <algorithm>

#include "base/mask_secrets.h"
#include "batch/batch_store.h"
#include "late/late.h"

namespace hearth {
namespace {

// What the URL may say otherwise. Nobody waits for a server that hangs: lines are kept until it is
// back.
constexpr const char* kNames[] = {
    "connect_timeout", "tcp_user_timeout", "options", "fallback_application_name",
    "dbname",          "client_encoding",  nullptr};
// A replica that hangs in the middle of a transaction must not hold its locks for the others.
constexpr const char* kTimeouts =
    "-c statement_timeout=60000 -c idle_in_transaction_session_timeout=5000";

std::string OneLine(const char* message) {
  std::string line = message == nullptr ? "" : message;
  while (!line.empty() && line.back() == '\n') line.pop_back();
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  return line.empty() ? "no reason given" : MaskSecrets(line);
}

// libpq's messages name the part of a URL that it does not understand, which may be a part of a
// password: what an unescaped letter in one looks like is told here, without it.
Status CheckUrl(const std::string& url) {
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> options(
      PQconninfoParse(url.c_str(), nullptr), PQconninfoFree);
  bool is_good = options != nullptr;
  for (const PQconninfoOption* each = options.get(); is_good && each->keyword != nullptr; ++each) {
    const std::string_view name = each->keyword, value = each->val == nullptr ? "" : each->val;
    if (name == "port") is_good = value.find_first_not_of("0123456789,") == std::string_view::npos;
    if (name == "host" || name == "dbname") is_good = value.find('@') == std::string_view::npos;
  }
  if (is_good) return Status();
  return Error(Code::kInvalid,
               "batch jobs: PostgreSQL: the URL cannot be read; in a password, letters that mean "
               "something in a URL (@ : / ? # %%) are written as %%XX");
}

// One result is kept, further ones are read to their end.
PGresult* ReadResults(PGconn* handle) {
  PGresult* last = nullptr;
  while (PGresult* next = PQgetResult(handle)) {
    PQclear(last);
    last = next;
  }
  return last;
}

}  // namespace

int64_t PgRows::Number(int row, int column) const {
  uint64_t value = 0;
  for (const char byte : Text(row, column)) value = value << 8 | static_cast<uint8_t>(byte);
  return static_cast<int64_t>(value);
}

void PgConnection::Bound::Add(int64_t number) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift);
  Put(20, std::move(bytes));
}

// Whether the database said so (SQLSTATE disk_full) of what it was asked.
Status PgConnection::Complaint(const PGresult* result) const {
  const char* state = result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_SQLSTATE);
  if (state != nullptr && std::string_view(state) == "53100") {
    return NoRoom(("PostgreSQL: " + OneLine(PQerrorMessage(handle_.get()))).c_str());
  }
  return Error(Code::kIo, "batch jobs: PostgreSQL: %s",
               OneLine(PQerrorMessage(handle_.get())).c_str());
}

Status PgConnection::Connect() {
  HEARTH_TRY(LoadLibpq());
  HEARTH_TRY(CheckUrl(url_));
  const char* values[] = {"5", "15000", kTimeouts, "hearth", url_.c_str(), "UTF8", nullptr};
  handle_.reset(PQconnectdbParams(kNames, values, 1));
  return is_broken() ? Complaint() : Status();
}

Result<PgRows> PgConnection::Execute(const char* sql, const Bound& bound) {
  std::vector<const char*> values;
  std::vector<int> sizes, formats;
  for (const std::string& value : bound.values) {
    values.push_back(value.data());
    sizes.push_back(static_cast<int>(value.size()));
    formats.push_back(1);
  }
  PGresult* result =
      PQexecParams(handle_.get(), sql, static_cast<int>(values.size()), bound.types.data(),
                   values.data(), sizes.data(), formats.data(), 1);
  PgRows rows(result);
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return rows;
  return Complaint(result);
}

Status PgConnection::Copy(const char* sql, const std::string& rows) {
  PGresult* begun = PQexec(handle_.get(), sql);
  const bool is_open = PQresultStatus(begun) == PGRES_COPY_IN;
  PQclear(begun);
  if (!is_open) return Complaint();
  constexpr size_t kPiece = size_t{1} << 20;
  bool is_good = true;
  for (size_t at = 0; is_good && at < rows.size(); at += kPiece) {
    const auto size = static_cast<int>(std::min(kPiece, rows.size() - at));
    is_good = PQputCopyData(handle_.get(), rows.data() + at, size) == 1;
  }
  is_good = PQputCopyEnd(handle_.get(), is_good ? nullptr : "given up") == 1 && is_good;
  PGresult* ended = ReadResults(handle_.get());
  is_good = is_good && PQresultStatus(ended) == PGRES_COMMAND_OK;
  const Status status = is_good ? Status() : Complaint(ended);
  PQclear(ended);
  return status;
}

Status PgConnection::Try(const std::function<Status()>& steps) {
  if (is_broken()) HEARTH_TRY(Connect());
  HEARTH_TRY(Run("BEGIN").status());
  Status status = steps();
  if (status.ok()) return Run("COMMIT").status();
  if (!is_broken()) (void)Run("ROLLBACK").ok();
  return status;
}

Status PgConnection::Transact(const std::function<Status()>& steps) {
  const bool was_open = !is_broken();
  Status status = Try(steps);
  // One that was made just now and is gone again would be no better the next time.
  if (!status.ok() && was_open && is_broken()) status = Try(steps);
  return status;
}

}  // namespace hearth
