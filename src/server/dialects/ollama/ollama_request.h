// SPDX-License-Identifier: Apache-2.0
// The bodies of /api/chat, /api/generate, /api/embed and /api/embeddings, read and checked.
#pragma once
#include <span>
#include <string>

#include "server/turns/fields.h"
#include "server/turns/turn_request.h"
namespace hearth {

std::span<const Field> OllamaChatFields();
std::span<const Field> OllamaGenerateFields();
std::span<const Field> OllamaEmbedFields();
std::span<const Field> OllamaEmbeddingsFields();

struct OllamaRequest {
  TurnRequest turn;
  // Nothing to say or to embed: the client wants the model loaded, which it is.
  bool is_empty = false;
  // `think` asked for thoughts, or for so many of them: the model must have some.
  bool wants_thoughts = false, has_effort = false;
};

ApiResult<OllamaRequest> ReadOllamaChat(const Json& body);
ApiResult<OllamaRequest> ReadOllamaGenerate(const Json& body);
ApiResult<OllamaRequest> ReadOllamaEmbed(const Json& body);
ApiResult<OllamaRequest> ReadOllamaEmbeddings(const Json& body);

}  // namespace hearth
