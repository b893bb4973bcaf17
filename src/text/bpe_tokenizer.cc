// SPDX-License-Identifier: Apache-2.0
#include "text/bpe_tokenizer.h"

#include "text/bpe.h"
#include "text/special_names.h"
#include "text/split.h"
#include "text/vocab_table.h"

namespace hearth {
namespace {

struct BpeTables {
  VocabTable vocab;
  MergeTable merges;
  std::vector<Token> byte_tokens;  // [256]
  std::vector<Joined> byte_pairs;  // [256 * 256]
};

class BpeTokenizer final : public Tokenizer {
 public:
  BpeTokenizer(const Vocab& vocab, BpeTables tables)
      : tables_(std::move(tables)),
        specials_(vocab),
        traits_{vocab.bos, vocab.eos, vocab.unknown, vocab.add_bos, vocab.add_eos},
        scan_(ScannerFor(vocab.split)) {}

  void Encode(std::string_view text, std::vector<Token>& out) const override {
    BpeMerger merger(tables_.merges, tables_.byte_tokens, tables_.byte_pairs);
    const char* const end = text.data() + text.size();
    for (const char* begin = text.data(); begin != end;) {
      const char* const piece_end = scan_(begin, end);
      const std::string_view piece(begin, static_cast<size_t>(piece_end - begin));
      begin = piece_end;
      const Token whole = tables_.vocab.Find(piece);
      if (whole != kNoToken) {
        out.push_back(whole);
      } else {
        merger.Append(piece, out);
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
};

Result<BpeTables> MakeTables(const Vocab& vocab) {
  BpeTables tables;
  std::vector<uint8_t> findable(vocab.tokens.size());
  for (size_t i = 0; i < findable.size(); ++i) findable[i] = vocab.types[i] == TokenType::kNormal;
  HEARTH_ASSIGN(tables.vocab, VocabTable::Make(vocab.tokens, findable));
  if (vocab.kind == VocabKind::kRankedBpe) {
    HEARTH_ASSIGN(tables.merges, MergeTable::FromRanks(tables.vocab));
  } else {
    HEARTH_ASSIGN(tables.merges, MergeTable::FromMerges(vocab.merges));
  }
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    tables.byte_tokens.push_back(tables.vocab.Find(std::string_view(&c, 1)));
    if (tables.byte_tokens.back() == kNoToken) {
      return Error(Code::kInvalid, "the byte 0x%02x has no token", static_cast<unsigned>(byte));
    }
  }
  for (const Token left : tables.byte_tokens) {
    for (const Token right : tables.byte_tokens) {
      tables.byte_pairs.push_back(tables.merges.Find(left, right));
    }
  }
  return tables;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> MakeBpeTokenizer(Vocab vocab) {
  HEARTH_ASSIGN(BpeTables tables, MakeTables(vocab));
  return std::unique_ptr<Tokenizer>(std::make_unique<BpeTokenizer>(vocab, std::move(tables)));
}

}  // namespace hearth
