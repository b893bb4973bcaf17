// SPDX-License-Identifier: Apache-2.0
#include "server/openai_routes.h"

#include "server/chat_writer.h"

namespace hearth {
namespace {

Json ModelCard(const ServedModel& model) {
  return JsonObject{{"id", model.name},
                    {"object", "model"},
                    {"created", 0},
                    {"owned_by", "hearth"},
                    {"max_model_len", model.max_context},
                    {"context_length", model.max_context}};
}

}  // namespace

void AddOpenAiRoutes(TurnService& service, Router& router) {
  service.AddTurnRoute(router, "/v1/chat/completions", ChatDialect());
  router.Add("GET", "/v1/models", Auth::kKey,
             [&service](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
               SendJson(*reply, JsonObject{{"object", "list"},
                                           {"data", JsonArray{ModelCard(service.model())}}});
             });
  router.Add("GET", "/v1/models/{id}", Auth::kKey,
             [&service](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
               if (const auto error = service.CheckModel(request.path_captures[0])) {
                 return SendError(*reply, *error, WriteJson(OpenAiError(*error)), "");
               }
               SendJson(*reply, ModelCard(service.model()));
             });
}

}  // namespace hearth
