// SPDX-License-Identifier: Apache-2.0
// Files and batch jobs as their routes need them: whoever keeps and runs them implements this
// (src/batch).
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "server/turns/api_error.h"
namespace hearth {

inline constexpr size_t kMaxFileBytes = size_t{64} << 20;
inline constexpr int kMaxBatchLines = 50'000;

struct NewFile {
  std::string name, purpose, content;
  std::optional<int64_t> keep_s = {};  // none: until it is deleted
};

struct NewBatch {
  std::string input_file, endpoint, window;
  Json metadata = {};  // null: none
};

// The part of a list that is wanted.
struct ListRange {
  std::string after = {};  // the id before its first one; empty: from the start
  int limit = 20;
};

// Objects are OpenAI's. Every tenant sees only what is his: anything else is a 404.
// Thread: any; it may read and write files.
class BatchDesk {
 public:
  virtual ~BatchDesk() = default;
  virtual ApiResult<Json> AddFile(const std::string& tenant, NewFile file) = 0;
  virtual ApiResult<Json> FindFile(const std::string& tenant, const std::string& id) = 0;
  virtual ApiResult<Json> ListFiles(const std::string& tenant, const std::string& purpose,
                                    const ListRange& range) = 0;
  virtual ApiResult<std::string> ReadFile(const std::string& tenant, const std::string& id) = 0;
  virtual ApiResult<Json> DeleteFile(const std::string& tenant, const std::string& id) = 0;
  virtual ApiResult<Json> AddBatch(const std::string& tenant, NewBatch batch) = 0;
  virtual ApiResult<Json> FindBatch(const std::string& tenant, const std::string& id) = 0;
  virtual ApiResult<Json> ListBatches(const std::string& tenant, const ListRange& range) = 0;
  virtual ApiResult<Json> CancelBatch(const std::string& tenant, const std::string& id) = 0;
};

}  // namespace hearth
