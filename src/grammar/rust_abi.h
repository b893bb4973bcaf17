// SPDX-License-Identifier: Apache-2.0
// The C ABI of rust/hearth_grammar (its abi.rs is the other half). Only grammar.cc calls it.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {
struct HearthVocabulary;
struct HearthGrammar;
struct HearthMatcher;

// Owned by Rust until hearth_grammar_text_free.
struct HearthText {
  unsigned char* data;
  size_t size;
};

struct HearthGrammarLimits {
  uint64_t items_in_row, initial_lexer_fuel, step_lexer_fuel, step_items, lexer_states;
  uint64_t grammar_size, stack_bytes;
};

enum HearthGrammarKind : uint32_t { kHearthJsonSchema = 0, kHearthRegex = 1, kHearthLark = 2 };

// What gives a pointer gives null, and a message in `error`, when it fails.
// Token i is data[ends[i-1] .. ends[i]); a special token is 0xFF and its name.
HearthVocabulary* hearth_grammar_vocabulary_new(const unsigned char* data, const size_t* ends,
                                                size_t count, uint32_t eos, HearthText* error);
void hearth_grammar_vocabulary_free(HearthVocabulary* vocabulary);
// Any thread. The work is done on a thread of its own, with the stack that the limits name.
// Without memory for it the message is kHearthNoStack.
inline constexpr char kHearthNoStack[] = "no memory for the stack of the grammar compiler";
HearthGrammar* hearth_grammar_new(const HearthVocabulary* vocabulary, uint32_t kind,
                                  const unsigned char* text, size_t size,
                                  const HearthGrammarLimits* limits, HearthText* error);
// The memory that it holds, for good.
size_t hearth_grammar_bytes(const HearthGrammar* grammar);
void hearth_grammar_free(HearthGrammar* grammar);
// Any thread; the matcher that comes out belongs to one at a time.
HearthMatcher* hearth_matcher_new(const HearthGrammar* grammar, HearthText* error);
HearthMatcher* hearth_matcher_clone(const HearthMatcher* matcher, HearthText* error);
void hearth_matcher_free(HearthMatcher* matcher);
// False, and a message in `error`, when the mask cannot be had within the limits.
bool hearth_matcher_fill(HearthMatcher* matcher, uint32_t* words, size_t count, HearthText* error);
bool hearth_matcher_accept(HearthMatcher* matcher, uint32_t token);
bool hearth_matcher_is_accepting(HearthMatcher* matcher);
void hearth_grammar_text_free(HearthText text);
}
