// SPDX-License-Identifier: Apache-2.0
#include "asks.h"

#include "base/json.h"
#include "base/result.h"

namespace hearth::testing {
namespace {

Json Messages(const Ask& ask) {
  return JsonArray{JsonObject{{"role", "user"}, {"content", ask.prompt}}};
}

std::string PathOf(const Ask& ask) {
  constexpr const char* kPaths[] = {"/v1/chat/completions", "/v1/completions", "/v1/responses",
                                    "/v1/messages", "/api/chat"};
  return kPaths[static_cast<size_t>(ask.tongue)];
}

Json BodyOf(const Ask& ask) {
  JsonObject body{{"model", "bytes"}, {"stream", ask.streams}};
  if (ask.tongue == Tongue::kOllama) {
    body.push_back({"messages", Messages(ask)});
    body.push_back({"options", JsonObject{{"num_predict", ask.max_tokens}, {"temperature", 0}}});
    return body;
  }
  body.push_back({"temperature", 0});
  if (ask.tongue == Tongue::kResponses) {
    body.push_back({"max_output_tokens", ask.max_tokens});
    body.push_back({"input", ask.prompt});
    body.push_back({"store", ask.stores});
    if (ask.background) body.push_back({"background", true});
    return body;
  }
  body.push_back({"max_tokens", ask.max_tokens});
  if (ask.tongue == Tongue::kCompletions) {
    body.push_back({"prompt", ask.prompt});
  } else {
    body.push_back({"messages", Messages(ask)});
  }
  return body;
}

std::string HeadOf(const std::string& line, const std::string& key) {
  return line + " HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer " + key + "\r\n";
}

// Walks down objects by name and arrays by place; null when there is nothing.
const Json* At(const Json* json, std::initializer_list<const char*> path) {
  for (const char* name : path) {
    if (json == nullptr) return nullptr;
    if (name[0] >= '0' && name[0] <= '9') {
      const JsonArray* array = json->array();
      const auto place = static_cast<size_t>(name[0] - '0');
      json = array != nullptr && place < array->size() ? &(*array)[place] : nullptr;
    } else {
      json = json->object() != nullptr ? json->Find(name) : nullptr;
    }
  }
  return json;
}

std::string TextAt(const Json& json, std::initializer_list<const char*> path) {
  const Json* found = At(&json, path);
  return found != nullptr && found->string() != nullptr ? *found->string() : "";
}

int NumberAt(const Json& json, std::initializer_list<const char*> path) {
  const Json* found = At(&json, path);
  return found != nullptr && found->integer() ? static_cast<int>(*found->integer()) : -1;
}

// A response as it stands.
void TakeResponse(const Json& json, Understood& out) {
  out.id = TextAt(json, {"id"});
  out.state = TextAt(json, {"status"});
  out.tokens = NumberAt(json, {"usage", "output_tokens"});
  out.is_ended = out.state == "completed" || out.state == "incomplete";
  if (const Json* items = json.Find("output"); items != nullptr && items->array() != nullptr) {
    std::string text;
    for (const Json& item : *items->array()) text += TextAt(item, {"content", "0", "text"});
    out.text = text;
  }
}

void TakeWhole(const Ask& ask, const Json& json, Understood& out) {
  out.is_ended = true;
  switch (ask.tongue) {
    case Tongue::kChat:
      out.text = TextAt(json, {"choices", "0", "message", "content"});
      out.tokens = NumberAt(json, {"usage", "completion_tokens"});
      return;
    case Tongue::kCompletions:
      out.text = TextAt(json, {"choices", "0", "text"});
      out.tokens = NumberAt(json, {"usage", "completion_tokens"});
      return;
    case Tongue::kResponses:
      return TakeResponse(json, out);
    case Tongue::kMessages:
      out.text = TextAt(json, {"content", "0", "text"});
      out.tokens = NumberAt(json, {"usage", "output_tokens"});
      return;
    case Tongue::kOllama:
      out.text = TextAt(json, {"message", "content"});
      out.tokens = NumberAt(json, {"eval_count"});
      return;
  }
}

// One event of a stream.
void TakeEvent(const Ask& ask, const Json& json, Understood& out) {
  if (json.Find("error") != nullptr) out.error = WriteJson(json);
  const std::string type = TextAt(json, {"type"});
  switch (ask.tongue) {
    case Tongue::kChat:
      out.text += TextAt(json, {"choices", "0", "delta", "content"});
      return;
    case Tongue::kCompletions:
      out.text += TextAt(json, {"choices", "0", "text"});
      return;
    case Tongue::kResponses:
      if (const Json* response = json.Find("response")) {
        const std::string said = out.text;
        TakeResponse(*response, out);
        if (out.is_ended && out.text != said) out.trouble = "the deltas are not the whole";
        out.text = said;
      }
      if (type == "response.output_text.delta") out.text += TextAt(json, {"delta"});
      if (type == "response.failed" || type == "error") out.error = WriteJson(json);
      return;
    case Tongue::kMessages:
      out.text += TextAt(json, {"delta", "text"});
      if (type == "message_delta") out.tokens = NumberAt(json, {"usage", "output_tokens"});
      if (type == "message_stop") out.is_ended = true;
      return;
    case Tongue::kOllama:
      out.text += TextAt(json, {"message", "content"});
      if (const Json* done = json.Find("done"); done != nullptr && *done == Json(true)) {
        out.is_ended = true;
        out.tokens = NumberAt(json, {"eval_count"});
      }
      return;
  }
}

Understood UnderstandStream(const Ask& ask, const std::string& body) {
  Understood out;
  const bool is_lines = ask.tongue == Tongue::kOllama;
  for (size_t at = 0; at < body.size();) {
    const size_t end = body.find('\n', at);
    if (end == body.npos) break;  // of a stream that was cut
    std::string line = body.substr(at, end - at);
    at = end + 1;
    if (!is_lines) {
      if (!line.starts_with("data: ")) continue;
      line.erase(0, 6);
      if (line == "[DONE]") {
        if (out.is_ended) out.trouble = "it ended twice";
        out.is_ended = true;
        continue;
      }
    }
    if (line.empty()) continue;
    if (out.is_ended) out.trouble = "something follows the end";
    Result<Json> json = ParseJson(line);
    if (json.ok()) {
      TakeEvent(ask, *json, out);
    } else {
      out.trouble = "an event is no JSON";
    }
  }
  return out;
}

}  // namespace

std::string WriteAsk(const Ask& ask, const std::string& key) {
  switch (ask.what) {
    case Ask::What::kTurn:
      break;
    case Ask::What::kRetrieve:
    case Ask::What::kForeign:
      return HeadOf("GET /v1/responses/" + ask.id, key) + "\r\n";
    case Ask::What::kDelete:
      return HeadOf("DELETE /v1/responses/" + ask.id, key) + "\r\n";
    case Ask::What::kCancel:
      return HeadOf("POST /v1/responses/" + ask.id + "/cancel", key) + "content-length: 0\r\n\r\n";
    case Ask::What::kHealth:
      return HeadOf("GET /livez", key) + "\r\n";
  }
  const std::string body = WriteJson(BodyOf(ask));
  return HeadOf("POST " + PathOf(ask), key) +
         Printf("content-type: application/json\r\ncontent-length: %zu\r\n\r\n", body.size()) +
         body;
}

Understood Understand(const Ask& ask, const HttpAnswer& answer) {
  const bool is_stream = ask.what == Ask::What::kTurn && ask.streams;
  if (is_stream) return UnderstandStream(ask, answer.body);
  Understood out;
  if (ask.what == Ask::What::kHealth || !answer.is_whole) return out;
  Result<Json> json = ParseJson(answer.body);
  if (!json.ok()) {
    out.trouble = "the answer is no JSON";
    return out;
  }
  TakeWhole(ask, *json, out);
  return out;
}

}  // namespace hearth::testing
