// SPDX-License-Identifier: Apache-2.0
// GGUF files, version 3, as gguf.h reads them.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"
#include "weights/gguf.h"
namespace hearth {

// Metadata of a file to be written, in order.
class GgufKeys {
 public:
  // A value of another file, as it is.
  void Copy(std::string_view key, const GgufValue& value);
  void AddU32(std::string_view key, uint32_t value);
  void AddString(std::string_view key, std::string_view value);
  uint64_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void Begin(std::string_view key, GgufType type);
  std::string bytes_;
  uint64_t count_ = 0;
};

struct GgufOutTensor {
  std::string name;
  DType dtype = DType::kF32;
  int rank = 0;
  std::array<int64_t, TensorView::kMaxRank> shape{};  // outermost first
  uint64_t bytes = 0;
  uint64_t offset = 0;  // in the file; filled in by LayOutGguf
};

struct GgufLayout {
  std::string head;  // what stands before the first tensor, padding included
  uint64_t file_bytes = 0;
};
// Places the tensors one after the other and writes what stands before them. Every dtype must have
// a GgufTypeId.
GgufLayout LayOutGguf(const GgufKeys& keys, std::span<GgufOutTensor> tensors);

}  // namespace hearth
