// SPDX-License-Identifier: Apache-2.0
#include "batch/batch_store.h"

#include "batch/postgres_store.h"
#include "batch/sqlite_store.h"

namespace hearth {

Status NoRoom(const char* why) {
  return Error(Code::kIo, "batch jobs: no room on the disk: %s", why);
}

bool IsNoRoom(const Status& status) {
  return status.code() == Code::kIo &&
         status.message().starts_with("batch jobs: no room on the disk: ");
}

Status CheckFiles(const BatchQuota& quota, int64_t files, int64_t bytes, int64_t more) {
  if (files >= quota.max_files) {
    return Error(Code::kExhausted, "you have %lld files, the most that are kept; delete some",
                 static_cast<long long>(files));
  }
  if (bytes + more > quota.max_bytes) {
    return Error(Code::kExhausted,
                 "your files take %lld bytes of the %lld that are kept for one key; delete some",
                 static_cast<long long>(bytes), static_cast<long long>(quota.max_bytes));
  }
  return Status();
}

Status CheckPending(const BatchQuota& quota, int64_t pending, size_t more) {
  if (pending + static_cast<int64_t>(more) <= quota.max_lines) return Status();
  return Error(Code::kExhausted,
               "%lld of your lines are still to be run; with this file's %zu they would be more "
               "than %lld",
               static_cast<long long>(pending), more, static_cast<long long>(quota.max_lines));
}

bool IsPostgresUrl(const std::string& path) {
  return path.starts_with("postgresql://") || path.starts_with("postgres://");
}

Result<std::unique_ptr<BatchStore>> BatchStore::Open(const std::string& path,
                                                     const BatchQuota& quota) {
  if (IsPostgresUrl(path)) return PostgresStore::Open(path, quota);
  return SqliteStore::Open(path, quota);
}

}  // namespace hearth
