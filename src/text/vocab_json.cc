// SPDX-License-Identifier: Apache-2.0
// Hugging Face's tokenizer.json. The file describes a pipeline of programs; only pipelines whose
// meaning is known are accepted, and everything else is refused by the name of the part.
#include <algorithm>

#include "base/json.h"
#include "text/vocab.h"
#include "text/vocab_spelling.h"

namespace hearth {
namespace {

// The largest known files (gemma's, 33 MB) have about 1.6 million values.
constexpr JsonLimits kLimits{
    .max_bytes = size_t{64} << 20, .max_depth = 16, .max_values = size_t{1} << 23};
constexpr std::string_view kSpaceSpelling = "\xe2\x96\x81";

std::string_view TextAt(const Json* json, std::string_view name) {
  const Json* const member = json != nullptr ? json->Find(name) : nullptr;
  const std::string* text = member != nullptr ? member->string() : nullptr;
  return text != nullptr ? std::string_view(*text) : std::string_view();
}
bool FlagAt(const Json* json, std::string_view name, bool absent) {
  const Json* const member = json != nullptr ? json->Find(name) : nullptr;
  const bool* flag = member != nullptr ? member->boolean() : nullptr;
  return flag != nullptr ? *flag : absent;
}
std::string_view TypeOf(const Json* json) { return TextAt(json, "type"); }
bool IsAbsent(const Json* json) { return json == nullptr || json->is_null(); }

Status Unknown(const char* part, const Json* json) {
  return Error(Code::kUnsupported, "the %s %s is not supported", part,
               Quoted(WriteJson(json != nullptr ? *json : Json())).c_str());
}

// The parts of a Sequence, or the one part itself, or none.
Result<std::vector<const Json*>> PartsOf(const Json* json, const char* what,
                                         std::string_view list) {
  std::vector<const Json*> parts;
  if (IsAbsent(json)) return parts;
  if (TypeOf(json) != "Sequence") {
    parts.push_back(json);
    return parts;
  }
  const Json* const member = json->Find(list);
  if (member == nullptr || member->array() == nullptr) return Unknown(what, json);
  for (const Json& part : *member->array()) parts.push_back(&part);
  return parts;
}

bool ReplacesSpace(const Json* json) {
  return TypeOf(json) == "Replace" && TextAt(json->Find("pattern"), "String") == " " &&
         TextAt(json, "content") == kSpaceSpelling;
}

Status ReadNormalizer(const Json* json, Vocab& vocab) {
  HEARTH_ASSIGN(const std::vector<const Json*> parts, PartsOf(json, "normalizer", "normalizers"));
  const bool over_characters = vocab.kind == VocabKind::kSentencePiece;
  for (const Json* part : parts) {
    if (!over_characters && TypeOf(part) == "NFC") {
      vocab.normalize_nfc = true;
    } else if (over_characters && TypeOf(part) == "Prepend" &&
               TextAt(part, "prepend") == kSpaceSpelling) {
      vocab.space_prefix = SpacePrefix::kAlways;
    } else if (!over_characters || !ReplacesSpace(part)) {
      return Unknown("normalizer", part);
    }
  }
  return Status();
}

// SentencePiece models: the space prefix stands in the normalizer or here.
Status ReadMetaspace(const Json* json, Vocab& vocab) {
  if (IsAbsent(json)) return Status();
  if (TypeOf(json) != "Metaspace" || TextAt(json, "replacement") != kSpaceSpelling ||
      FlagAt(json, "split", true)) {
    return Unknown("pre_tokenizer", json);
  }
  const std::string_view scheme = TextAt(json, "prepend_scheme");
  if (scheme == "always" || scheme == "first") {
    vocab.space_prefix = SpacePrefix::kUnlessThere;
  } else if (scheme != "never") {
    return Unknown("pre_tokenizer", json);
  }
  return Status();
}

bool IsByteLevel(const Json* json, bool uses_regex) {
  return TypeOf(json) == "ByteLevel" && !FlagAt(json, "add_prefix_space", true) &&
         FlagAt(json, "use_regex", true) == uses_regex;
}

Status ReadSplit(const Json* json, Vocab& vocab) {
  HEARTH_ASSIGN(const std::vector<const Json*> parts,
                PartsOf(json, "pre_tokenizer", "pretokenizers"));
  if (parts.size() == 1 && IsByteLevel(parts[0], true)) {
    vocab.split = SplitRule::kGpt2;
    return Status();
  }
  if (parts.size() != 2) return Unknown("pre_tokenizer", json);
  if (TypeOf(parts[0]) == "Digits" && FlagAt(parts[0], "individual_digits", false) &&
      IsByteLevel(parts[1], true)) {
    vocab.split = SplitRule::kSmollm;
    return Status();
  }
  if (TypeOf(parts[0]) != "Split" || TextAt(parts[0], "behavior") != "Isolated" ||
      FlagAt(parts[0], "invert", false) || !IsByteLevel(parts[1], false)) {
    return Unknown("pre_tokenizer", json);
  }
  const std::string_view regex = TextAt(parts[0]->Find("pattern"), "Regex");
  const std::optional<SplitRule> rule = RuleOfRegex(regex);
  if (!rule) {
    return Error(Code::kUnsupported, "the split pattern %s is not supported",
                 Quoted(regex).c_str());
  }
  vocab.split = *rule;
  return Status();
}

Status PlaceToken(const Json* id, std::string_view text, TokenType type, size_t max_tokens,
                  Vocab& vocab) {
  const std::optional<uint64_t> number = id != nullptr ? id->unsigned_integer() : std::nullopt;
  if (!number || *number >= max_tokens) {
    return Error(Code::kInvalid, "the token %s: expected an id below %zu", Quoted(text).c_str(),
                 max_tokens);
  }
  const auto i = static_cast<size_t>(*number);
  if (i >= vocab.tokens.size()) {
    vocab.tokens.resize(i + 1);
    vocab.types.resize(i + 1, TokenType::kUnused);
  }
  // The added tokens come second and may name tokens of the vocabulary again, to make them special.
  if (!vocab.tokens[i].empty() && vocab.tokens[i] != text) {
    return Error(Code::kInvalid, "token id %zu is both %s and %s", i,
                 Quoted(vocab.tokens[i]).c_str(), Quoted(text).c_str());
  }
  vocab.tokens[i] = text;
  vocab.types[i] = type;
  return Status();
}

Status ReadTokens(const Json& root, const Json& model, Vocab& vocab) {
  const Json* const tokens = model.Find("vocab");
  if (tokens == nullptr || tokens->object() == nullptr) {
    return Error(Code::kInvalid, "expected model.vocab, found none");
  }
  const Json* const added = root.Find("added_tokens");
  if (!IsAbsent(added) && added->array() == nullptr) {
    return Error(Code::kInvalid, "added_tokens: expected an array");
  }
  const JsonArray none;
  const JsonArray& more = IsAbsent(added) ? none : *added->array();
  // Real files have few gaps; this many bound the memory by the size of the file.
  const size_t max_tokens = 2 * (tokens->object()->size() + more.size()) + 64;
  for (const JsonMember& token : *tokens->object()) {
    HEARTH_TRY(PlaceToken(&token.second, token.first, TokenType::kNormal, max_tokens, vocab));
  }
  for (const Json& token : more) {
    const TokenType type =
        FlagAt(&token, "special", false) ? TokenType::kControl : TokenType::kUserDefined;
    HEARTH_TRY(PlaceToken(token.Find("id"), TextAt(&token, "content"), type, max_tokens, vocab));
  }
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    if (vocab.tokens[i].empty()) vocab.tokens[i] = Printf("[unused %zu]", i);
  }
  return Status();
}

// Older files write "a b", newer ones ["a", "b"], because tokens may hold spaces.
Result<std::vector<SpelledMerge>> ReadMerges(const Json& model) {
  const Json* const list = model.Find("merges");
  if (list == nullptr || list->array() == nullptr) {
    return Error(Code::kInvalid, "expected model.merges, found none");
  }
  std::vector<SpelledMerge> merges;
  for (const Json& merge : *list->array()) {
    const JsonArray* const pair = merge.array();
    if (const std::string* text = merge.string()) {
      const size_t space = text->find(' ');
      if (space != std::string::npos && text->find(' ', space + 1) == std::string::npos) {
        const std::string_view view = *text;
        merges.push_back({view.substr(0, space), view.substr(space + 1)});
        continue;
      }
    } else if (pair != nullptr && pair->size() == 2 && (*pair)[0].string() != nullptr &&
               (*pair)[1].string() != nullptr) {
      merges.push_back({*(*pair)[0].string(), *(*pair)[1].string()});
      continue;
    }
    return Error(Code::kInvalid, "merge %zu: expected a pair of tokens, found %s", merges.size(),
                 Quoted(WriteJson(merge)).c_str());
  }
  return merges;
}

// What the post-processor puts in front of and behind a single text.
void ReadTemplate(const Json* json, Vocab& vocab) {
  auto parts = PartsOf(json, "post_processor", "processors");
  if (!parts.ok()) return;
  for (const Json* part : *parts) {
    const Json* const single =
        TypeOf(part) == "TemplateProcessing" ? part->Find("single") : nullptr;
    if (single == nullptr || single->array() == nullptr) continue;
    bool seen_text = false;
    for (const Json& item : *single->array()) {
      if (item.Find("Sequence") != nullptr) seen_text = true;
      const std::string_view name = TextAt(item.Find("SpecialToken"), "id");
      const auto found = std::find(vocab.tokens.begin(), vocab.tokens.end(), name);
      if (name.empty() || found == vocab.tokens.end()) continue;
      (seen_text ? vocab.eos : vocab.bos) = static_cast<Token>(found - vocab.tokens.begin());
      (seen_text ? vocab.add_eos : vocab.add_bos) = true;
    }
  }
}

Status CheckModel(const Json* model) {
  if (IsAbsent(model)) return Error(Code::kInvalid, "expected a member \"model\", found none");
  // A file without a type is from before there was a choice.
  if (model->Find("type") != nullptr && TypeOf(model) != "BPE") {
    return Error(Code::kUnsupported, "tokenizer type %s is not supported; supported: BPE",
                 Quoted(TypeOf(model)).c_str());
  }
  const bool plain = TextAt(model, "continuing_subword_prefix").empty() &&
                     TextAt(model, "end_of_word_suffix").empty() &&
                     IsAbsent(model->Find("dropout"));
  if (!plain) {
    return Error(Code::kUnsupported,
                 "tokenizers with dropout, a subword prefix or a word suffix are not supported");
  }
  return Status();
}

// Characters with byte fallback: mark the byte tokens, keep the spellings.
void MarkByteTokens(std::string_view unknown, Vocab& vocab) {
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    const std::string& token = vocab.tokens[i];
    if (token.size() == 6 && token.starts_with("<0x") && token.ends_with(">")) {
      vocab.types[i] = TokenType::kByte;
    } else if (!unknown.empty() && token == unknown) {
      vocab.types[i] = TokenType::kUnknown;
      vocab.unknown = static_cast<Token>(i);
    }
  }
}

}  // namespace

