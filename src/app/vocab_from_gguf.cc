// SPDX-License-Identifier: Apache-2.0
#include "app/vocab_from_gguf.h"

#include "text/vocab_spelling.h"

namespace hearth {
namespace {

std::optional<std::string_view> TextAt(const GgufMetadata& metadata, std::string_view key) {
  const GgufValue* value = metadata.Find(key);
  return value != nullptr ? value->String() : std::nullopt;
}
bool FlagAt(const GgufMetadata& metadata, std::string_view key, bool absent) {
  const GgufValue* value = metadata.Find(key);
  return value != nullptr ? value->Bool().value_or(absent) : absent;
}

Result<std::optional<Token>> TokenAt(const GgufMetadata& metadata, const char* key) {
  const GgufValue* value = metadata.Find(key);
  if (value == nullptr) return std::optional<Token>();
  const std::optional<uint64_t> number = value->Unsigned();
  if (!number || *number > INT32_MAX) return Error(Code::kInvalid, "%s: expected a token id", key);
  return std::optional<Token>(static_cast<Token>(*number));
}

Status ReadTokens(const GgufMetadata& metadata, Vocab& vocab) {
  const GgufValue* tokens = metadata.Find("tokenizer.ggml.tokens");
  if (tokens == nullptr) {
    return Error(Code::kNotFound,
                 "the file has no tokenizer (tokenizer.ggml.tokens): use one that has");
  }
  const auto strings = tokens->Strings();
  if (!strings) return Error(Code::kInvalid, "tokenizer.ggml.tokens: expected an array of strings");
  vocab.tokens.assign(strings->begin(), strings->end());
  vocab.types.assign(vocab.tokens.size(), TokenType::kNormal);
  const GgufValue* types = metadata.Find("tokenizer.ggml.token_type");
  if (types == nullptr) return Status();
  const auto numbers = types->Integers();
  if (!numbers || numbers->size() != vocab.tokens.size()) {
    return Error(Code::kInvalid, "tokenizer.ggml.token_type: expected one integer per token");
  }
  constexpr TokenType kTypes[] = {TokenType::kNormal,      TokenType::kUnknown, TokenType::kControl,
                                  TokenType::kUserDefined, TokenType::kUnused,  TokenType::kByte};
  for (size_t i = 0; i < numbers->size(); ++i) {
    const int64_t type = (*numbers)[i];
    if (type < 1 || type > 6) {
      return Error(Code::kInvalid, "tokenizer.ggml.token_type: token %zu has type %lld", i,
                   static_cast<long long>(type));
    }
    vocab.types[i] = kTypes[type - 1];
  }
  return Status();
}

struct KnownSplit {
  std::string_view name;
  SplitRule rule;
  bool whole_pieces_first = false, normalize_nfc = false, add_bos = false;
};
// What the names stand for is nowhere in the file. Qwen's own tokenizer normalises, so we do.
constexpr KnownSplit kSplits[] = {
    {.name = "gpt-4o", .rule = SplitRule::kO200k, .whole_pieces_first = true},
    {.name = "llama-bpe", .rule = SplitRule::kLlama3, .whole_pieces_first = true, .add_bos = true},
    {.name = "llama3", .rule = SplitRule::kLlama3, .whole_pieces_first = true, .add_bos = true},
    {.name = "qwen2", .rule = SplitRule::kQwen2, .normalize_nfc = true},
    {.name = "gpt-2", .rule = SplitRule::kGpt2},
    {.name = "smollm", .rule = SplitRule::kSmollm}};

Result<std::vector<SpelledMerge>> ReadMerges(const GgufMetadata& metadata) {
  const GgufValue* value = metadata.Find("tokenizer.ggml.merges");
  const auto strings = value != nullptr ? value->Strings() : std::nullopt;
  if (!strings) return Error(Code::kInvalid, "tokenizer.ggml.merges: expected an array of strings");
  std::vector<SpelledMerge> merges;
  merges.reserve(strings->size());
  for (const std::string_view text : *strings) {
    const size_t space = text.find(' ');
    if (space == std::string_view::npos) {
      return Error(Code::kInvalid, "tokenizer.ggml.merges: expected a pair of tokens, found %s",
                   Quoted(text).c_str());
    }
    merges.push_back({text.substr(0, space), text.substr(space + 1)});
  }
  return merges;
}

Status ReadByteLevel(const GgufMetadata& metadata, Vocab& vocab) {
  const std::string_view name = TextAt(metadata, "tokenizer.ggml.pre").value_or("default");
  const KnownSplit* known = nullptr;
  for (const KnownSplit& split : kSplits) {
    if (split.name == name) known = &split;
  }
  if (known == nullptr) {
    return Error(Code::kUnsupported, "tokenizer.ggml.pre %s is not supported",
                 Quoted(name).c_str());
  }
  vocab.split = known->rule;
  vocab.whole_pieces_first = known->whole_pieces_first;
  vocab.normalize_nfc = known->normalize_nfc;
  vocab.add_bos = known->add_bos;
  if (known->rule == SplitRule::kO200k) {
    // Its ids are its ranks, so the 446,189 merges of the file say nothing new.
    vocab.kind = VocabKind::kRankedBpe;
    return ResolveSpellings({}, vocab);
  }
  vocab.kind = VocabKind::kMergedBpe;
  HEARTH_ASSIGN(const std::vector<SpelledMerge> merges, ReadMerges(metadata));
  return ResolveSpellings(merges, vocab).Within("tokenizer.ggml.merges");
}

Status ReadSentencePiece(const GgufMetadata& metadata, Vocab& vocab) {
  vocab.kind = VocabKind::kSentencePiece;
  const GgufValue* scores = metadata.Find("tokenizer.ggml.scores");
  const auto numbers = scores != nullptr ? scores->Numbers() : std::nullopt;
  if (!numbers) return Error(Code::kInvalid, "tokenizer.ggml.scores: expected an array of numbers");
  for (const double score : *numbers) vocab.scores.push_back(static_cast<float>(score));
  const bool adds_space = FlagAt(metadata, "tokenizer.ggml.add_space_prefix", true);
  vocab.space_prefix = adds_space ? SpacePrefix::kAlways : SpacePrefix::kNone;
  vocab.add_bos = true;
  return Status();
}

}  // namespace

Result<Vocab> VocabFromGguf(const GgufMetadata& metadata) {
  Vocab vocab;
  HEARTH_TRY(ReadTokens(metadata, vocab));
  const std::string_view model = TextAt(metadata, "tokenizer.ggml.model").value_or("");
  if (model == "gpt2") {
    HEARTH_TRY(ReadByteLevel(metadata, vocab));
  } else if (model == "llama") {
    HEARTH_TRY(ReadSentencePiece(metadata, vocab));
  } else {
    return Error(Code::kUnsupported,
                 "tokenizer.ggml.model %s is not supported; supported: gpt2, llama",
                 Quoted(model).c_str());
  }
  HEARTH_ASSIGN(vocab.bos, TokenAt(metadata, "tokenizer.ggml.bos_token_id"));
  HEARTH_ASSIGN(vocab.eos, TokenAt(metadata, "tokenizer.ggml.eos_token_id"));
  HEARTH_ASSIGN(vocab.unknown, TokenAt(metadata, "tokenizer.ggml.unknown_token_id"));
  vocab.add_bos = FlagAt(metadata, "tokenizer.ggml.add_bos_token", vocab.add_bos);
  vocab.add_eos = FlagAt(metadata, "tokenizer.ggml.add_eos_token", vocab.add_eos);
  return vocab;
}

}  // namespace hearth
