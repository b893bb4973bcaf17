// SPDX-License-Identifier: Apache-2.0
// A vocabulary as plain data, whatever file it came from, and the loaders that need only text.
// Nothing here is believed: MakeTokenizer (tokenizer.h) checks every number before use.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "text/split.h"
namespace hearth {

enum class VocabKind : uint8_t {
  kRankedBpe,     // the id is the rank: any two neighbours merge when their bytes are a token
  kMergedBpe,     // a list of merges, earliest first
  kSentencePiece  // scores, U+2581 for space, <0xNN> for bytes without a token
};

enum class TokenType : uint8_t {
  kNormal,
  kUnknown,
  kControl,      // by name only; the text of a user never becomes one
  kUserDefined,  // likewise: files do not say which of them a user may write
  kUnused,
  kByte
};

// Some vocabularies want text to begin with a space, so that its first word is one like the others.
enum class SpacePrefix : uint8_t { kNone, kAlways, kUnlessThere };

struct Merge {
  Token left = 0, right = 0, merged = 0;
};

struct SpecialName {
  std::string name;
  Token token = 0;
};

struct Vocab {
  VocabKind kind = VocabKind::kMergedBpe;
  SplitRule split = SplitRule::kGpt2;
  std::vector<std::string> tokens;   // normal: the bytes it stands for; others: its name
  std::vector<TokenType> types;      // as many as tokens
  std::vector<float> scores;         // kSentencePiece: as many as tokens
  std::vector<Merge> merges;         // kMergedBpe: in order of rank
  std::vector<SpecialName> aliases;  // further names of tokens that are not normal

  bool whole_pieces_first = false;  // a piece that is a token is that token, merges or not
  bool normalize_nfc = false;
  SpacePrefix space_prefix = SpacePrefix::kNone;  // kSentencePiece

  std::optional<Token> bos, eos, unknown;
  bool add_bos = false, add_eos = false;
};

// A rank file: one "base64 rank" per line, ranks 0..n-1 in any order. Takes the split of o200k and
// appends the special tokens of o200k_harmony, so that in the real file (n = 199998) every one of
// them has its published id.
Result<Vocab> ParseTiktoken(std::string_view file);

// A Hugging Face tokenizer.json: byte-level BPE with a known split rule, or BPE over characters
// with byte fallback (the form SentencePiece models take there). Anything else is refused by name.
Result<Vocab> ParseTokenizerJson(std::string_view file);

}  // namespace hearth
