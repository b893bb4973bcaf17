// SPDX-License-Identifier: Apache-2.0
#include "batch/batch_lines.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/result.h"

namespace hearth {
namespace {

constexpr size_t kMaxMistakes = 20;
constexpr size_t kMaxIdBytes = 256;
// As requests that are sent by themselves.
constexpr JsonLimits kLineLimits{
    .max_bytes = size_t{4} << 20, .max_depth = 64, .max_values = 200'000};

LineMistake Wrong(const char* code, const char* param, std::string message) {
  return {0, code, param, std::move(message)};
}

const std::string* TextOf(const Json& line, const char* name) {
  const Json* found = line.Find(name);
  return found == nullptr ? nullptr : found->string();
}

// Urgency is not the client's to choose here.
std::string BodyOf(const Json& body) {
  JsonObject members;
  for (const JsonMember& member : *body.object()) {
    if (member.first != "priority") members.push_back(member);
  }
  members.push_back({"priority", 2});
  return WriteJson(Json(std::move(members)));
}

// A line, or what is wrong with it.
std::pair<BatchLine, LineMistake> ReadLine(std::string_view text, const std::string& endpoint) {
  const auto wrong = [](LineMistake mistake) { return std::pair{BatchLine(), std::move(mistake)}; };
  Result<Json> line = ParseJson(text, kLineLimits);
  if (!line.ok() || line->object() == nullptr) {
    return wrong(Wrong(
        "invalid_json_line", "",
        "This line is not a JSON object" + (line.ok() ? "" : ": " + line.status().message())));
  }
  for (const JsonMember& member : *line->object()) {
    if (member.first != "custom_id" && member.first != "method" && member.first != "url" &&
        member.first != "body") {
      return wrong(Wrong("unknown_parameter", "", "Unknown field " + Quoted(member.first)));
    }
  }
  const std::string* id = TextOf(*line, "custom_id");
  if (id == nullptr || id->empty() || id->size() > kMaxIdBytes) {
    return wrong(Wrong("missing_required_parameter", "custom_id",
                       "custom_id must be a text of 1 to 256 bytes"));
  }
  const std::string* method = TextOf(*line, "method");
  if (method == nullptr || *method != "POST") {
    return wrong(Wrong("invalid_method", "method", "method must be POST"));
  }
  const std::string* url = TextOf(*line, "url");
  if (url == nullptr || *url != endpoint) {
    return wrong(Wrong("mismatched_url", "url", "url must be the batch's endpoint, " + endpoint));
  }
  const Json* body = line->Find("body");
  if (body == nullptr || body->object() == nullptr) {
    return wrong(Wrong("missing_required_parameter", "body", "body must be a JSON object"));
  }
  const Json* stream = body->Find("stream");
  if (stream != nullptr && stream->boolean() != nullptr && *stream->boolean()) {
    return wrong(Wrong("invalid_stream", "body.stream", "batches are not streamed"));
  }
  return {BatchLine{*id, BodyOf(*body)}, {}};
}

}  // namespace

bool IsBatchEndpoint(const std::string& endpoint) {
  return endpoint == "/v1/chat/completions" || endpoint == "/v1/completions" ||
         endpoint == "/v1/embeddings";
}

BatchLines ReadLines(std::string_view text, const std::string& endpoint, int max_lines) {
  BatchLines out;
  std::unordered_set<std::string> ids;
  const auto complain = [&](LineMistake mistake, int line) {
    mistake.line = line;
    out.mistakes.push_back(std::move(mistake));
  };
  for (int number = 1; !text.empty() && out.mistakes.size() < kMaxMistakes; ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (out.lines.size() == static_cast<size_t>(max_lines)) {
      complain(Wrong("too_many_lines", "", Printf("A batch has at most %d lines", max_lines)), 0);
      break;
    }
    auto [read, mistake] = ReadLine(line, endpoint);
    if (mistake.code.empty() && !ids.insert(read.custom_id).second) {
      mistake = Wrong("duplicate_custom_id", "custom_id",
                      "custom_id " + Quoted(read.custom_id) + " was used before");
    }
    if (mistake.code.empty()) {
      out.lines.push_back(std::move(read));
    } else {
      complain(std::move(mistake), number);
    }
  }
  if (out.lines.empty() && out.mistakes.empty()) {
    complain(Wrong("empty_file", "", "The file has no lines"), 0);
  }
  return out;
}

Json MistakesAsJson(const std::vector<LineMistake>& mistakes) {
  JsonArray data;
  for (const LineMistake& each : mistakes) {
    data.push_back(JsonObject{{"code", each.code},
                              {"line", each.line > 0 ? Json(each.line) : Json()},
                              {"message", each.message},
                              {"param", each.param.empty() ? Json() : Json(each.param)}});
  }
  return JsonObject{{"object", "list"}, {"data", std::move(data)}};
}

std::string ResultLine(const std::string& custom_id, const std::string& request_id, int status,
                       std::string body) {
  return WriteJson(JsonObject{{"id", "batch_req_" + request_id},
                              {"custom_id", custom_id},
                              {"response", JsonObject{{"status_code", status},
                                                      {"request_id", request_id},
                                                      {"body", JsonText{std::move(body)}}}},
                              {"error", Json()}});
}

std::string UnrunLine(const std::string& custom_id, const std::string& request_id,
                      const std::string& code, const std::string& message) {
  return WriteJson(JsonObject{{"id", "batch_req_" + request_id},
                              {"custom_id", custom_id},
                              {"response", Json()},
                              {"error", JsonObject{{"code", code}, {"message", message}}}});
}

}  // namespace hearth
