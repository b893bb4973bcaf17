// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/ollama/ollama_dialect.h"

#include <utility>

#include "server/dialects/ollama/ollama_models.h"
#include "server/dialects/ollama/ollama_request.h"
#include "server/dialects/ollama/ollama_writer.h"
#include "server/turns/turn_service.h"

namespace hearth {
namespace {

constexpr std::string_view kChat = "/api/chat", kGenerate = "/api/generate", kEmbed = "/api/embed",
                           kEmbeddings = "/api/embeddings";

// Thoughts that the model does not have are not silently left out.
ApiStatus FitThoughts(bool wants_thoughts, bool has_effort, const ServedModel& model,
                      TurnRequest& turn) {
  if (wants_thoughts && !model.facts.can_think) {
    return BadField("think",
                    Quoted(model.name) + " does not support thinking; send false, or nothing",
                    "unsupported_value");
  }
  if (has_effort && !model.format->has_reasoning_effort()) turn.ignored_fields.push_back("think");
  return {};
}

ApiResult<DialectTurn> ReadReply(const Json& body, OllamaWriter::Form form) {
  const bool is_chat = form == OllamaWriter::Form::kChat;
  HEARTH_ASSIGN(OllamaRequest read, is_chat ? ReadOllamaChat(body) : ReadOllamaGenerate(body));
  DialectTurn out;
  const auto loaded = [&](const char* reason) {
    return std::make_shared<const Json>(OllamaLoaded(read.turn.model, is_chat, reason));
  };
  if (read.is_empty) out.answer = loaded("load");
  if (read.is_empty && read.turn.keep_alive_s == 0) out.unload_answer = loaded("unload");
  out.fit = [thoughts = read.wants_thoughts, effort = read.has_effort](const ServedModel& model,
                                                                       TurnRequest& turn) {
    return FitThoughts(thoughts, effort, model, turn);
  };
  out.write = [form](const TurnRequest& request, const ReplyFacts& facts) {
    return std::make_unique<OllamaWriter>(form, request, facts);
  };
  out.turn = std::move(read.turn);
  return out;
}

ApiResult<DialectTurn> ReadEmbedding(const Json& body, bool is_single) {
  HEARTH_ASSIGN(OllamaRequest read, is_single ? ReadOllamaEmbeddings(body) : ReadOllamaEmbed(body));
  DialectTurn out;
  if (read.is_empty && is_single) {
    out.answer = std::make_shared<const Json>(JsonObject{{"embedding", JsonArray{}}});
  }
  if (read.is_empty && !is_single) {
    out.answer = std::make_shared<const Json>(
        JsonObject{{"model", read.turn.model}, {"embeddings", JsonArray{}}});
  }
  out.write = [is_single](const TurnRequest& request, const ReplyFacts&) {
    return std::make_unique<OllamaEmbeddingWriter>(request, is_single);
  };
  out.turn = std::move(read.turn);
  return out;
}

class OllamaDialect final : public Dialect {
 public:
  std::string name() const override { return "ollama"; }
  std::vector<DialectRoute> routes() const override {
    std::vector<DialectRoute> all{
        {{"POST", std::string(kChat), Auth::kKey, "A reply as Ollama's API writes it",
          OllamaChatFields()}},
        {{"POST", std::string(kGenerate), Auth::kKey, "A reply to one prompt, as Ollama writes it",
          OllamaGenerateFields()}},
        {{"POST", std::string(kEmbed), Auth::kKey,
          "The mean of a text's states, of length 1, as Ollama writes it", OllamaEmbedFields()}},
        {{"POST", std::string(kEmbeddings), Auth::kKey,
          "The same for one text, Ollama's older form", OllamaEmbeddingsFields()}}};
    for (DialectRoute& route : OllamaModelRoutes()) all.push_back(std::move(route));
    return all;
  }
  ApiResult<DialectTurn> Read(const Json& body, const HttpRequest& http) const override {
    if (http.path == kChat) return ReadReply(body, OllamaWriter::Form::kChat);
    if (http.path == kGenerate) return ReadReply(body, OllamaWriter::Form::kGenerate);
    return ReadEmbedding(body, http.path == kEmbeddings);
  }
  std::string DescribeError(const ApiError& error) const override {
    return WriteJson(OllamaError(error));
  }
};

}  // namespace

std::shared_ptr<const Dialect> MakeOllamaDialect() { return std::make_shared<OllamaDialect>(); }

}  // namespace hearth
