// SPDX-License-Identifier: Apache-2.0
#include "app/open_tokenizer.h"

#include "app/vocab_from_gguf.h"

namespace hearth {
namespace {

constexpr const char* kFile = "tokenizer.json";
constexpr size_t kMaxFileBytes = size_t{1} << 28;  // Llama 3's and Qwen's have 7 to 17 MB

Result<std::unique_ptr<Tokenizer>> FromMetadata(const GgufMetadata& metadata) {
  HEARTH_ASSIGN(Vocab vocab, VocabFromGguf(metadata));
  return MakeTokenizer(std::move(vocab));
}

Result<std::unique_ptr<Tokenizer>> FromLone(std::string_view text) {
  // No rank file begins so: '{' is no base64.
  return text.starts_with("{") ? LoadTokenizerJson(text) : LoadTiktoken(text);
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> OpenTokenizer(const TextSource& source) {
  if (source.metadata() != nullptr) return FromMetadata(*source.metadata()).Within(source.path());
  if (const auto text = source.lone_text()) return FromLone(*text).Within(source.path());
  if (!source.Has(kFile)) {
    return Error(Code::kNotFound, "%s: %s; pass a tokenizer with --tokenizer",
                 source.path().c_str(),
                 source.is_packed() ? "the packed model has no tokenizer.json"
                                    : "this directory has no tokenizer.json");
  }
  HEARTH_ASSIGN(const std::string text, source.Text(kFile, kMaxFileBytes));
  return LoadTokenizerJson(text).Within(source.is_packed() ? source.path() : source.PlaceOf(kFile));
}

Result<std::unique_ptr<Tokenizer>> OpenTokenizer(const std::string& path) {
  HEARTH_ASSIGN(const TextSource source, TextSource::Open(path));
  return OpenTokenizer(source);
}

}  // namespace hearth
