// SPDX-License-Identifier: Apache-2.0
#include "app/open_tokenizer.h"

#include "app/vocab_from_gguf.h"
#include "platform/file.h"
#include "weights/gguf.h"
#include "weights/packed_file.h"

namespace hearth {
namespace {

Result<std::unique_ptr<Tokenizer>> OpenPacked(const std::string& path) {
  HEARTH_ASSIGN(const std::unique_ptr<PackedFile> packed, PackedFile::Open(path));
  if (packed->metadata() != nullptr) {
    HEARTH_ASSIGN(Vocab vocab, VocabFromGguf(*packed->metadata()));
    return MakeTokenizer(std::move(vocab));
  }
  if (const auto text = packed->Text("tokenizer.json")) return LoadTokenizerJson(*text);
  return Error(Code::kNotFound,
               "packed from a directory without a tokenizer.json; name one with --tokenizer");
}

Result<std::unique_ptr<Tokenizer>> OpenFile(const std::string& path) {
  HEARTH_ASSIGN(const MappedFile file, MappedFile::Open(path));
  if (LooksPacked(file.bytes())) return OpenPacked(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  if (text.starts_with("GGUF")) {
    HEARTH_ASSIGN(const Gguf gguf, ParseGguf(file.bytes()));
    HEARTH_ASSIGN(Vocab vocab, VocabFromGguf(gguf.metadata));
    return MakeTokenizer(std::move(vocab));
  }
  // No rank file begins so: '{' is no base64.
  if (text.starts_with("{")) return LoadTokenizerJson(text);
  return LoadTiktoken(text);
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> OpenTokenizer(const std::string& path) {
  std::string file = path;
  if (IsDirectory(path)) {
    file += "/tokenizer.json";
    if (!FileExists(file)) {
      return Error(Code::kNotFound, "%s: no tokenizer.json in it; name one with --tokenizer",
                   path.c_str());
    }
  }
  return OpenFile(file).Within(file);
}

}  // namespace hearth
