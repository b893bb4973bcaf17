// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/render/render_dialect.h"

#include <utility>

#include "server/dialects/chat/chat_request.h"
#include "server/dialects/completions/completion_dialect.h"
#include "server/turns/turn_service.h"

namespace hearth {
namespace {

Json AsJson(const ServedModel& model, const std::vector<Token>& tokens) {
  JsonArray ids;
  ids.reserve(tokens.size());
  for (const Token token : tokens) ids.emplace_back(static_cast<int64_t>(token));
  const auto count = static_cast<int64_t>(ids.size());
  return JsonObject{{"model", model.name},
                    {"token_ids", std::move(ids)},
                    {"count", count},
                    {"max_model_len", model.max_context}};
}

ApiResult<Json> RenderChat(const TurnService& service, const ServedModel& model, const Json& body,
                           const HttpRequest&) {
  HEARTH_ASSIGN(TurnRequest turn, ReadChatRequest(body));
  HEARTH_ASSIGN(const std::vector<Token> tokens, service.Render(model, std::move(turn)));
  return AsJson(model, tokens);
}

ApiResult<Json> RenderCompletion(const TurnService&, const ServedModel& model, const Json& body,
                                 const HttpRequest&) {
  HEARTH_ASSIGN(const CompletionRequest read, ReadCompletionRequest(body));
  HEARTH_ASSIGN(const std::vector<std::vector<Token>> prompts, PromptsOf(model, read.turn));
  if (prompts.size() != 1) return BadField("prompt", "give one prompt at a time");
  return AsJson(model, prompts.front());
}

class RenderDialect final : public Dialect {
 public:
  std::string name() const override { return "render"; }
  std::vector<DialectRoute> routes() const override {
    return {{{"POST", "/v1/chat/completions/render", Auth::kKey,
              "The tokens that a chat's prompt becomes", ChatFields()},
             {},
             {},
             false,
             RenderChat},
            {{"POST", "/v1/completions/render", Auth::kKey, "The tokens that a prompt becomes",
              CompletionFields()},
             {},
             {},
             false,
             RenderCompletion}};
  }
};

}  // namespace

std::shared_ptr<const Dialect> MakeRenderDialect() { return std::make_shared<RenderDialect>(); }

}  // namespace hearth
