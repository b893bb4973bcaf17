// SPDX-License-Identifier: Apache-2.0
#include "talk/server_source.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include "base/mask_secrets.h"
#include "base/terminal.h"
#include "talk/chat_stream.h"

namespace hearth {
namespace {

constexpr long kListSeconds = 10;
constexpr int kLookMs = 50;  // how late an interrupt may be noticed
constexpr size_t kMaxAnswerBytes = size_t{4} << 20;

using Steady = std::chrono::steady_clock;
double SecondsSince(Steady::time_point start) {
  return std::chrono::duration<double>(Steady::now() - start).count();
}

// Until the call is over or `goes_on` says no: kCancelled then.
Status Run(ServerCall& call, const std::function<bool()>& goes_on) {
  call.Begin();
  while (true) {
    if (std::optional<Status> ended = call.Wait({}, kLookMs)) return *ended;
    if (!goes_on()) return Status(Code::kCancelled, "stopped");
  }
}

struct ListedModel {
  std::string id;
  int max_context = 0;
};

Result<std::vector<ListedModel>> ReadModels(std::string_view body) {
  HEARTH_ASSIGN(const Json json, ParseJson(body, {.max_bytes = kMaxAnswerBytes}));
  const Json* data = json.Find("data");
  if (data == nullptr || data->array() == nullptr) {
    return Error(Code::kInvalid, "expected a list of models");
  }
  std::vector<ListedModel> models;
  for (const Json& row : *data->array()) {
    const Json* id = row.Find("id");
    if (id == nullptr || id->string() == nullptr) continue;
    const Json* context = row.Find("max_model_len");
    const int64_t tokens = context != nullptr ? context->integer().value_or(0) : 0;
    models.push_back({*id->string(), static_cast<int>(std::clamp<int64_t>(tokens, 0, 1 << 30))});
  }
  return models;
}

class ServerAnswerer : public Answerer {
 public:
  ServerAnswerer(ServerAddress address, ListedModel model, std::optional<Json> schema)
      : address_(std::move(address)), model_(std::move(model)), schema_(std::move(schema)) {}
  std::string name() const override { return ForTerminal(model_.id); }
  std::string place() const override { return "at " + ForTerminal(MaskSecretValue(address_.url)); }
  int max_context() const override { return model_.max_context; }
  Status Check(const TalkSettings&) const override { return Status(); }  // the server will say

  Result<TurnResult> Answer(const Conversation& conversation, const TalkSettings& settings,
                            const TurnListener& listener,
                            const std::atomic<bool>& interrupted) override {
    TalkSettings mine = settings;
    if (settings.seed != last_seed_) num_turns_ = 0;
    last_seed_ = settings.seed;
    if (mine.seed) *mine.seed += num_turns_;
    ++num_turns_;  // the next turn must not repeat this one's draws
    const Steady::time_point start = Steady::now();
    double first_s = 0;
    ChatStreamReader reader(mine);
    Status status;
    std::string refusal;
    ServerCall call(address_, "/v1/chat/completions", [&](std::string_view bytes, long code) {
      if (code != 200) {
        refusal.append(
            bytes.substr(0, kMaxAnswerBytes - std::min(refusal.size(), kMaxAnswerBytes)));
        return true;
      }
      status = reader.Feed(bytes, listener.hear);
      if (first_s == 0 && reader.has_begun()) first_s = SecondsSince(start);
      return status.ok();
    });
    call.Post(
        WriteJson(ChatRequestBody(model_.id, conversation, mine, schema_ ? &*schema_ : nullptr)));
    const Status ended = Run(call, [&] {
      listener.wait();
      return !interrupted;
    });
    if (!status.ok()) return status;
    TurnResult result;
    if (ended.code() == Code::kCancelled) {
      result = reader.Stopped();
    } else {
      HEARTH_TRY(ended);
      if (call.http_status() != 200) {
        return Error(Code::kInvalid, "%s", ErrorMessage(call.http_status(), refusal).c_str());
      }
      HEARTH_ASSIGN(result, reader.Finish());
    }
    result.figures.first_token_s = first_s;
    result.figures.total_s = SecondsSince(start);
    return result;
  }

 private:
  const ServerAddress address_;
  const ListedModel model_;
  const std::optional<Json> schema_;
  std::optional<uint64_t> last_seed_;
  uint64_t num_turns_ = 0;
};

class ServerSource : public AnswererSource {
 public:
  ServerSource(ServerAddress address, std::optional<Json> schema)
      : address_(std::move(address)), schema_(std::move(schema)) {}

  Status Find(const std::string& name) override { return Listed(name).status(); }
  Result<std::unique_ptr<Answerer>> Open(const std::string& name) override {
    HEARTH_ASSIGN(ListedModel model, Listed(name));
    return std::unique_ptr<Answerer>(
        std::make_unique<ServerAnswerer>(address_, std::move(model), schema_));
  }

 private:
  Result<ListedModel> Listed(const std::string& name) const {
    const std::string where = ForTerminal(MaskSecretValue(address_.url));
    std::string body;
    ServerCall call(address_, "/v1/models", [&](std::string_view bytes, long) {
      body += bytes;
      return body.size() <= kMaxAnswerBytes;
    });
    call.Limit(kListSeconds);
    HEARTH_TRY(Run(call, [] { return true; }));
    if (call.http_status() == 401) {
      return Error(Code::kInvalid, "%s: %s", where.c_str(),
                   address_.key.empty()
                       ? "an API key is required: pass --key-file FILE or set HEARTH_API_KEY"
                       : "the API key was rejected");
    }
    if (call.http_status() != 200) {
      return Error(Code::kInvalid, "%s: %s", where.c_str(),
                   ErrorMessage(call.http_status(), body).c_str());
    }
    HEARTH_ASSIGN(const std::vector<ListedModel> models, ReadModels(body).Within(where));
    std::string names;
    for (const ListedModel& model : models) {
      if (model.id == name || (name.empty() && models.size() == 1)) return model;
      names += (names.empty() ? "" : ", ") + ForTerminal(model.id);
    }
    if (name.empty()) {
      return Error(Code::kInvalid, "%s: name one of its models: %s", where.c_str(), names.c_str());
    }
    return Error(Code::kNotFound, "%s: model %s not found; available: %s", where.c_str(),
                 Quoted(name).c_str(), names.c_str());
  }

  const ServerAddress address_;
  const std::optional<Json> schema_;
};

}  // namespace

Result<std::unique_ptr<AnswererSource>> NewServerSource(ServerAddress address,
                                                        std::optional<Json> schema) {
  HEARTH_ASSIGN(ServerAddress checked, CheckAddress(std::move(address)));
  return std::unique_ptr<AnswererSource>(
      std::make_unique<ServerSource>(std::move(checked), std::move(schema)));
}

}  // namespace hearth
