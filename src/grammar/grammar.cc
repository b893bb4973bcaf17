// SPDX-License-Identifier: Apache-2.0
// The C++ side of the C ABI of rust/hearth_grammar.
#include "grammar/grammar.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "grammar/rust_abi.h"

namespace hearth {
namespace {

const unsigned char* Data(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string Take(HearthText text) {
  std::string taken(reinterpret_cast<const char*>(text.data), text.size);
  hearth_grammar_text_free(text);
  return taken;
}

// The engine's messages may quote the grammar, which a client wrote: made safe to show, and short.
std::string TakeMessage(HearthText text) {
  std::string message = Take(text).substr(0, 300);
  // Its word for "there would be more to say"; nothing to a client.
  message.resize(std::min(message.size(), message.find(" <non-verbose/>")));
  for (char& c : message) {
    if (c < ' ' || c > '~') c = ' ';
  }
  return message;
}

HearthGrammarLimits Raw(const GrammarLimits& limits) {
  return {.items_in_row = limits.items_in_row,
          .initial_lexer_fuel = limits.initial_lexer_fuel,
          .step_lexer_fuel = limits.step_lexer_fuel,
          .step_items = limits.step_items,
          .lexer_states = limits.lexer_states,
          .grammar_size = limits.grammar_size,
          .stack_bytes = limits.stack_bytes};
}

HearthGrammarKind Raw(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::kJsonSchema:
      return kHearthJsonSchema;
    case GrammarKind::kRegex:
      return kHearthRegex;
    case GrammarKind::kLark:
      break;
  }
  return kHearthLark;
}

}  // namespace

Result<std::shared_ptr<const GrammarVocabulary>> GrammarVocabulary::Make(
    const Tokenizer& tokenizer) {
  std::string data;
  std::vector<size_t> ends;
  std::optional<Token> end = tokenizer.traits().eos;
  for (Token token = 0; token < tokenizer.vocab_size(); ++token) {
    if (tokenizer.IsSpecial(token)) {
      data += '\xFF';
      if (!end) end = token;
    }
    data += tokenizer.Bytes(token);
    ends.push_back(data.size());
  }
  if (!end || !tokenizer.IsSpecial(*end)) {
    return Error(Code::kUnsupported, "grammars need a tokenizer with an end-of-text token");
  }
  HearthText error = {};
  HearthVocabulary* raw = hearth_grammar_vocabulary_new(Data(data), ends.data(), ends.size(),
                                                        static_cast<uint32_t>(*end), &error);
  if (raw == nullptr) return Error(Code::kInvalid, "vocabulary: %s", Take(error).c_str());
  return std::shared_ptr<const GrammarVocabulary>(
      new GrammarVocabulary(raw, tokenizer.vocab_size(), *end));
}

GrammarVocabulary::~GrammarVocabulary() { hearth_grammar_vocabulary_free(raw_); }

Result<std::shared_ptr<const Grammar>> Grammar::Compile(
    std::shared_ptr<const GrammarVocabulary> vocabulary, GrammarKind kind, std::string_view text,
    const GrammarLimits& limits) {
  const HearthGrammarLimits raw_limits = Raw(limits);
  HearthText error = {};
  HearthGrammar* raw = hearth_grammar_new(vocabulary->raw(), Raw(kind), Data(text), text.size(),
                                          &raw_limits, &error);
  if (raw == nullptr) {
    const std::string message = TakeMessage(error);
    if (message == kHearthNoStack) throw std::bad_alloc();
    return Error(Code::kInvalid, "%s", message.c_str());
  }
  return std::shared_ptr<const Grammar>(new Grammar(std::move(vocabulary), raw));
}

Grammar::~Grammar() { hearth_grammar_free(raw_); }

size_t Grammar::bytes() const { return hearth_grammar_bytes(raw_); }

GrammarMatcher::GrammarMatcher(std::shared_ptr<const Grammar> grammar)
    : grammar_(std::move(grammar)) {
  HearthText error = {};
  raw_ = hearth_matcher_new(grammar_->raw(), &error);
  if (raw_ == nullptr) Take(error);
}

GrammarMatcher::GrammarMatcher(const GrammarMatcher& other) : grammar_(other.grammar_), raw_() {
  HearthText error = {};
  if (other.raw_ != nullptr) raw_ = hearth_matcher_clone(other.raw_, &error);
  if (raw_ == nullptr && error.data != nullptr) Take(error);
}

GrammarMatcher::~GrammarMatcher() { hearth_matcher_free(raw_); }

Status GrammarMatcher::Fill(std::span<uint32_t> bits) {
  if (raw_ == nullptr)
    return Error(Code::kExhausted, "the grammar engine could not create a matcher");
  HearthText error = {};
  if (hearth_matcher_fill(raw_, bits.data(), bits.size(), &error)) return {};
  return Error(Code::kExhausted, "grammar: %s", TakeMessage(error).c_str());
}

bool GrammarMatcher::Accept(Token token) {
  return raw_ != nullptr && token >= 0 && token < vocabulary().size() &&
         hearth_matcher_accept(raw_, static_cast<uint32_t>(token));
}

bool GrammarMatcher::is_accepting() { return raw_ != nullptr && hearth_matcher_is_accepting(raw_); }

}  // namespace hearth
