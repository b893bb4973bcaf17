// SPDX-License-Identifier: Apache-2.0
#include "server/all_dialects.h"

#include "server/dialects/batches/batch_dialect.h"
#include "server/dialects/chat/chat_dialect.h"
#include "server/dialects/completions/completion_dialect.h"
#include "server/dialects/embeddings/embedding_dialect.h"
#include "server/dialects/messages/messages_dialect.h"
#include "server/dialects/models/models_dialect.h"
#include "server/dialects/ollama/ollama_dialect.h"
#include "server/dialects/render/render_dialect.h"
#include "server/dialects/responses/responses_dialect.h"
#include "server/dialects/tokens/token_dialect.h"

namespace hearth {

Dialects AllDialects(ResponseStore& responses, Auth admin, BatchDesk* batches) {
  return {
      MakeChatDialect(),        MakeCompletionDialect(),
      MakeEmbeddingDialect(),   MakeResponsesDialect(responses),
      MakeMessagesDialect(),    MakeOllamaDialect(),
      MakeTokenDialect(),       MakeRenderDialect(),
      MakeModelsDialect(admin), MakeBatchDialect(batches),
  };
}

PathBeginnings BeginningsOf(const Dialects& dialects) {
  PathBeginnings beginnings;
  for (const auto& dialect : dialects) {
    for (const DialectRoute& route : dialect->routes()) {
      beginnings.emplace_back(route.endpoint.path.substr(0, route.endpoint.path.find('{')),
                              dialect);
    }
  }
  return beginnings;
}

std::string DescribeErrorAt(const PathBeginnings& beginnings, const std::string& path,
                            const ApiError& error) {
  const Dialect* nearest = nullptr;
  size_t longest = 0;
  for (const auto& [beginning, dialect] : beginnings) {
    if (beginning.size() <= longest || !path.starts_with(beginning)) continue;
    longest = beginning.size();
    nearest = dialect.get();
  }
  return nearest == nullptr ? WriteJson(OpenAiError(error)) : nearest->DescribeError(error);
}

std::string DescribeErrorAt(const Dialects& dialects, const std::string& path,
                            const ApiError& error) {
  return DescribeErrorAt(BeginningsOf(dialects), path, error);
}

}  // namespace hearth
