// SPDX-License-Identifier: Apache-2.0
#include "app/text_source.h"

#include "weights/packed_file.h"

namespace hearth {
namespace {

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string_view AsText(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace

TextSource TextSource::Of(const WeightFile& file, const std::string& path) {
  TextSource source(path);
  source.file_ = &file;
  if (file.metadata() == nullptr && file.packed() == nullptr) {
    source.directory_ = IsDirectory(path) ? path : ParentOf(path);
  }
  return source;
}

Result<TextSource> TextSource::Open(const std::string& path) {
  TextSource source(path);
  if (IsDirectory(path)) {
    source.directory_ = path;
    return source;
  }
  HEARTH_ASSIGN(MappedFile file, MappedFile::Open(path));
  if (LooksPacked(file.bytes())) {
    HEARTH_ASSIGN(source.packed_, PackedFile::Open(path));
    source.file_ = source.packed_.get();
    return source;
  }
  source.map_.emplace(std::move(file));
  if (AsText(*source.map_).starts_with("GGUF")) {
    HEARTH_ASSIGN(source.gguf_, ParseGguf(source.map_->bytes()).Within(path));
  } else {
    source.directory_ = ParentOf(path);
  }
  return source;
}

const GgufMetadata* TextSource::metadata() const {
  if (gguf_) return &gguf_->metadata;
  return file_ != nullptr ? file_->metadata() : nullptr;
}

std::optional<std::string_view> TextSource::lone_text() const {
  if (!map_ || gguf_) return std::nullopt;
  return AsText(*map_);
}

bool TextSource::Has(const std::string& name) const {
  if (is_packed()) return file_->Text(name).has_value();
  return !directory_.empty() && FileExists(directory_ + "/" + name);
}

Result<std::string> TextSource::Text(const std::string& name, size_t max_bytes) const {
  if (!is_packed()) return ReadTextFile(directory_ + "/" + name, max_bytes);
  if (const auto text = file_->Text(name)) return std::string(*text);
  return Error(Code::kNotFound, "%s does not contain %s", path_.c_str(), name.c_str());
}

std::string TextSource::PlaceOf(const std::string& name) const {
  return is_packed() ? path_ + ": " + name : directory_ + "/" + name;
}

}  // namespace hearth
