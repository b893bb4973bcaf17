// SPDX-License-Identifier: Apache-2.0
// The safetensors container: one file's header, validated before anything is believed.
// A checkpoint of several files and its config.json is safetensors_dir.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/tensor.h"
namespace hearth {

// An entry takes about 130 bytes, so gpt-oss-20b's 459 tensors need 60 KB. 16 MiB leave 256 bytes
// for each of the most tensors allowed.
constexpr uint64_t kMaxSafetensorsHeaderBytes = uint64_t{16} << 20;
// 24 layers of 32 experts with three matrices each, all kept apart, would be 2,304 tensors.
constexpr size_t kMaxSafetensorsTensors = 65536;

struct SafetensorsTensor {
  std::string name;  // owned: JSON may spell it with escapes
  TensorView view;   // into the bytes given to ParseSafetensors; not aligned to anything
};

// One parsed file.
struct Safetensors {
  std::vector<SafetensorsTensor> tensors;  // in the order their bytes lie in the file
};

// Checks everything that can be checked without reading tensor data: the header's length against
// the file, every dtype, shape and extent, and that the extents cover the data exactly once. Never
// allocates more than a small multiple of the header's bytes. kCorrupt: the file contradicts
// itself; kUnsupported: it is sound but beyond a limit or of a type Hearth does not read.
Result<Safetensors> ParseSafetensors(std::span<const std::byte> file);

}  // namespace hearth
