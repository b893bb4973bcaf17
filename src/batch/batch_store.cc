// SPDX-License-Identifier: Apache-2.0
#include "batch/batch_store.h"

#include "batch/postgres_store.h"
#include "batch/sqlite_store.h"

namespace hearth {

bool IsPostgresUrl(const std::string& path) {
  return path.starts_with("postgresql://") || path.starts_with("postgres://");
}

Result<std::unique_ptr<BatchStore>> BatchStore::Open(const std::string& path,
                                                     const BatchQuota& quota) {
  if (IsPostgresUrl(path)) return PostgresStore::Open(path, quota);
  return SqliteStore::Open(path, quota);
}

}  // namespace hearth
