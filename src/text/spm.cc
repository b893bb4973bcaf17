// SPDX-License-Identifier: Apache-2.0
#include "text/spm.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "text/bpe.h"
#include "text/special_names.h"
#include "text/vocab_table.h"

namespace hearth {
namespace {

// SentencePiece writes a space as this and cannot tell the two apart; inside Hearth both are ' '.
constexpr std::string_view kSpaceSpelling = "\xe2\x96\x81";

void AppendWithSpaces(std::string_view spelling, std::string& out) {
  for (size_t begin = 0; begin < spelling.size();) {
    const size_t at = std::min(spelling.find(kSpaceSpelling, begin), spelling.size());
    out.append(spelling.substr(begin, at - begin));
    if (at == spelling.size()) return;
    out += ' ';
    begin = at + kSpaceSpelling.size();
  }
}

size_t CharBytes(const char* begin, const char* end) {
  return static_cast<size_t>(std::max(DecodeUtf8(begin, end).num_bytes, 1));
}

struct SpmTables {
  VocabTable vocab;  // finds every normal token
  VocabTable words;  // finds those that merging gives
  MergeTable merges;
  std::vector<Token> byte_tokens;  // [256]
  bool words_part = false;         // no token crosses from a non-space to a space
};

// Merges the characters of words and appends what they become. Thread: one at a time.
class WordMerger {
 public:
  explicit WordMerger(const SpmTables& tables) : tables_(tables), merger_(tables.merges) {}
  void Append(std::string_view word, std::vector<Token>& out) {
    symbols_.clear();
    offsets_.clear();
    merged_.clear();
    const char* const end = word.data() + word.size();
    for (const char* p = word.data(); p != end;) {
      const size_t bytes = CharBytes(p, end);
      offsets_.push_back(static_cast<size_t>(p - word.data()));
      symbols_.push_back(tables_.vocab.Find(std::string_view(p, bytes)));
      p += bytes;
    }
    offsets_.push_back(word.size());
    merger_.Merge(symbols_, merged_);
    for (const MergedPart& part : merged_) {
      if (part.token != kNoToken) {
        out.push_back(part.token);
        continue;
      }
      for (size_t at = offsets_[part.begin]; at < offsets_[part.begin + 1]; ++at) {
        out.push_back(tables_.byte_tokens[static_cast<uint8_t>(word[at])]);
      }
    }
  }

 private:
  const SpmTables& tables_;
  Merger merger_;
  std::vector<Token> symbols_;
  std::vector<size_t> offsets_;  // of the symbols in the word, and its end
  std::vector<MergedPart> merged_;
};

// Past the spaces at the front and what follows them up to the next space.
size_t WordEnd(std::string_view text, size_t begin) {
  const size_t letters = text.find_first_not_of(' ', begin);
  return letters == std::string_view::npos ? text.size()
                                           : std::min(text.find(' ', letters), text.size());
}

class SpmTokenizer final : public Tokenizer {
 public:
  SpmTokenizer(const Vocab& vocab, SpmTables tables)
      : tables_(std::move(tables)),
        specials_(vocab),
        traits_{vocab.bos,     vocab.eos,     vocab.unknown,
                vocab.add_bos, vocab.add_eos, vocab.space_prefix != SpacePrefix::kNone},
        prefix_(vocab.space_prefix) {}

  void Encode(std::string_view text, std::vector<Token>& out) const override {
    std::string spaced;
    const bool has_space = text.starts_with(' ') || text.starts_with(kSpaceSpelling);
    const bool adds =
        prefix_ == SpacePrefix::kAlways || (prefix_ == SpacePrefix::kUnlessThere && !has_space);
    if (adds && !text.empty()) spaced = " ";
    AppendWithSpaces(text, spaced);
    EncodeSpaced(spaced, out);
  }
  void EncodeMore(std::string_view text, std::vector<Token>& out) const override {
    std::string spaced;
    AppendWithSpaces(text, spaced);
    EncodeSpaced(spaced, out);
  }
  std::optional<Token> Special(std::string_view name) const override {
    return specials_.Find(name);
  }
  const std::vector<SpecialName>& specials() const override { return specials_.names(); }
  bool IsSpecial(Token token) const override { return specials_.Has(token); }
  std::string_view Bytes(Token token) const override {
    if (token < 0 || token >= tables_.vocab.size()) return {};
    return tables_.vocab.Bytes(token);
  }
  int vocab_size() const override { return tables_.vocab.size(); }
  const TokenizerTraits& traits() const override { return traits_; }

 private:
  void EncodeSpaced(std::string_view text, std::vector<Token>& out) const {
    WordMerger merger(tables_);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = tables_.words_part ? WordEnd(text, begin) : text.size();
      const std::string_view word = text.substr(begin, end - begin);
      begin = end;
      const Token whole = tables_.words.Find(word);
      if (whole != kNoToken) {
        out.push_back(whole);
      } else {
        merger.Append(word, out);
      }
    }
  }

