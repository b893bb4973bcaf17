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
    {"dimensions", kInteger, kRefused, 0, 0, "the model's own number of them is what there is"},
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

struct EmbeddingNotes : DialectNotes {
  bool is_base64 = false;
};

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

}  // namespace

std::span<const Field> EmbeddingFields() { return kFields; }

ApiResult<TurnRequest> ReadEmbeddingRequest(const Json& body) {
  ApiResult<Fields> read = ReadFields(body, kFields);
  if (auto* error = std::get_if<ApiError>(&read)) return std::move(*error);
  const Fields& fields = std::get<Fields>(read);
  TurnRequest out;
  out.prompt_field = "input";
  const Json* input = fields.find("input");
  if (input == nullptr) return BadField("input", "is missing");
  if (auto error = ReadPlainPrompts(*input, "input", kMaxInputs, out.plain_prompts)) {
    return *std::move(error);
  }
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") {
    return BadField("encoding_format", "must be float or base64");
  }
  auto notes = std::make_shared<EmbeddingNotes>();
  notes->is_base64 = format == "base64";
  out.notes = std::move(notes);
  out.prompt_only = out.pools = true;
  out.model = fields.text("model").value_or("");
  out.cache_salt = fields.text("cache_salt").value_or("");
  out.timeout_us = static_cast<int64_t>(fields.number("timeout").value_or(0) * 1e6);
  out.priority = PriorityOf(fields);
  return out;
}

Dialect EmbeddingDialect() {
  return {"embedding", [](Json body, const HttpRequest&) { return ReadEmbeddingRequest(body); },
          [](const TurnRequest& request, const ReplyFacts& facts) {
            return std::make_unique<EmbeddingWriter>(request, facts);
          },
          [](const ApiError& error) { return WriteJson(OpenAiError(error)); }};
}

EmbeddingWriter::EmbeddingWriter(const TurnRequest& request, ReplyFacts facts)
    : facts_(std::move(facts)),
      is_base64_(static_cast<const EmbeddingNotes&>(*request.notes).is_base64),
      embeddings_(request.plain_prompts.size()) {}

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
