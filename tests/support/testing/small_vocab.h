// SPDX-License-Identifier: Apache-2.0
// Vocabularies small enough to write down, one of every kind, for tests and fuzzing that must run
// without a file.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocab.h"
namespace hearth::testing {

inline constexpr std::string_view kSmallVocabWords[] = {
    " the", " and",       "ing",      "hello", " world", "don't",    "'s",   "'ll",
    "  ",   "    ",       "\n\n",     "\r\n",  "!!",     "...",      "://",  "123",
    "100",  "aaaa",       "abab",     "HTTP",  "Hello",  "नमस्ते",     "中文", "é",
    "é",    "\U0001f600", "\xff\xfe", " <|",   "|>",     "<|start|>"};
inline constexpr std::string_view kSmallVocabSpecials[] = {"<|start|>", "<|end|>", "<tool>"};

// Adds `text` as a normal token unless it is there; returns its number.
inline Token AddNormal(std::string text, std::map<std::string, Token>& known, Vocab& vocab) {
  const auto [it, is_new] = known.try_emplace(text, static_cast<Token>(vocab.tokens.size()));
  if (is_new) {
    vocab.tokens.push_back(std::move(text));
    vocab.types.push_back(TokenType::kNormal);
  }
  return it->second;
}

inline void AddSmallSpecials(Vocab& vocab) {
  for (const std::string_view name : kSmallVocabSpecials) {
    vocab.tokens.emplace_back(name);
    vocab.types.push_back(name == "<tool>" ? TokenType::kUserDefined : TokenType::kControl);
  }
}

// All bytes, then every beginning of the words. Special tokens are spelled like some of the words.
inline Vocab SmallByteVocab(VocabKind kind, SplitRule split) {
  Vocab vocab;
  vocab.kind = kind;
  vocab.split = split;
  vocab.whole_pieces_first = split == SplitRule::kO200k || split == SplitRule::kLlama3;
  vocab.normalize_nfc = split == SplitRule::kQwen2;
  std::map<std::string, Token> known;
  for (int byte = 0; byte < 256; ++byte) {
    AddNormal(std::string(1, static_cast<char>(byte)), known, vocab);
  }
  for (const std::string_view word : kSmallVocabWords) {
    for (size_t size = 2; size <= word.size(); ++size) {
      const Merge merge{known[std::string(word.substr(0, size - 1))],
                        known[std::string(word.substr(size - 1, 1))], 0};
      const size_t count = vocab.tokens.size();
      const Token merged = AddNormal(std::string(word.substr(0, size)), known, vocab);
      if (vocab.tokens.size() == count) continue;
      if (kind == VocabKind::kMergedBpe) vocab.merges.push_back({merge.left, merge.right, merged});
    }
  }
  AddSmallSpecials(vocab);
  return vocab;
}

// The unknown token, bytes as <0xNN>, some characters and words with scores.
inline Vocab SmallSpmVocab() {
  Vocab vocab;
  vocab.kind = VocabKind::kSentencePiece;
  vocab.space_prefix = SpacePrefix::kAlways;
  vocab.tokens.push_back("<unk>");
  vocab.types.push_back(TokenType::kUnknown);
  vocab.unknown = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    vocab.tokens.push_back(Printf("<0x%02X>", byte));
    vocab.types.push_back(TokenType::kByte);
  }
  std::map<std::string, Token> known;
  for (const std::string_view word :
       {"▁t", "he",   "▁the",   "in", "ing",  "▁▁",  "▁▁▁▁",  "er",     "▁w", "or",
        "ld", "▁wor", "▁world", "el", "lo",   "hel", "hello", "▁hello", "▁",  "e",
        "t",  "a",    "o",      "i",  "n",    "s",   "r",     "h",      "l",  "d",
        "w",  "é",    "中",     "文", "中文", "<",   "|",     ">",      "<|", "|>"}) {
    AddNormal(std::string(word), known, vocab);
  }
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    vocab.scores.push_back(i < 257 ? 0.0f : -static_cast<float>(i - 257));
  }
  AddSmallSpecials(vocab);
  vocab.scores.resize(vocab.tokens.size(), 0.0f);
  return vocab;
}

// One of each kind and split rule.
inline std::vector<Vocab> SmallVocabs() {
  std::vector<Vocab> vocabs = {SmallByteVocab(VocabKind::kRankedBpe, SplitRule::kO200k),
                               SmallSpmVocab()};
  for (const SplitRule rule : {SplitRule::kO200k, SplitRule::kLlama3, SplitRule::kQwen2,
                               SplitRule::kGpt2, SplitRule::kSmollm}) {
    vocabs.push_back(SmallByteVocab(VocabKind::kMergedBpe, rule));
  }
  return vocabs;
}

}  // namespace hearth::testing
