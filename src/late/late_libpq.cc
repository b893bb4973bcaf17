// SPDX-License-Identifier: Apache-2.0
// libpq's functions by their own names.
#include <libpq-fe.h>

#include "late/late.h"
#include "late/late_library.h"

namespace {

hearth::LateLibrary& Library() {
  static hearth::LateLibrary library("libpq.so.5", "libpq5");
  return library;
}

template <typename Function>
Function* Real(const char* name) {
  return Library().Find<Function>(name);
}

}  // namespace

extern "C" {

void PQclear(PGresult* result) {
  static auto* const real = Real<decltype(PQclear)>("PQclear");
  real(result);
}

PGconn* PQconnectdbParams(const char* const* keywords, const char* const* values, int expands) {
  static auto* const real = Real<decltype(PQconnectdbParams)>("PQconnectdbParams");
  return real(keywords, values, expands);
}

PQconninfoOption* PQconninfoParse(const char* text, char** error) {
  static auto* const real = Real<decltype(PQconninfoParse)>("PQconninfoParse");
  return real(text, error);
}

void PQconninfoFree(PQconninfoOption* options) {
  static auto* const real = Real<decltype(PQconninfoFree)>("PQconninfoFree");
  real(options);
}

void PQfinish(PGconn* connection) {
  static auto* const real = Real<decltype(PQfinish)>("PQfinish");
  real(connection);
}

ConnStatusType PQstatus(const PGconn* connection) {
  static auto* const real = Real<decltype(PQstatus)>("PQstatus");
  return real(connection);
}

char* PQerrorMessage(const PGconn* connection) {
  static auto* const real = Real<decltype(PQerrorMessage)>("PQerrorMessage");
  return real(connection);
}

PGresult* PQexec(PGconn* connection, const char* sql) {
  static auto* const real = Real<decltype(PQexec)>("PQexec");
  return real(connection, sql);
}

PGresult* PQexecParams(PGconn* connection, const char* sql, int count, const Oid* types,
                       const char* const* values, const int* sizes, const int* formats,
                       int result_format) {
  static auto* const real = Real<decltype(PQexecParams)>("PQexecParams");
  return real(connection, sql, count, types, values, sizes, formats, result_format);
}

PGresult* PQgetResult(PGconn* connection) {
  static auto* const real = Real<decltype(PQgetResult)>("PQgetResult");
  return real(connection);
}

ExecStatusType PQresultStatus(const PGresult* result) {
  static auto* const real = Real<decltype(PQresultStatus)>("PQresultStatus");
  return real(result);
}

char* PQresultErrorField(const PGresult* result, int field) {
  static auto* const real = Real<decltype(PQresultErrorField)>("PQresultErrorField");
  return real(result, field);
}

int PQntuples(const PGresult* result) {
  static auto* const real = Real<decltype(PQntuples)>("PQntuples");
  return real(result);
}

char* PQgetvalue(const PGresult* result, int row, int column) {
  static auto* const real = Real<decltype(PQgetvalue)>("PQgetvalue");
  return real(result, row, column);
}

int PQgetlength(const PGresult* result, int row, int column) {
  static auto* const real = Real<decltype(PQgetlength)>("PQgetlength");
  return real(result, row, column);
}

int PQputCopyData(PGconn* connection, const char* bytes, int size) {
  static auto* const real = Real<decltype(PQputCopyData)>("PQputCopyData");
  return real(connection, bytes, size);
}

int PQputCopyEnd(PGconn* connection, const char* error) {
  static auto* const real = Real<decltype(PQputCopyEnd)>("PQputCopyEnd");
  return real(connection, error);
}

}  // extern "C"

namespace hearth {

Status LoadLibpq() { return Library().Load(); }

}  // namespace hearth
