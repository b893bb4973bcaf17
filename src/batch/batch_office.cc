// SPDX-License-Identifier: Apache-2.0
#include "batch/batch_office.h"

#include <utility>

#include "base/duration.h"
#include "server/turns/request_names.h"

namespace hearth {
namespace {

constexpr double kMaxWindowS = 14 * 24 * 3600;

ApiError NotThere(const char* what, const std::string& id) {
  ApiError error;
  error.status = 404;
  error.code = "not_found";
  error.message = std::string("No such ") + what + ": " + Quoted(id);
  return error;
}

ApiError FromStore(const Status& status) {
  ApiError error = FromStatus(status);
  if (status.code() == Code::kExhausted) error.code = "quota_exceeded";
  if (IsNoRoom(status)) {
    error.status = 507;
    error.type = "insufficient_storage_error";
    error.code = "disk_full";
    error.message += "; nothing was stored: try again when there is room";
  }
  return error;
}

Json TimeOrNull(int64_t seconds) { return seconds > 0 ? Json(seconds) : Json(); }
Json TextOrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json TreeOrNull(const std::string& text) { return text.empty() ? Json() : Json(JsonText{text}); }

Json FileAsJson(const FileRow& file) {
  return JsonObject{{"id", file.id},
                    {"object", "file"},
                    {"bytes", file.bytes},
                    {"created_at", file.created_s},
                    {"expires_at", TimeOrNull(file.expires_s)},
                    {"filename", file.name},
                    {"purpose", file.purpose},
                    {"status", "processed"},
                    {"status_details", Json()}};
}

Json BatchAsJson(const BatchRow& batch) {
  return JsonObject{{"id", batch.id},
                    {"object", "batch"},
                    {"endpoint", batch.endpoint},
                    {"errors", TreeOrNull(batch.errors)},
                    {"input_file_id", batch.input_file},
                    {"completion_window", batch.window},
                    {"status", batch.status},
                    {"output_file_id", TextOrNull(batch.output_file)},
                    {"error_file_id", TextOrNull(batch.error_file)},
                    {"created_at", batch.created_s},
                    {"in_progress_at", TimeOrNull(batch.in_progress_s)},
                    {"expires_at", TimeOrNull(batch.expires_s)},
                    {"finalizing_at", TimeOrNull(batch.finalizing_s)},
                    {"completed_at", TimeOrNull(batch.completed_s)},
                    {"failed_at", TimeOrNull(batch.failed_s)},
                    {"expired_at", TimeOrNull(batch.expired_s)},
                    {"cancelling_at", TimeOrNull(batch.cancelling_s)},
                    {"cancelled_at", TimeOrNull(batch.cancelled_s)},
                    {"request_counts", JsonObject{{"total", batch.total},
                                                  {"completed", batch.completed},
                                                  {"failed", batch.failed}}},
                    {"metadata", TreeOrNull(batch.metadata)}};
}

// One more was asked for than is shown, to know whether there are more.
template <class Row>
Json ListAsJson(std::vector<Row> rows, int limit, Json (*as_json)(const Row&)) {
  const bool has_more = rows.size() > static_cast<size_t>(limit);
  if (has_more) rows.pop_back();
  JsonArray data;
  for (const Row& row : rows) data.push_back(as_json(row));
  return JsonObject{{"object", "list"},
                    {"data", std::move(data)},
                    {"first_id", rows.empty() ? Json() : Json(rows.front().id)},
                    {"last_id", rows.empty() ? Json() : Json(rows.back().id)},
                    {"has_more", has_more}};
}

ListRange OneMore(ListRange range) {
  ++range.limit;
  return range;
}

}  // namespace

ApiResult<FileRow> BatchOffice::File(const std::string& tenant, const std::string& id) {
  Result<std::optional<FileRow>> file = store_->FindFile(tenant, id);
  if (!file.ok()) return FromStore(file.status());
  if (!*file) return NotThere("file", id);
  return **std::move(file);
}

ApiResult<BatchRow> BatchOffice::Batch(const std::string& tenant, const std::string& id) {
  Result<std::optional<BatchRow>> batch = store_->FindBatch(tenant, id);
  if (!batch.ok()) return FromStore(batch.status());
  if (!*batch) return NotThere("batch", id);
  return **std::move(batch);
}

ApiResult<Json> BatchOffice::AddFile(const std::string& tenant, NewFile file) {
  if (file.content.size() > kMaxFileBytes) {
    return BadField("file", Printf("must be at most %zu bytes", kMaxFileBytes));
  }
  const ClockReading now = runner_.clocks();
  FileRow row{"file-" + NewId(), tenant, file.name, file.purpose};
  row.bytes = static_cast<int64_t>(file.content.size());
  row.created_s = now.wall_s;
  if (file.keep_s) {
    Result<int64_t> age_s = store_->Age(now);
    if (!age_s.ok()) return FromStore(age_s.status());
    row.expires_s = now.wall_s + *file.keep_s;
    row.due_s = *age_s + *file.keep_s;
  }
  const Status added = store_->AddFile(row, file.content);
  if (!added.ok()) return FromStore(added);
  return FileAsJson(row);
}

ApiResult<Json> BatchOffice::FindFile(const std::string& tenant, const std::string& id) {
  HEARTH_ASSIGN(const FileRow file, File(tenant, id));
  return FileAsJson(file);
}

ApiResult<Json> BatchOffice::ListFiles(const std::string& tenant, const std::string& purpose,
                                       const ListRange& range) {
  Result<std::vector<FileRow>> files = store_->ListFiles(tenant, purpose, OneMore(range));
  if (!files.ok()) return FromStore(files.status());
  return ListAsJson(*std::move(files), range.limit, FileAsJson);
}

ApiResult<std::string> BatchOffice::ReadFile(const std::string& tenant, const std::string& id) {
  HEARTH_ASSIGN(const FileRow file, File(tenant, id));
  Result<std::string> content = store_->ReadFile(file);
  if (!content.ok()) return FromStore(content.status());
  return *std::move(content);
}

ApiResult<Json> BatchOffice::DeleteFile(const std::string& tenant, const std::string& id) {
  HEARTH_ASSIGN(const FileRow file, File(tenant, id));
  const Status deleted = store_->DeleteFile(file);
  if (!deleted.ok()) return FromStore(deleted);
  return Json(JsonObject{{"id", id}, {"object", "file"}, {"deleted", true}});
}

ApiResult<Json> BatchOffice::AddBatch(const std::string& tenant, NewBatch batch) {
  if (!IsBatchEndpoint(batch.endpoint)) {
    return BadField("endpoint", "must be /v1/chat/completions, /v1/completions or /v1/embeddings");
  }
  Result<double> window = ParseDuration(batch.window);
  if (!window.ok() || *window < 1 || *window > kMaxWindowS) {
    return BadField("completion_window", "must be a time such as 24h, at most 336h");
  }
  ApiResult<FileRow> file = File(tenant, batch.input_file);
  if (!file.ok()) return BadField("input_file_id", file.error().message);
  BatchRow row{"batch_" + NewId(), tenant,
               batch.endpoint,     batch.input_file,
               batch.window,       batch.metadata.is_null() ? "" : WriteJson(batch.metadata)};
  const ClockReading now = runner_.clocks();
  Result<int64_t> age_s = store_->Age(now);
  if (!age_s.ok()) return FromStore(age_s.status());
  row.created_s = now.wall_s;
  row.expires_s = now.wall_s + static_cast<int64_t>(*window);
  row.due_s = *age_s + static_cast<int64_t>(*window);
  const Status added = store_->AddBatch(row);
  if (!added.ok()) return FromStore(added);
  runner_.Wake();
  return BatchAsJson(row);
}

ApiResult<Json> BatchOffice::FindBatch(const std::string& tenant, const std::string& id) {
  HEARTH_ASSIGN(const BatchRow batch, Batch(tenant, id));
  return BatchAsJson(batch);
}

ApiResult<Json> BatchOffice::ListBatches(const std::string& tenant, const ListRange& range) {
  Result<std::vector<BatchRow>> batches = store_->ListBatches(tenant, OneMore(range));
  if (!batches.ok()) return FromStore(batches.status());
  return ListAsJson(*std::move(batches), range.limit, BatchAsJson);
}

ApiResult<Json> BatchOffice::CancelBatch(const std::string& tenant, const std::string& id) {
  HEARTH_ASSIGN(const BatchRow batch, Batch(tenant, id));
  const Status cancelled = store_->BeginCancel(batch, runner_.clocks().wall_s);
  if (!cancelled.ok()) return FromStore(cancelled);
  runner_.Wake();
  HEARTH_ASSIGN(const BatchRow after, Batch(tenant, id));
  if (after.status != "cancelling" && after.status != "cancelled") {
    ApiError error;
    error.code = "not_cancellable";
    error.message = "the batch is over: its status is " + after.status;
    return error;
  }
  return BatchAsJson(after);
}

}  // namespace hearth
