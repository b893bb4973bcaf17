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

Result<std::unique_ptr<WeightFile>> WeightFile::Open(const std::string& path) {
  if (IsDirectory(path) || path.ends_with(".safetensors")) return OpenSafetensors(path);
  HEARTH_ASSIGN(const MappedFile file, MappedFile::Open(path));
  if (LooksPacked(file.bytes())) {
    HEARTH_ASSIGN(std::unique_ptr<PackedFile> packed, PackedFile::Open(path));
    return std::unique_ptr<WeightFile>(std::move(packed));
  }
  const auto head = file.bytes().first(std::min<size_t>(4, file.bytes().size()));
  const std::string_view magic(reinterpret_cast<const char*>(head.data()), head.size());
  // Blobs of a content-addressed store have no extension, so the first bytes decide.
  if (magic == "GGUF") return OpenGguf(path);
  return Error(Code::kUnsupported,
               "%s: expected a GGUF file, a packed file or a directory with safetensors; the file "
               "starts with %s",
               path.c_str(), Quoted(magic).c_str());
}

}  // namespace hearth
