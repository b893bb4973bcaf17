// SPDX-License-Identifier: Apache-2.0
#include "server/openai_routes.h"

#include "server/dialects/chat/chat_writer.h"
#include "server/dialects/completions/completion_dialect.h"
#include "server/dialects/embeddings/embedding_dialect.h"
#include "server/token_routes.h"

namespace hearth {
namespace {

// Paths that clients know and this server does not serve: said by name, not as a typing error.
constexpr const char* kNotDone[] = {"/v1/moderations", "/v1/images/generations",
                                    "/v1/audio/speech"};

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
  service.AddTurnRoute(router, "/v1/completions", CompletionDialect());
  service.AddTurnRoute(router, "/v1/embeddings", EmbeddingDialect());
  AddTokenRoutes(service, router);
  for (const char* path : kNotDone) {
    router.Add("POST", path, Auth::kKey,
               [path](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
                 ApiError error;
                 error.status = 501;
                 error.code = "not_implemented";
                 error.message = std::string(path) + ": not implemented";
                 SendError(*reply, error, WriteJson(OpenAiError(error)), "");
               });
  }
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
