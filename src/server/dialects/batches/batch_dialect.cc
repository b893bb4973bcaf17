// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/batches/batch_dialect.h"

#include <algorithm>
#include <utility>

#include "server/dialects/batches/multipart.h"
#include "server/turns/send.h"

namespace hearth {
namespace {

using enum FieldKind;
using enum FieldUse;

constexpr Field kBatchFields[] = {
    {"completion_window", kString, kHonoured, 1, 16,
     "how long it may take: `24h`, or another time such as `90m`, at most 14 days"},
    {"endpoint", kString, kHonoured, 1, 64,
     "`/v1/chat/completions`, `/v1/completions` or `/v1/embeddings`"},
    {"input_file_id", kString, kHonoured, 1, 64, "a file of purpose `batch`, one request per line"},
    {"metadata", kObject, kHonoured, 0, 0, "at most 16 texts, which are given back"},
    {"output_expires_after", kAny, kRefused, 0, 0, "files stay until they are deleted"},
};

ApiError NotSetUp() {
  ApiError error;
  error.status = 501;
  error.code = "not_implemented";
  error.message = "files and batches are not set up here: start the server with --batches FILE";
  return error;
}

// The value of `name` in "a=b&name=value", as sent.
std::string QueryValue(const std::string& query, std::string_view name) {
  const std::string wanted = std::string(name) + "=";
  for (size_t at = 0; at < query.size();) {
    const size_t end = std::min(query.find('&', at), query.size());
    const std::string part = query.substr(at, end - at);
    at = end + 1;
    if (part.starts_with(wanted)) return part.substr(wanted.size());
  }
  return "";
}

ApiResult<ListRange> RangeOf(const std::string& query) {
  ListRange range;
  range.after = QueryValue(query, "after");
  const std::string limit = QueryValue(query, "limit");
  if (limit.empty()) return range;
  Result<Json> number = ParseJson(limit);
  const std::optional<int64_t> count = number.ok() ? number->integer() : std::nullopt;
  if (!count || *count < 1 || *count > 10'000) {
    return BadField("limit", "must be a whole number from 1 to 10000");
  }
  range.limit = static_cast<int>(*count);
  return range;
}

ApiResult<NewFile> ReadUpload(const HttpRequest& http) {
  Result<std::vector<FormPart>> parts = ParseForm(http.header("content-type"), http.body);
  if (!parts.ok()) return FromStatus(parts.status());
  NewFile file;
  bool has_content = false;
  for (const FormPart& part : *parts) {
    if (part.name == "purpose") {
      file.purpose = part.content;
    } else if (part.name == "file") {
      file.name = part.filename;
      file.content = part.content;
      has_content = true;
    } else if (part.name == "expires_after[seconds]") {
      Result<Json> seconds = ParseJson(part.content);
      if (!seconds.ok() || !seconds->integer() || *seconds->integer() < 3600 ||
          *seconds->integer() > 2'592'000) {
        return BadField(part.name, "must be a whole number from 3600 to 2592000");
      }
      file.keep_s = *seconds->integer();
    } else if (part.name != "expires_after[anchor]") {
      return UnknownField(part.name);
    }
  }
  if (!has_content) return BadField("file", "is missing");
  if (file.purpose != "batch") return BadField("purpose", "must be batch");
  if (file.name.size() > 256) return BadField("file", "its name is longer than 256 bytes");
  return file;
}

ApiResult<NewBatch> ReadBatch(const Json& body) {
  HEARTH_ASSIGN(const Fields fields, ReadFields(body, kBatchFields));
  NewBatch batch;
  for (const auto& [name, to] :
       {std::pair{"input_file_id", &batch.input_file}, std::pair{"endpoint", &batch.endpoint},
        std::pair{"completion_window", &batch.window}}) {
    const auto given = fields.text(name);
    if (!given) return BadField(name, "is missing");
    *to = *given;
  }
  if (const Json* metadata = fields.find("metadata")) {
    const JsonObject& members = *metadata->object();
    if (members.size() > 16) return BadField("metadata", "must have at most 16 members");
    for (const JsonMember& member : members) {
      const std::string* text = member.second.string();
      if (text == nullptr || text->size() > 512 || member.first.size() > 64) {
        return BadField("metadata", "names of up to 64 bytes and texts of up to 512 are taken");
      }
    }
    batch.metadata = *metadata;
  }
  return batch;
}

// Runs where bodies are read: the desk reads and writes files.
using Work = std::function<ApiResult<Json>(BatchDesk&, const HttpRequest&)>;
DialectRoute Slow(const char* method, const char* path, const char* summary, BatchDesk* desk,
                  Work work) {
  return {{method, path, Auth::kKey, summary},
          {},
          [desk, work = std::move(work)](const HttpRequest& http,
                                         const std::shared_ptr<HttpReply>& reply) {
            ApiResult<Json> said = desk == nullptr ? NotSetUp() : work(*desk, http);
            if (said.ok()) return SendJson(*reply, *said);
            SendError(*reply, said.error(), WriteJson(OpenAiError(said.error())), "");
          },
          true};
}

DialectRoute ContentRoute(BatchDesk* desk) {
  return {{"GET", "/v1/files/{id}/content", Auth::kKey, "What is in a file"},
          {},
          [desk](const HttpRequest& http, const std::shared_ptr<HttpReply>& reply) {
            ApiResult<std::string> content =
                desk == nullptr ? NotSetUp() : desk->ReadFile(http.key_id, http.path_captures[0]);
            if (!content.ok()) {
              const ApiError& error = content.error();
              return SendError(*reply, error, WriteJson(OpenAiError(error)), "");
            }
            reply->Send(200, {{"content-type", "application/octet-stream"}}, *std::move(content));
          },
          true};
}

class BatchDialect final : public Dialect {
 public:
  explicit BatchDialect(BatchDesk* desk) : desk_(desk) {}
  std::string name() const override { return "batch"; }
  std::vector<DialectRoute> routes() const override;

