// SPDX-License-Identifier: Apache-2.0
#include "text/bpe_tokenizer.h"

#include "text/bpe.h"
#include "text/nfc.h"
#include "text/piece_cache.h"
#include "text/special_names.h"
#include "text/split.h"
#include "text/vocab_table.h"

namespace hearth {
namespace {

struct BpeTables {
  VocabTable vocab;
  MergeTable merges;
  std::vector<Token> byte_tokens;  // [256]; kNoToken: such a byte has no token and is left out
};

// Appends the tokens that a piece merges into. Thread: one at a time.
class PieceMerger {
 public:
  explicit PieceMerger(const BpeTables& tables) : tables_(tables), merger_(tables.merges) {}
  void Append(std::string_view piece, std::vector<Token>& out) {
    symbols_.clear();
    merged_.clear();
    for (const char c : piece) {
      const Token token = tables_.byte_tokens[static_cast<uint8_t>(c)];
      if (token != kNoToken) symbols_.push_back(token);
    }
    merger_.Merge(symbols_, merged_);
    for (const MergedPart& part : merged_) out.push_back(part.token);
  }

 private:
  const BpeTables& tables_;
  Merger merger_;
  std::vector<Token> symbols_;
  std::vector<MergedPart> merged_;
};

class BpeTokenizer final : public Tokenizer {
 public:
  BpeTokenizer(const Vocab& vocab, BpeTables tables)
      : tables_(std::move(tables)),
        specials_(vocab),
        traits_{vocab.bos, vocab.eos, vocab.unknown, vocab.add_bos, vocab.add_eos, false},
        scan_(ScannerFor(vocab.split)),
        normalize_nfc_(vocab.normalize_nfc) {}

  void Encode(std::string_view text, std::vector<Token>& out) const override {
    std::string normalized;
    if (normalize_nfc_) text = NormalizeNfc(text, normalized);
    PieceMerger merger(tables_);
    PieceCache cache(text);
    const auto merge = [&merger](std::string_view piece, std::vector<Token>& tokens) {
      merger.Append(piece, tokens);
    };
    const char* const end = text.data() + text.size();
    for (const char* begin = text.data(); begin != end;) {
      const char* const piece_end = scan_(begin, end);
      const std::string_view piece(begin, static_cast<size_t>(piece_end - begin));
      begin = piece_end;
      const Token whole = tables_.vocab.Find(piece);
      if (whole != kNoToken) {
        out.push_back(whole);
      } else {
        cache.Append(piece, out, merge);
      }
    }
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
  const BpeTables tables_;
  const SpecialNames specials_;
  const TokenizerTraits traits_;
  const PieceScanner scan_;
  const bool normalize_nfc_;
};

// Where a piece is looked up whole only because that is faster, the token must be what merging
// would give. Vocabularies do hold tokens that merging never reaches.
std::vector<uint8_t> FindReachable(const Vocab& vocab, const std::vector<uint8_t>& is_normal,
                                   const BpeTables& tables) {
  std::vector<uint8_t> reachable = is_normal;
  PieceMerger merger(tables);
  std::vector<Token> merged;
  for (size_t i = 0; i < reachable.size(); ++i) {
    if (reachable[i] == 0) continue;
    merged.clear();
    merger.Append(vocab.tokens[i], merged);
    reachable[i] = merged.size() == 1 && merged[0] == static_cast<Token>(i);
  }
  return reachable;
}

Status CheckBytes(const BpeTables& tables) {
  for (size_t byte = 0; byte < 256; ++byte) {
    if (tables.byte_tokens[byte] != kNoToken) continue;
    return Error(Code::kInvalid, "the byte 0x%02zx has no token", byte);
  }
  return Status();
}

Result<BpeTables> MakeTables(const Vocab& vocab) {
  BpeTables tables;
  tables.byte_tokens.assign(256, kNoToken);
  std::vector<uint8_t> is_normal(vocab.tokens.size());
  for (size_t i = 0; i < is_normal.size(); ++i) {
    is_normal[i] = vocab.types[i] == TokenType::kNormal;
    if (is_normal[i] != 0 && vocab.tokens[i].size() == 1) {
      tables.byte_tokens[static_cast<uint8_t>(vocab.tokens[i][0])] = static_cast<Token>(i);
    }
  }
  if (vocab.kind == VocabKind::kRankedBpe) {
    HEARTH_TRY(CheckBytes(tables));
    HEARTH_ASSIGN(tables.vocab, VocabTable::Make(vocab.tokens, is_normal));
    HEARTH_ASSIGN(tables.merges, MergeTable::FromRanks(tables.vocab));
    return tables;
  }
  HEARTH_ASSIGN(tables.merges, MergeTable::FromMerges(vocab.merges));
  const std::vector<uint8_t> findable =
      vocab.whole_pieces_first ? is_normal : FindReachable(vocab, is_normal, tables);
  HEARTH_ASSIGN(tables.vocab, VocabTable::Make(vocab.tokens, findable));
  return tables;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> MakeBpeTokenizer(Vocab vocab) {
  HEARTH_ASSIGN(BpeTables tables, MakeTables(vocab));
  return std::unique_ptr<Tokenizer>(std::make_unique<BpeTokenizer>(vocab, std::move(tables)));
}

}  // namespace hearth
