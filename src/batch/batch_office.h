// SPDX-License-Identifier: Apache-2.0
// Files and batch jobs behind their routes: what is in the store, as OpenAI's objects.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "batch/batch_runner.h"
#include "batch/batch_store.h"
#include "server/dialects/batches/batch_desk.h"
namespace hearth {

// Thread: any.
class BatchOffice final : public BatchDesk {
 public:
  // `runners`: a second connection to the same store for the thread that runs lines, so that a
  // large upload does not hold up claims and answers, nor a database that hangs in one of these the
  // API. Null: both use one.
  explicit BatchOffice(std::unique_ptr<BatchStore> store, const BatchOptions& options = {},
                       std::unique_ptr<BatchStore> runners = nullptr)
      : store_(std::move(store)),
        runners_(std::move(runners)),
        runner_(runners_ != nullptr ? *runners_ : *store_, options) {}
  // From here on lines are run.
  void Start(BatchSend send, BatchBusy is_busy = {}) {
    runner_.Start(std::move(send), std::move(is_busy));
  }
  // Lines that run are given up: they are run again when the next process starts.
  void Stop() { runner_.Stop(); }
  BatchRunner::Counts counts() const { return runner_.counts(); }

  ApiResult<Json> AddFile(const std::string& tenant, NewFile file) override;
  ApiResult<Json> FindFile(const std::string& tenant, const std::string& id) override;
  ApiResult<Json> ListFiles(const std::string& tenant, const std::string& purpose,
                            const ListRange& range) override;
  ApiResult<std::string> ReadFile(const std::string& tenant, const std::string& id) override;
  ApiResult<Json> DeleteFile(const std::string& tenant, const std::string& id) override;
  ApiResult<Json> AddBatch(const std::string& tenant, NewBatch batch) override;
  ApiResult<Json> FindBatch(const std::string& tenant, const std::string& id) override;
  ApiResult<Json> ListBatches(const std::string& tenant, const ListRange& range) override;
  ApiResult<Json> CancelBatch(const std::string& tenant, const std::string& id) override;

 private:
  ApiResult<FileRow> File(const std::string& tenant, const std::string& id);
  ApiResult<BatchRow> Batch(const std::string& tenant, const std::string& id);
  const std::unique_ptr<BatchStore> store_, runners_;
  BatchRunner runner_;  // before the stores go
};

}  // namespace hearth