 private:
  BatchDesk* const desk_;
};

std::vector<DialectRoute> BatchDialect::routes() const {
  const auto by_id =
      [this](const char* method, const char* path, const char* summary,
             ApiResult<Json> (BatchDesk::*act)(const std::string&, const std::string&)) {
        return Slow(method, path, summary, desk_, [act](BatchDesk& desk, const HttpRequest& http) {
          return (desk.*act)(http.key_id, http.path_captures[0]);
        });
      };
  const auto upload = [](BatchDesk& desk, const HttpRequest& http) -> ApiResult<Json> {
    HEARTH_ASSIGN(NewFile file, ReadUpload(http));
    return desk.AddFile(http.key_id, std::move(file));
  };
  const auto list_files = [](BatchDesk& desk, const HttpRequest& http) -> ApiResult<Json> {
    HEARTH_ASSIGN(const ListRange range, RangeOf(http.query));
    return desk.ListFiles(http.key_id, QueryValue(http.query, "purpose"), range);
  };
  const auto list_batches = [](BatchDesk& desk, const HttpRequest& http) -> ApiResult<Json> {
    HEARTH_ASSIGN(const ListRange range, RangeOf(http.query));
    return desk.ListBatches(http.key_id, range);
  };
  const auto create = [desk = desk_](const TurnService&, const Json& body,
                                     const HttpRequest& http) -> ApiResult<Json> {
    HEARTH_ASSIGN(NewBatch batch, ReadBatch(body));
    if (desk == nullptr) return NotSetUp();
    return desk->AddBatch(http.key_id, std::move(batch));
  };
  DialectRoute uploads = Slow("POST", "/v1/files",
                              "Upload a file (multipart/form-data: `file`, "
                              "`purpose` batch)",
                              desk_, upload);
  uploads.max_body_bytes = kMaxFileBytes + (size_t{64} << 10);  // and the form around it
  return {
      std::move(uploads),
      Slow("GET", "/v1/files", "Your files; `?purpose=…&limit=…&after=ID`", desk_, list_files),
      by_id("GET", "/v1/files/{id}", "What is known of a file", &BatchDesk::FindFile),
      ContentRoute(desk_),
      by_id("DELETE", "/v1/files/{id}", "Delete a file", &BatchDesk::DeleteFile),
      {{"POST", "/v1/batches", Auth::kKey, "Answer every line of a file", kBatchFields}, create},
      Slow("GET", "/v1/batches", "Your batches; `?limit=…&after=ID`", desk_, list_batches),
      by_id("GET", "/v1/batches/{id}", "How far a batch is", &BatchDesk::FindBatch),
      by_id("POST", "/v1/batches/{id}/cancel", "End a batch", &BatchDesk::CancelBatch)};
}

}  // namespace

std::shared_ptr<const Dialect> MakeBatchDialect(BatchDesk* desk) {
  return std::make_shared<BatchDialect>(desk);
}

}  // namespace hearth
