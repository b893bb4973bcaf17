// SPDX-License-Identifier: Apache-2.0
// Where a model's tokenizer and chat template are read from: the model file that is open already,
// or a path of its own. Whatever it is, its metadata is parsed once for both.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "platform/file.h"
#include "weights/gguf.h"
#include "weights/weight_file.h"
namespace hearth {

// Thread: immutable; share freely.
class TextSource {
 public:
  // A model that is open; `path` is where from. `file` must outlive the result.
  static TextSource Of(const WeightFile& file, const std::string& path);
  // A GGUF file, a packed file, a model's directory, a tokenizer.json or a .tiktoken rank file.
  static Result<TextSource> Open(const std::string& path);

  const std::string& path() const { return path_; }
  // GGUF's; null for everything else.
  const GgufMetadata* metadata() const;
  // Made by `hearth pack`, and so keeps the texts that stood beside its original.
  bool is_packed() const { return file_ != nullptr && file_->packed() != nullptr; }
  // A tokenizer.json or rank file that was named itself, whole.
  std::optional<std::string_view> lone_text() const;
  // Whether a file of this name stands beside the model's or the tokenizer's, and its text, which
  // may have `max_bytes`.
  bool Has(const std::string& name) const;
  Result<std::string> Text(const std::string& name, size_t max_bytes) const;
  // What an error about that file is prefixed with.
  std::string PlaceOf(const std::string& name) const;

 private:
  explicit TextSource(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::string directory_;             // of texts in files of their own; empty: there is none
  const WeightFile* file_ = nullptr;  // the open model, or `packed_`
  std::unique_ptr<const WeightFile> packed_;
  std::optional<MappedFile> map_;  // of a GGUF or lone file
  std::optional<Gguf> gguf_;       // views into `map_`
};

}  // namespace hearth
