// SPDX-License-Identifier: Apache-2.0
// PostgreSQL as the batch store uses it: one connection, made anew when it breaks, statements whose
// values are bound, and transactions that are tried again.
#pragma once
#include <libpq-fe.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
namespace hearth {

// Bytes that need not be text.
struct PgBytes {
  std::string_view bytes;
};

// What a statement returned. Columns are int8, text or bytea.
class PgRows {
 public:
  explicit PgRows(PGresult* result) : result_(result, PQclear) {}
  int size() const { return PQntuples(result_.get()); }
  int64_t Number(int row, int column) const;
  std::string Text(int row, int column) const {
    return {PQgetvalue(result_.get(), row, column),
            static_cast<size_t>(PQgetlength(result_.get(), row, column))};
  }

 private:
  std::unique_ptr<PGresult, void (*)(PGresult*)> result_;
};

// Thread: one at a time.
class PgConnection {
 public:
  explicit PgConnection(std::string url) : url_(std::move(url)) {}
  PgConnection(const PgConnection&) = delete;
  PgConnection& operator=(const PgConnection&) = delete;

  // One statement, or a part of a transaction. kIo when it failed.
  template <class... Values>
  Result<PgRows> Run(const char* sql, const Values&... values) {
    Bound bound;
    (bound.Add(values), ...);
    return Execute(sql, bound);
  }
  // Rows of text for a table, in the form of COPY.
  Status Copy(const char* sql, const std::string& rows);

  // All of `steps` or nothing. Where the connection broke it is tried once more on a new one,
  // whether or not the first try was committed: the steps must mean the same when they run twice.
  Status Transact(const std::function<Status()>& steps);

 private:
  struct Bound {
    void Add(int64_t number);
    void Add(std::string_view text) { Put(25, std::string(text)); }
    void Add(const PgBytes& bytes) { Put(17, std::string(bytes.bytes)); }
    void Put(Oid type, std::string value) {
      types.push_back(type);
      values.push_back(std::move(value));
    }
    std::vector<Oid> types;
    std::vector<std::string> values;
  };
  Status Connect();
  Result<PgRows> Execute(const char* sql, const Bound& bound);
  Status Try(const std::function<Status()>& steps);
  bool is_broken() const { return PQstatus(handle_.get()) != CONNECTION_OK; }
  Status Complaint(const PGresult* result = nullptr) const;

  const std::string url_;
  std::unique_ptr<PGconn, void (*)(PGconn*)> handle_{nullptr, PQfinish};
};

}  // namespace hearth
