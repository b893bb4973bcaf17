// SPDX-License-Identifier: Apache-2.0
// Which format is it? Decided by what is at the path, not by its name alone.
#include "weights/weight_file.h"

#include <algorithm>

#include "platform/file.h"
#include "weights/gguf_file.h"
#include "weights/packed_file.h"
#include "weights/safetensors_dir.h"

namespace hearth {

const char* NameOf(WeightFormat format) {
  switch (format) {
    case WeightFormat::kGguf:
      return "GGUF";
    case WeightFormat::kHuggingFace:
      return "Hugging Face safetensors";
    case WeightFormat::kOpenAi:
      return "OpenAI safetensors";
  }
  return "unknown";
}

namespace {

// What people hand us in place of a model, and what to do about it. Empty: nobody knows.
const char* HintAt(std::string_view head) {
  struct Mistake {
    std::string_view start;
    const char* hint;
  };
  static constexpr Mistake kMistakes[] = {
      {"version https://git-lfs", "; this is a Git LFS pointer: run `git lfs pull` for the file"},
      {"<!DOCTYPE", "; this is a web page: download the file itself"},
      {"<!doctype", "; this is a web page: download the file itself"},
      {"<html", "; this is a web page: download the file itself"},
      {"PK\x03\x04", "; this is a PyTorch or ZIP file: convert it to GGUF or safetensors"},
      {"lmgg", "; this is GGML, from before GGUF: download or make a GGUF file"},
      {"tjgg", "; this is GGML, from before GGUF: download or make a GGUF file"},
  };
  for (const Mistake& mistake : kMistakes) {
    if (head.starts_with(mistake.start)) return mistake.hint;
  }
  return "";
}

}  // namespace

Result<std::unique_ptr<WeightFile>> WeightFile::Open(const std::string& path) {
  if (IsDirectory(path) || path.ends_with(".safetensors")) return OpenSafetensors(path);
  HEARTH_ASSIGN(const MappedFile file, MappedFile::Open(path));
  if (LooksPacked(file.bytes())) {
    HEARTH_ASSIGN(std::unique_ptr<PackedFile> packed, PackedFile::Open(path));
    return std::unique_ptr<WeightFile>(std::move(packed));
  }
  const auto bytes = file.bytes().first(std::min<size_t>(32, file.bytes().size()));
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string_view magic = head.substr(0, 4);
  // Blobs of a content-addressed store have no extension, so the first bytes decide.
  if (magic == "GGUF") return OpenGguf(path);
  return Error(Code::kUnsupported,
               "%s: expected a GGUF file, a packed file or a directory with safetensors; the file "
               "starts with %s%s",
               path.c_str(), Quoted(magic).c_str(), HintAt(head));
}

}  // namespace hearth
