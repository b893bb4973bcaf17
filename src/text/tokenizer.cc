// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.h"

#include "text/bpe.h"
#include "text/bpe_tokenizer.h"
#include "text/spm.h"

namespace hearth {
namespace {

// Far above every known vocabulary (gemma: 262,144), far below what would hurt.
constexpr size_t kMaxTokens = MergeTable::kMaxTokens;
// o200k's longest has 128. Building the tables takes the square of it.
constexpr size_t kMaxTokenBytes = 512;

Status CheckToken(const std::optional<Token>& token, size_t num_tokens, const char* what) {
  if (!token || (*token >= 0 && static_cast<size_t>(*token) < num_tokens)) return Status();
  return Error(Code::kInvalid, "the %s token is %d, but there are only %zu tokens", what, *token,
               num_tokens);
}

Status CheckVocab(const Vocab& vocab) {
  const size_t count = vocab.tokens.size();
  if (count == 0 || count > kMaxTokens) {
    return Error(Code::kInvalid, "%zu tokens, expected 1 to %zu", count, kMaxTokens);
  }
  if (vocab.types.size() != count) {
    return Error(Code::kInvalid, "%zu tokens, but %zu token types", count, vocab.types.size());
  }
  for (size_t i = 0; i < count; ++i) {
    if (vocab.tokens[i].size() <= kMaxTokenBytes) continue;
    return Error(Code::kInvalid, "the token %zu has %zu bytes", i, vocab.tokens[i].size());
  }
  for (const Merge& merge : vocab.merges) {
    HEARTH_TRY(CheckToken(merge.left, count, "left"));
    HEARTH_TRY(CheckToken(merge.right, count, "right"));
    HEARTH_TRY(CheckToken(merge.merged, count, "merged"));
  }
  for (const SpecialName& alias : vocab.aliases) {
    HEARTH_TRY(CheckToken(alias.token, count, "aliased"));
  }
  HEARTH_TRY(CheckToken(vocab.bos, count, "beginning"));
  HEARTH_TRY(CheckToken(vocab.eos, count, "end"));
  return CheckToken(vocab.unknown, count, "unknown");
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> MakeTokenizer(Vocab vocab) {
  HEARTH_TRY(CheckVocab(vocab));
  if (vocab.kind == VocabKind::kSentencePiece) return MakeSpmTokenizer(std::move(vocab));
  return MakeBpeTokenizer(std::move(vocab));
}

Result<std::unique_ptr<Tokenizer>> LoadTiktoken(std::string_view file) {
  HEARTH_ASSIGN(Vocab vocab, ParseTiktoken(file).Within("rank file"));
  return MakeTokenizer(std::move(vocab));
}

Result<std::unique_ptr<Tokenizer>> LoadTokenizerJson(std::string_view file) {
  HEARTH_ASSIGN(Vocab vocab, ParseTokenizerJson(file));
  return MakeTokenizer(std::move(vocab));
}

}  // namespace hearth
