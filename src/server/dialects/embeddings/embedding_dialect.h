// SPDX-License-Identifier: Apache-2.0
// OpenAI's embeddings: the mean of a text's states, as a direction. Both halves of the dialect.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "server/turns/dialect.h"
namespace hearth {

std::shared_ptr<const Dialect> MakeEmbeddingDialect();

struct EmbeddingRequest {
  TurnRequest turn;
  bool is_base64 = false;
};
ApiResult<EmbeddingRequest> ReadEmbeddingRequest(const Json& body);

class EmbeddingWriter : public ReplyWriter {
 public:
  EmbeddingWriter(const TurnRequest& request, bool is_base64, ReplyFacts facts);
  void AddEmbedding(int choice, std::vector<float> embedding) override;
  std::string Whole(const TurnUsage& usage) override;
  // There is no stream of these.
  std::string Begin() override { return ""; }
  std::string Add(int, const Delta&) override { return ""; }
  std::string EndChoice(int, const ChoiceEnd&) override { return ""; }
  std::string End(const TurnUsage&) override { return ""; }
  std::string Fail(const ApiError&) override { return ""; }

 private:
  const ReplyFacts facts_;
  const bool is_base64_;
  std::vector<std::vector<float>> embeddings_;
};

}  // namespace hearth