Result<Vocab> ParseTokenizerJson(std::string_view file) {
  HEARTH_ASSIGN(const Json root, ParseJson(file, kLimits));
  const Json* const model = root.Find("model");
  HEARTH_TRY(CheckModel(model));
  Vocab vocab;
  const bool over_characters = FlagAt(model, "byte_fallback", false);
  vocab.kind = over_characters ? VocabKind::kSentencePiece : VocabKind::kMergedBpe;
  vocab.whole_pieces_first = FlagAt(model, "ignore_merges", false);
  if (over_characters && vocab.whole_pieces_first) {
    return Error(Code::kUnsupported, "byte_fallback together with ignore_merges is not supported");
  }
  HEARTH_TRY(ReadNormalizer(root.Find("normalizer"), vocab));
  HEARTH_TRY(over_characters ? ReadMetaspace(root.Find("pre_tokenizer"), vocab)
                             : ReadSplit(root.Find("pre_tokenizer"), vocab));
  HEARTH_TRY(ReadTokens(root, *model, vocab));
  if (over_characters) MarkByteTokens(TextAt(model, "unk_token"), vocab);
  HEARTH_ASSIGN(const std::vector<SpelledMerge> merges, ReadMerges(*model));
  if (merges.empty()) return Error(Code::kInvalid, "model.merges is empty");
  HEARTH_TRY(over_characters ? ResolveMerges(merges, vocab) : ResolveSpellings(merges, vocab));
  ReadTemplate(root.Find("post_processor"), vocab);
  return vocab;
}

}  // namespace hearth
