// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/tokens/token_dialect.h"

#include <utility>

#include "server/turns/turn_service.h"
#include "text/utf8_stream.h"

namespace hearth {
namespace {

using enum FieldKind;
using enum FieldUse;

constexpr Field kTokenizeFields[] = {
    {"add_special_tokens", kBoolean, kHonoured, 0, 0,
     "put the model's first token before a `prompt`, where it has one; true unless given"},
    {"messages", kArray, kHonoured, 1, 4096, "a conversation, rendered as a chat would be"},
    {"model", kString, kHonoured, 0, 256, "the name of the model that is served"},
    {"prompt", kString, kHonoured, 0, 0, "a text, instead of `messages`"},
    {"return_token_strs", kBoolean, kHonoured, 0, 0, "also the text of each token"},
    {"tools", kArray, kHonoured, 0, 128, "beside `messages`"},
};
constexpr Field kDetokenizeFields[] = {
    {"model", kString, kHonoured, 0, 256, "the name of the model that is served"},
    {"tokens", kArray, kHonoured, 0, 1 << 20, "token ids"},
};

ApiResult<std::vector<Token>> TokensFor(const Fields& fields, const TurnService& service,
                                        const ServedModel& model) {
  const Json* messages = fields.find("messages");
  if (const std::optional<std::string> prompt = fields.text("prompt")) {
    if (messages != nullptr) return BadField("prompt", "give either this or messages, not both");
    return PlainTokens(*model.tokenizer, *prompt, fields.flag("add_special_tokens", true));
  }
  if (messages == nullptr) return BadField("prompt", "either this or messages is required");
  JsonObject conversation{{"messages", *messages}};
  if (const Json* tools = fields.find("tools")) conversation.push_back({"tools", *tools});
  Result<Conversation> read = ParseConversation(Json(std::move(conversation)));
  if (!read.ok()) return FromStatus(read.status());
  return service.Render(model, *std::move(read));
}

ApiResult<Json> Tokenize(const TurnService& service, const ServedModel& model, const Json& body,
                         const HttpRequest&) {
  HEARTH_ASSIGN(const Fields fields, ReadFields(body, kTokenizeFields));
  HEARTH_ASSIGN(const std::vector<Token> found, TokensFor(fields, service, model));
  const bool wants_strings = fields.flag("return_token_strs", false);
  JsonArray ids, strings;
  for (const Token token : found) {
    ids.emplace_back(static_cast<int64_t>(token));
    if (wants_strings) strings.emplace_back(model.tokenizer->Bytes(token));
  }
  const auto count = static_cast<int64_t>(ids.size());
  JsonObject answer{
      {"count", count}, {"max_model_len", model.max_context}, {"tokens", std::move(ids)}};
  if (wants_strings) answer.push_back({"token_strs", std::move(strings)});
  return Json(std::move(answer));
}

ApiResult<Json> Detokenize(const TurnService&, const ServedModel& model, const Json& body,
                           const HttpRequest&) {
  HEARTH_ASSIGN(const Fields fields, ReadFields(body, kDetokenizeFields));
  const Tokenizer& tokenizer = *model.tokenizer;
  const Json* tokens = fields.find("tokens");
  if (tokens == nullptr) return BadField("tokens", "is missing");
  std::string text;
  Utf8Stream stream;
  for (const Json& each : *tokens->array()) {
    const std::optional<int64_t> id = each.integer();
    if (!id || *id < 0 || *id >= tokenizer.vocab_size()) {
      return BadField("tokens",
                      Printf("must contain token ids from 0 to %d", tokenizer.vocab_size() - 1));
    }
    stream.Append(tokenizer.Bytes(static_cast<Token>(*id)), text);
  }
  stream.Finish(text);
  return Json(JsonObject{{"prompt", std::move(text)}});
}

// No turns: what prompts become, in the form of OpenAI's servers.
class TokenDialect final : public Dialect {
 public:
  std::string name() const override { return "tokens"; }
  std::vector<DialectRoute> routes() const override {
    return {
        {{"POST", "/tokenize", Auth::kKey, "The tokens of a text or conversation", kTokenizeFields},
         {},
         {},
         false,
         Tokenize},
        {{"POST", "/detokenize", Auth::kKey, "The text of tokens", kDetokenizeFields},
         {},
         {},
         false,
         Detokenize}};
  }
};

}  // namespace

std::shared_ptr<const Dialect> MakeTokenDialect() { return std::make_shared<TokenDialect>(); }

}  // namespace hearth
