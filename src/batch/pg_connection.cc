// SPDX-License-Identifier: Apache-2.0
#include "batch/pg_connection.h"

#include <algorithm>

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
  return line.empty() ? "no reason given" : line;
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

Status PgConnection::Complaint() const {
  return Error(Code::kIo, "batch jobs: PostgreSQL: %s",
               OneLine(PQerrorMessage(handle_.get())).c_str());
}

Status PgConnection::Connect() {
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
  return Complaint();
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
  PQclear(ended);
  return is_good ? Status() : Complaint();
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
