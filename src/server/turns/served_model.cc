// SPDX-License-Identifier: Apache-2.0
#include "server/turns/served_model.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/near_match.h"
#include "server/turns/turn_limits.h"

namespace hearth {
namespace {

constexpr size_t kMaxNameBytes = 256;  // of the field `model`
constexpr size_t kMaxShown = 80, kMaxNear = 5;

std::string NearestFirst(std::vector<std::string> names, const std::string& asked) {
  const std::string plain = LowerAscii(asked);
  const auto distance = [&](const std::string& name) {
    return EditDistance(LowerAscii(name), plain);
  };
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return distance(a) < distance(b);
  });
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kMaxNear); ++i)
    out += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kMaxNear) out += Printf(" and %zu more", names.size() - kMaxNear);
  return out;
}

}  // namespace

ApiStatus CheckVariables(const ServedModel& model, UnknownFields unknown,
                         Conversation& conversation, std::vector<std::string>& ignored) {
  JsonObject known;
  for (JsonMember& variable : conversation.template_variables) {
    const std::string path = "chat_template_kwargs." + variable.first;
    if (model.format->has_variable(variable.first)) {
      known.push_back(std::move(variable));
    } else if (unknown == UnknownFields::kWarn) {
      ignored.push_back(path);
    } else {
      return BadField(path, "the model's chat template has no such variable",
                      "unsupported_parameter");
    }
  }
  conversation.template_variables = std::move(known);
  return {};
}

ApiStatus SettleEnd(TurnRequest& request) {
  std::vector<Message>& messages = request.conversation.messages;
  const auto is_empty = [](const Message& message) {
    return message.role == Role::kAssistant && message.content.empty() &&
           message.reasoning.empty() && message.tool_calls.empty();
  };
  while (!messages.empty() && is_empty(messages.back())) messages.pop_back();
  const bool is_assistant = !messages.empty() && messages.back().role == Role::kAssistant;
  const std::string& field = request.prompt_field;
  if (!is_assistant) {
    if (!request.continues.value_or(false)) return {};
    return BadField(field, "there is nothing to continue: the last message is not the assistant's");
  }
  if (!messages.back().tool_calls.empty()) {
    return BadField(field, "the last message calls tools: add the result of each call");
  }
  if (!request.continues.value_or(true)) return {};
  if (messages.back().content.empty()) {
    return BadField(field, "the last message is the assistant's and has no text to continue");
  }
  request.conversation.continues_last = true;
  return {};
}

ApiStatus CheckModelName(const ServedModel& model, const std::string& name) {
  const std::vector<std::string> names = NamesOf(model);
  const bool is_known = std::any_of(names.begin(), names.end(), [&](const std::string& known) {
    return IsSameModel(name, known);
  });
  if (name.empty() || is_known || model.takes_any_name) return {};
  return NoSuchModel(name, names);
}

ApiError NoSuchModel(const std::string& asked, const std::vector<std::string>& names) {
  ApiError error;
  error.status = 404;
  error.code = "model_not_found";
  error.param = "model";
  error.message = "model " + Quoted(asked.substr(0, kMaxShown)) +
                  " not found; available: " + NearestFirst(names, asked.substr(0, kMaxShown));
  return error;
}

std::vector<std::string> NamesOf(const ServedModel& model) {
  std::vector<std::string> names{model.name};
  for (const std::string& alias : model.aliases) {
    if (std::find(names.begin(), names.end(), alias) == names.end()) names.push_back(alias);
  }
  return names;
}

Status CheckServedName(const std::string& name) {
  if (name.empty()) return Error(Code::kInvalid, "a model's name must not be empty");
  if (name.size() > kMaxNameBytes) {
    return Error(Code::kInvalid, "the model name %s has %zu bytes; the limit is %zu",
                 Quoted(name.substr(0, kMaxShown)).c_str(), name.size(), kMaxNameBytes);
  }
  if (std::any_of(name.begin(), name.end(), IsControl)) {
    return Error(Code::kInvalid, "the model name %s contains control characters",
                 Quoted(name).c_str());
  }
  return Status();
}

std::vector<Token> PlainTokens(const Tokenizer& tokenizer, const std::string& text, bool begins) {
  std::vector<Token> tokens;
  const TokenizerTraits& traits = tokenizer.traits();
  if (begins && traits.add_bos && traits.bos) tokens.push_back(*traits.bos);
  tokenizer.Encode(text, tokens);
  return tokens;
}

Result<std::vector<Token>> RenderPrompt(const ServedModel& model, const Conversation& conversation,
                                        const AnswerShape& shape) {
  const AnswerFormat answer{shape.name, shape.description, shape.schema};
  const bool is_shown = shape.kind == AnswerShape::Kind::kSchema && !shape.name.empty();
  return model.format->Render(conversation,
                              {.date = model.date, .answer = is_shown ? &answer : nullptr});
}

ApiResult<std::vector<std::vector<Token>>> PromptsOf(const ServedModel& model,
                                                     const TurnRequest& request) {
  std::vector<std::vector<Token>> prompts;
  for (const PlainPrompt& plain : request.plain_prompts) {
    if (const auto* text = std::get_if<std::string>(&plain)) {
      prompts.push_back(PlainTokens(*model.tokenizer, *text, true));
      continue;
    }
    prompts.push_back(*std::get_if<std::vector<Token>>(&plain));
    HEARTH_TRY(CheckTokens(prompts.back(), model.tokenizer->vocab_size(), request.prompt_field));
  }
  if (request.plain_prompts.empty()) {
    HEARTH_ASSIGN(std::vector<Token> prompt,
                  RenderPrompt(model, request.conversation, request.answer));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

Result<std::vector<Turn>> TurnsOf(const ServedModel& model, const TurnRequest& request,
                                  size_t num_prompts) {
  HEARTH_ASSIGN(const StopStrings stops, StopStrings::Make(request.stops));
  std::vector<Turn> turns;
  for (size_t i = 0; i < num_prompts * static_cast<size_t>(request.num_choices); ++i) {
    turns.emplace_back(request.start ? model.format->NewReaderAt(*request.start)
                                     : NewPlainReader(*model.tokenizer),
                       stops, *model.tokenizer);
  }
  return turns;
}

std::vector<EchoedPrompt> EchoesOf(const Tokenizer& tokenizer,
                                   const std::vector<PlainPrompt>& given,
                                   const std::vector<std::vector<Token>>& prompts) {
  std::vector<EchoedPrompt> echoes;
  for (size_t i = 0; i < prompts.size(); ++i) {
    EchoedPrompt echo;
    for (const Token token : prompts[i]) echo.pieces.emplace_back(tokenizer.Bytes(token));
    const TokenizerTraits& traits = tokenizer.traits();
    const bool is_text = std::holds_alternative<std::string>(given[i]);
    echo.num_hidden = is_text && traits.add_bos && traits.bos ? 1 : 0;
    echoes.push_back(std::move(echo));
  }
  return echoes;
}

}  // namespace hearth