  const SpmTables tables_;
  const SpecialNames specials_;
  const TokenizerTraits traits_;
  const SpacePrefix prefix_;
};

// "<0x0A>" -> 10
std::optional<uint8_t> ByteOfSpelling(std::string_view spelling) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>') {
    return std::nullopt;
  }
  const size_t high = kDigits.find(spelling[3]), low = kDigits.find(spelling[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return static_cast<uint8_t>(high * 16 + low);
}

// Spellings become the bytes they stand for. A normal token spelled with a plain space can never
// match, because text has none by then; it must not be mistaken for one that can.
Status ResolveTokens(Vocab& vocab, std::vector<Token>& byte_tokens) {
  byte_tokens.assign(256, kNoToken);
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    std::string& token = vocab.tokens[i];
    if (vocab.types[i] == TokenType::kByte) {
      const std::optional<uint8_t> byte = ByteOfSpelling(token);
      if (!byte || byte_tokens[*byte] != kNoToken) {
        return Error(Code::kInvalid, "byte token %zu is %s: expected <0xNN>, each byte once", i,
                     Quoted(token).c_str());
      }
      byte_tokens[*byte] = static_cast<Token>(i);
      token = static_cast<char>(*byte);
    } else if (vocab.types[i] == TokenType::kNormal) {
      if (token.empty() || token.find(' ') != std::string::npos) {
        vocab.types[i] = TokenType::kUnused;
        continue;
      }
      std::string bytes;
      AppendWithSpaces(token, bytes);
      token = std::move(bytes);
    }
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    if (byte_tokens[byte] != kNoToken) continue;
    return Error(Code::kUnsupported, "expected a token <0x%02zX> for every byte, found none", byte);
  }
  return Status();
}

// Every cut of a normal token into two; the better the token's score, the lower the rank.
Result<MergeTable> MergesOfScores(const Vocab& vocab, const VocabTable& table) {
  if (vocab.scores.size() != vocab.tokens.size()) {
    return Error(Code::kInvalid, "%zu tokens, but %zu scores", vocab.tokens.size(),
                 vocab.scores.size());
  }
  for (size_t i = 0; i < vocab.scores.size(); ++i) {
    if (!std::isfinite(vocab.scores[i])) {
      return Error(Code::kInvalid, "the score of token %zu is not finite", i);
    }
  }
  std::vector<float> best_first = vocab.scores;
  std::sort(best_first.begin(), best_first.end(), std::greater<>());
  best_first.erase(std::unique(best_first.begin(), best_first.end()), best_first.end());
  std::vector<uint32_t> rank_of_token;
  for (const float score : vocab.scores) {
    const auto at = std::lower_bound(best_first.begin(), best_first.end(), score, std::greater<>());
    rank_of_token.push_back(static_cast<uint32_t>(at - best_first.begin()));
  }
  std::vector<Merge> merges;
  AppendCuts(table, merges);
  return MergeTable::FromTokenRanks(merges, std::move(rank_of_token));
}

bool CrossesIntoSpace(std::string_view bytes) {
  const size_t letters = bytes.find_first_not_of(' ');
  return letters != std::string_view::npos && bytes.find(' ', letters) != std::string_view::npos;
}

Result<SpmTables> MakeTables(Vocab& vocab) {
  SpmTables tables;
  HEARTH_TRY(ResolveTokens(vocab, tables.byte_tokens));
  std::vector<uint8_t> findable(vocab.tokens.size());
  tables.words_part = true;
  for (size_t i = 0; i < findable.size(); ++i) {
    findable[i] = vocab.types[i] == TokenType::kNormal;
    if (findable[i] != 0 && CrossesIntoSpace(vocab.tokens[i])) tables.words_part = false;
  }
  HEARTH_ASSIGN(tables.vocab, VocabTable::Make(vocab.tokens, findable));
  if (vocab.merges.empty()) {
    HEARTH_ASSIGN(tables.merges, MergesOfScores(vocab, tables.vocab));
  } else {
    HEARTH_ASSIGN(tables.merges, MergeTable::FromMerges(vocab.merges));
  }
  WordMerger merger(tables);
  std::vector<Token> merged;
  for (size_t i = 0; i < findable.size(); ++i) {
    if (findable[i] == 0) continue;
    merged.clear();
    merger.Append(vocab.tokens[i], merged);
    findable[i] = merged.size() == 1 && merged[0] == static_cast<Token>(i);
  }
  HEARTH_ASSIGN(tables.words, VocabTable::Make(vocab.tokens, findable));
  return tables;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> MakeSpmTokenizer(Vocab vocab) {
  HEARTH_ASSIGN(SpmTables tables, MakeTables(vocab));
  return std::unique_ptr<Tokenizer>(std::make_unique<SpmTokenizer>(vocab, std::move(tables)));
}

}  // namespace hearth
