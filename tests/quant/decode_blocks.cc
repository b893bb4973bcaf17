// SPDX-License-Identifier: Apache-2.0
// decode_blocks FORMAT IN OUT: raw blocks to raw floats through tensor/quant.h, for the Python
// oracle to compare. MXFP4_PLANES reads all nibbles first, then all scales, as one row.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "tensor/quant.h"

namespace hearth {
namespace {

std::optional<DType> FormatNamed(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(DType::kMxfp4Planes); ++i) {
    const auto dtype = static_cast<DType>(i);
    if (name == NameOf(dtype)) return dtype;
  }
  return std::nullopt;
}

std::vector<float> Decode(DType dtype, const std::string& bytes) {
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  const auto size = static_cast<int64_t>(bytes.size());
  if (dtype != DType::kMxfp4Planes) {
    const BlockShape shape = BlockShapeOf(dtype);
    std::vector<float> out(static_cast<size_t>(size / shape.bytes * shape.elems));
    DecodeBlocks(dtype, data, static_cast<int64_t>(out.size()), out.data());
    return out;
  }
  const int64_t blocks = size / 17;
  const MatView row = {.data = data,
                       .scales = data + blocks * 16,
                       .dtype = dtype,
                       .rows = 1,
                       .cols = static_cast<int>(blocks * 32)};
  std::vector<float> out(static_cast<size_t>(row.cols));
  DecodeRow(row, 0, out.data());
  return out;
}

int Main(int argc, char** argv) {
  const auto dtype = argc == 4 ? FormatNamed(argv[1]) : std::nullopt;
  if (!dtype || !CanDecode(*dtype)) {
    std::fprintf(stderr, "usage: decode_blocks FORMAT IN OUT\n");
    return 2;
  }
  std::ifstream in(argv[2], std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::vector<float> values = Decode(*dtype, bytes);
  std::ofstream out(argv[3], std::ios::binary);
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(float)));
  return out.good() && in.good() ? 0 : 1;
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) { return hearth::Main(argc, argv); }
