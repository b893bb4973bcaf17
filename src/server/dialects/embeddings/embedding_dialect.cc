// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/embeddings/embedding_dialect.h"

#include <bit>
#include <memory>
#include <utility>

#include "server/access/base64.h"
#include "server/dialects/plain_prompts.h"
#include "server/dialects/sampling_fields.h"

namespace hearth {
namespace {

using enum FieldKind;
using enum FieldUse;

constexpr Field kFields[] = {
    {"cache_salt", kString, kHonoured, 1, 256,
     "what is computed is cached for requests of the same salt"},
    {"dimensions", kInteger, kRefused, 0, 0, "embeddings always have the model's own size"},
    {"encoding_format", kString, kHonoured, 0, 16,
     "`float`, or `base64`: the numbers as 32-bit floats, lowest byte first"},
    {"input", kAny, kHonoured, 0, 0,
     "a string, token ids, or a list of up to 2048 of either; no chat template is applied"},
    {"model", kString, kHonoured, 0, 256, "the name of the model that is served"},
    {"priority", kInteger, kHonoured, -1, 2,
     "-1 urgent, 0 normal, 1 low, 2 when nobody else wants anything; at most what the key may "
     "have"},
    {"timeout", kNumber, kHonoured, 0.001, 86400, "seconds, after which the request ends with 504"},
    {"user", kString, kNoEffect, 0, 0, "nothing is stored"},
};
constexpr size_t kMaxInputs = 2048;

std::vector<unsigned char> LowestFirst(std::span<const float> numbers) {
  std::vector<unsigned char> bytes;
  for (const float number : numbers) {
    const auto bits = std::bit_cast<uint32_t>(number);
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<unsigned char>(bits >> shift));
    }
  }
  return bytes;
}

class EmbeddingDialect final : public Dialect {
 public:
  std::string name() const override { return "embedding"; }
  std::vector<DialectRoute> routes() const override {
    return {{{"POST", "/v1/embeddings", Auth::kKey,
              "The mean of a text's states after the last norm, of length 1: mean-pooled, not a "
              "trained embedding model",
              kFields}}};
  }
  ApiResult<DialectTurn> Read(const Json& body, const HttpRequest&) const override {
    HEARTH_ASSIGN(EmbeddingRequest read, ReadEmbeddingRequest(body));
    const auto write = [is_base64 = read.is_base64](const TurnRequest& request,
                                                    const ReplyFacts& facts) {
      return std::make_unique<EmbeddingWriter>(request, is_base64, facts);
    };
    return DialectTurn{std::move(read.turn), write};
  }
};

}  // namespace

std::shared_ptr<const Dialect> MakeEmbeddingDialect() {
  return std::make_shared<EmbeddingDialect>();
}

ApiResult<EmbeddingRequest> ReadEmbeddingRequest(const Json& body) {
  HEARTH_ASSIGN(const Fields fields, ReadFields(body, kFields));
  EmbeddingRequest read;
  TurnRequest& out = read.turn;
  out.prompt_field = "input";
  const Json* input = fields.find("input");
  if (input == nullptr) return BadField("input", "is missing");
  HEARTH_TRY(ReadPlainPrompts(*input, "input", kMaxInputs, out.plain_prompts));
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") {
    return BadField("encoding_format", "must be float or base64");
  }
  read.is_base64 = format == "base64";
  out.prompt_only = out.pools = true;
  out.model = fields.text("model").value_or("");
  out.cache_salt = fields.text("cache_salt").value_or("");
  out.timeout_us = static_cast<int64_t>(fields.number("timeout").value_or(0) * 1e6);
  out.priority = PriorityOf(fields);
  return read;
}

EmbeddingWriter::EmbeddingWriter(const TurnRequest& request, bool is_base64, ReplyFacts facts)
    : facts_(std::move(facts)), is_base64_(is_base64), embeddings_(request.plain_prompts.size()) {}

void EmbeddingWriter::AddEmbedding(int choice, std::vector<float> embedding) {
  embeddings_[static_cast<size_t>(choice)] = std::move(embedding);
}

std::string EmbeddingWriter::Whole(const TurnUsage& usage) {
  JsonArray data;
  for (size_t i = 0; i < embeddings_.size(); ++i) {
    Json embedding;
    if (is_base64_) {
      embedding = AsBase64(LowestFirst(embeddings_[i]));
    } else {
      JsonArray numbers;
      for (const float number : embeddings_[i]) {
        numbers.emplace_back(static_cast<double>(number));
      }
      embedding = std::move(numbers);
    }
    data.push_back(JsonObject{{"object", "embedding"},
                              {"index", static_cast<int64_t>(i)},
                              {"embedding", std::move(embedding)}});
  }
  return WriteJson(JsonObject{{"object", "list"},
                              {"data", std::move(data)},
                              {"model", facts_.model},
                              {"usage", JsonObject{{"prompt_tokens", usage.prompt_tokens},
                                                   {"total_tokens", usage.prompt_tokens}}}});
}

}  // namespace hearth
