// SPDX-License-Identifier: Apache-2.0
// What is served: the model's parts, its names, and how requests become its prompts. Pure.
#pragma once
#include <string>
#include <vector>

#include "sampling/sampling_defaults.h"
#include "server/turns/api_error.h"
#include "server/turns/model_facts.h"
#include "server/turns/reply_masks.h"
#include "server/turns/reply_writer.h"
#include "server/turns/turn_request.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"
namespace hearth {

// Everything is borrowed and outlives the service.
struct ServedModel {
  std::string name;                       // what replies call it, whatever they were asked under
  std::vector<std::string> aliases = {};  // further names that requests may use
  bool takes_any_name = false;
  std::string fingerprint;   // of program and numerics: what replies are comparable within
  std::string content = {};  // stands for the weights: another word, perhaps another reply
  const Tokenizer* tokenizer = nullptr;
  const ChatFormat* format = nullptr;
  ReplyMasks* masks = nullptr;
  int max_context = 0;  // tokens of prompt and reply together that one request can have
  std::string date;     // what the model is told is today; see RenderOptions
  SamplingDefaults sampling = {};
  std::string version;  // of this program
  ModelFacts facts = {};
};

// Fields that no table knows, settings of other engines, and variables that the chat template does
// not have.
enum class UnknownFields : unsigned char {
  kRefuse,
  kWarn  // taken out, and named in the header x-hearth-ignored-fields and in the log
};

// A variable that the template does not know would have no effect, and nobody would notice.
ApiStatus CheckVariables(const ServedModel& model, UnknownFields unknown,
                         Conversation& conversation, std::vector<std::string>& ignored);

// What becomes of a last message of the assistant's: it is continued, unless `request` says that
// another one begins; one without a word is none. A call that nobody answered cannot be the last.
ApiStatus SettleEnd(TurnRequest& request);

// 404 with the nearest of what there is. An empty name is whatever is served.
ApiStatus CheckModelName(const ServedModel& model, const std::string& name);
// The same for any list of names.
ApiError NoSuchModel(const std::string& asked, const std::vector<std::string>& names);
// All names: its own, then the aliases.
std::vector<std::string> NamesOf(const ServedModel& model);
// What a name that is to be listed may not be: empty, long, or with control characters.
Status CheckServedName(const std::string& name);

// A text without a chat's form, as completions read and /tokenize counts it: with the model's first
// token, where it has one and `begins` is set.
std::vector<Token> PlainTokens(const Tokenizer& tokenizer, const std::string& text, bool begins);

// `answer` is shown to models whose format has a place for it.
Result<std::vector<Token>> RenderPrompt(const ServedModel& model, const Conversation& conversation,
                                        const AnswerShape& answer);
// The prompts of a request as tokens of the vocabulary; HoldToLimits checks how many.
ApiResult<std::vector<std::vector<Token>>> PromptsOf(const ServedModel& model,
                                                     const TurnRequest& request);
// One for each reply to so many prompts.
Result<std::vector<Turn>> TurnsOf(const ServedModel& model, const TurnRequest& request,
                                  size_t num_prompts);
std::vector<EchoedPrompt> EchoesOf(const Tokenizer& tokenizer,
                                   const std::vector<PlainPrompt>& given,
                                   const std::vector<std::vector<Token>>& prompts);

}  // namespace hearth
