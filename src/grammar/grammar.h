// SPDX-License-Identifier: Apache-2.0
// Grammars over tokens: a vocabulary as the grammar engine sees it, a grammar compiled for it, and
// a matcher that follows one text. llguidance does the work, behind a C ABI.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "text/tokenizer.h"

struct HearthVocabulary;
struct HearthGrammar;
struct HearthMatcher;
namespace hearth {

enum class GrammarKind : unsigned char { kJsonSchema, kRegex, kLark };

// What one grammar may cost. Fuel is llguidance's own measure of work, about 50,000 a millisecond
// while compiling and 14,000 while making masks.
struct GrammarLimits {
  uint64_t items_in_row = 2'000;            // how many readings of a text are followed at once
  uint64_t initial_lexer_fuel = 1'000'000;  // some 20 ms
  uint64_t step_lexer_fuel = 200'000;       // 14 ms
  uint64_t step_items = 50'000;
  uint64_t lexer_states = 16'384;  // 1 to 2 KB each
  uint64_t grammar_size = 100'000;
  uint64_t stack_bytes = uint64_t{16} << 20;  // schemas 128 deep take 2.5 KB a level
};

// Immutable; any thread. Takes about a second and 30 MB for 200,000 tokens: one per model.
class GrammarVocabulary {
 public:
  // `tokenizer` is read now and not kept. Special tokens have names and no bytes.
  static Result<std::shared_ptr<const GrammarVocabulary>> Make(const Tokenizer& tokenizer);
  ~GrammarVocabulary();
  int size() const { return size_; }
  // Stands for the end of the text in masks. A special token, so no text needs it otherwise.
  Token end() const { return end_; }
  const HearthVocabulary* raw() const { return raw_; }

 private:
  GrammarVocabulary(HearthVocabulary* raw, int size, Token end)
      : raw_(raw), size_(size), end_(end) {}
  HearthVocabulary* raw_;
  int size_;
  Token end_;
};

// Immutable; any thread.
class Grammar {
 public:
  // The text must have passed the checks of check.h: what they refuse may overflow the stack here.
  // kInvalid: not a grammar, one that allows nothing, or one that says what is not supported.
  // Throws bad_alloc where there is no memory for the thread that compiles.
  static Result<std::shared_ptr<const Grammar>> Compile(
      std::shared_ptr<const GrammarVocabulary> vocabulary, GrammarKind kind, std::string_view text,
      const GrammarLimits& limits);
  ~Grammar();
  const GrammarVocabulary& vocabulary() const { return *vocabulary_; }
  const HearthGrammar* raw() const { return raw_; }
  size_t bytes() const;  // of memory

 private:
  Grammar(std::shared_ptr<const GrammarVocabulary> vocabulary, HearthGrammar* raw)
      : vocabulary_(std::move(vocabulary)), raw_(raw) {}
  std::shared_ptr<const GrammarVocabulary> vocabulary_;
  HearthGrammar* raw_;
};

// Follows one text through a grammar. Thread: one at a time.
class GrammarMatcher {
 public:
  explicit GrammarMatcher(std::shared_ptr<const Grammar> grammar);
  GrammarMatcher(const GrammarMatcher& other);
  GrammarMatcher& operator=(const GrammarMatcher&) = delete;
  ~GrammarMatcher();
  // The tokens that may come next; vocabulary().end() where the text may end.
  Status Fill(std::span<uint32_t> bits);
  bool Accept(Token token);
  // The text so far is whole.
  bool is_accepting();
  const GrammarVocabulary& vocabulary() const { return grammar_->vocabulary(); }

 private:
  std::shared_ptr<const Grammar> grammar_;
  HearthMatcher* raw_;  // null: making it failed, which Fill reports
};

}  // namespace hearth
