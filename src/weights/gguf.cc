// SPDX-License-Identifier: Apache-2.0
#include "weights/gguf.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cinttypes>
#include <cstring>
#include <utility>
#include <vector>

#include "base/byte_reader.h"
#include "base/checked.h"

namespace hearth {
namespace {

using Limits = GgufLimits;

constexpr uint64_t kMinKeyBytes = 8 + 1 + 4 + 1;             // length, name, type, value
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;  // length, name, rank, ne, type, offset

struct TensorType {
  uint32_t id;
  std::optional<DType> dtype;  // none: it has a name, but Hearth does not read it
  const char* name;
};
constexpr TensorType kTensorTypes[] = {
    {0, DType::kF32, "F32"},
    {1, DType::kF16, "F16"},
    {2, DType::kQ4_0, "Q4_0"},
    {3, DType::kQ4_1, "Q4_1"},
    {6, DType::kQ5_0, "Q5_0"},
    {7, DType::kQ5_1, "Q5_1"},
    {8, DType::kQ8_0, "Q8_0"},
    {9, {}, "Q8_1"},
    {10, DType::kQ2_K, "Q2_K"},
    {11, DType::kQ3_K, "Q3_K"},
    {12, DType::kQ4_K, "Q4_K"},
    {13, DType::kQ5_K, "Q5_K"},
    {14, DType::kQ6_K, "Q6_K"},
    {15, {}, "Q8_K"},
    {16, DType::kIq2Xxs, "IQ2_XXS"},
    {17, {}, "IQ2_XS"},
    {18, {}, "IQ3_XXS"},
    {19, {}, "IQ1_S"},
    {20, DType::kIq4Nl, "IQ4_NL"},
    {21, {}, "IQ3_S"},
    {22, {}, "IQ2_S"},
    {23, DType::kIq4Xs, "IQ4_XS"},
    {24, DType::kI8, "I8"},
    {25, DType::kI16, "I16"},
    {26, DType::kI32, "I32"},
    {27, DType::kI64, "I64"},
    {28, DType::kF64, "F64"},
    {29, {}, "IQ1_M"},
    {30, DType::kBf16, "BF16"},
    {34, {}, "TQ1_0"},
    {35, {}, "TQ2_0"},
    {39, DType::kMxfp4, "MXFP4"},
    {40, {}, "NVFP4"},
    {41, {}, "Q1_0"},
};

std::vector<std::pair<uint32_t, DType>>& AddedTypes() {
  static std::vector<std::pair<uint32_t, DType>> added;
  return added;
}

Result<DType> TensorTypeOf(uint32_t id) {
  for (const auto& [added, dtype] : AddedTypes()) {
    if (added == id) return dtype;
  }
  for (const TensorType& type : kTensorTypes) {
    if (type.id != id) continue;
    if (type.dtype) return *type.dtype;
    return Error(Code::kUnsupported, "tensor type %" PRIu32 " (%s) is not supported", id,
                 type.name);
  }
  return Error(Code::kUnsupported, "tensor type %" PRIu32 " is not supported", id);
}

// The length of the UTF-8 sequence at the front of `text` when it is well-formed and no control
// character; 0 otherwise. `text` is not empty.
size_t PrintableLength(std::string_view text) {
  const auto at = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  uint32_t code = lead & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (at(i) & 0x3fu);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0xa0, 0x800, 0x10000};  // U+0080..9f are controls
  if (code < kSmallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return 0;
  return length;
}

Status CheckName(std::string_view name) {
  if (name.empty()) return Error(Code::kCorrupt, "the name is empty");
  for (size_t i = 0; i < name.size();) {
    const size_t length = PrintableLength(name.substr(i));
    if (length == 0) {
      return Error(Code::kCorrupt, "name %s: byte %zu is not printable UTF-8", Quoted(name).c_str(),
                   i);
    }
    i += length;
  }
  return Status();
}

// One pass over one file, front to back: head, keys, tensors, and then the extents.
class Parser {
 public:
  explicit Parser(std::span<const std::byte> file) : file_(file), reader_(file) {}

  Result<Gguf> Parse() {
    HEARTH_TRY(ReadHead());
    HEARTH_TRY(ReadKeys());
    HEARTH_TRY(ReadAlignment());
    HEARTH_TRY(ReadTensors());
    HEARTH_TRY(CheckNames());
    HEARTH_TRY(PlaceTensors());
    return std::move(gguf_);
  }

 private:
  Status ReadHead();
  Status ReadCount(const char* what, uint64_t min_bytes, uint64_t limit, uint64_t& count);
  Status ReadKeys();
  Status ReadKey();
  Result<GgufType> ReadType(const char* what);
  Result<GgufValue> ReadValue();
  Status ReadArray(GgufValue& value);
  Status SkipStrings(uint64_t count);
  Status CheckHeaderSize() const;
  Status ReadAlignment();
  Status ReadTensors();
  Result<GgufTensor> ReadTensor();
  Status ReadTensorView(TensorView& view);
  Status CheckNames() const;
  Status PlaceTensors();
  Status PlaceTensor(TensorView& view, uint64_t offset, uint64_t data_start);
  std::span<const std::byte> Since(size_t start) const {
    return file_.subspan(start, reader_.position() - start);
  }

  std::span<const std::byte> file_;
  ByteReader reader_;
  Gguf gguf_;
  uint64_t num_tensors_ = 0, num_keys_ = 0;
  std::vector<uint64_t> offsets_;  // of gguf_.tensors, from the start of the data
  uint64_t data_end_ = 0;          // of the tensors placed so far, padding included
};

Status Parser::ReadHead() {
  HEARTH_ASSIGN(const auto magic, reader_.Bytes(4, "magic"));
  if (std::memcmp(magic.data(), "GGUF", 4) != 0) {
    const std::string found(reinterpret_cast<const char*>(magic.data()), 4);
    return Error(Code::kCorrupt, "not a GGUF file: expected \"GGUF\" at byte 0, found %s%s",
                 Quoted(found).c_str(), found == "FUGG" ? " (byte-swapped)" : "");
  }
  HEARTH_ASSIGN(gguf_.version, reader_.U32("version"));
  if (gguf_.version != 0 && (gguf_.version & 0xffff) == 0) {
    return Error(Code::kUnsupported,
                 "a big-endian GGUF file (version reads 0x%08" PRIx32
                 "); only little-endian ones are supported",
                 gguf_.version);
  }
  if (gguf_.version != 2 && gguf_.version != 3) {
    return Error(Code::kUnsupported,
                 "GGUF version %" PRIu32 " is not supported; supported: 2 and 3", gguf_.version);
  }
  HEARTH_TRY(ReadCount("tensor count", kMinTensorBytes, Limits::kMaxTensors, num_tensors_));
  return ReadCount("key count", kMinKeyBytes, Limits::kMaxKeys, num_keys_);
}

Status Parser::ReadCount(const char* what, uint64_t min_bytes, uint64_t limit, uint64_t& count) {
  HEARTH_ASSIGN(count, reader_.U64(what));
  HEARTH_TRY(reader_.CanHold(count, min_bytes, what));
  if (count <= limit) return Status();
  return Error(Code::kUnsupported, "%s is %" PRIu64 ", the limit is %" PRIu64, what, count, limit);
}

Status Parser::ReadKeys() {
  gguf_.metadata.Reserve(static_cast<size_t>(num_keys_));
  for (uint64_t i = 0; i < num_keys_; ++i) {
    if (Status status = ReadKey(); !status.ok()) {
      return std::move(status).Within(Printf("key %" PRIu64 " of %" PRIu64, i + 1, num_keys_));
    }
  }
  return Status();
}

Status Parser::ReadKey() {
  HEARTH_ASSIGN(const std::string_view key, reader_.String(Limits::kMaxKeyBytes, "key"));
  HEARTH_TRY(CheckName(key));
  auto value = ReadValue();
  if (!value.ok()) return std::move(value).status().Within(Quoted(key));
  HEARTH_TRY(CheckHeaderSize());
  if (gguf_.metadata.Add(key, *value)) return Status();
  return Error(Code::kCorrupt, "%s appears twice", Quoted(key).c_str());
}

Result<GgufType> Parser::ReadType(const char* what) {
  const size_t at = reader_.position();
  HEARTH_ASSIGN(const uint32_t id, reader_.U32(what));
  if (id <= static_cast<uint32_t>(GgufType::kF64)) return static_cast<GgufType>(id);
  return Error(Code::kCorrupt, "%s at byte %zu: %" PRIu32 " is not a value type; expected 0 to 12",
               what, at, id);
}

Result<GgufValue> Parser::ReadValue() {
  GgufValue value;
  HEARTH_ASSIGN(value.type, ReadType("value type"));
  const size_t start = reader_.position();
  if (value.type == GgufType::kArray) {
    HEARTH_TRY(ReadArray(value));
    return value;
  }
  if (value.type == GgufType::kString) {
    HEARTH_TRY(reader_.String(Limits::kMaxStringBytes, "string").status());
    value.bytes = Since(start);
    return value;
  }
  HEARTH_ASSIGN(value.bytes, reader_.Bytes(SizeOf(value.type), NameOf(value.type)));
  if (value.type == GgufType::kBool && value.bytes[0] > std::byte{1}) {
    return Error(Code::kCorrupt, "bool at byte %zu: expected 0 or 1, found %d", start,
                 std::to_integer<int>(value.bytes[0]));
  }
  return value;
}

Status Parser::ReadArray(GgufValue& value) {
  HEARTH_ASSIGN(value.element, ReadType("element type"));
  if (value.element == GgufType::kArray) {
    return Error(Code::kUnsupported, "array of arrays at byte %zu is not supported",
                 reader_.position());
  }
  HEARTH_ASSIGN(value.count, reader_.U64("element count"));
  const bool strings = value.element == GgufType::kString;
  const uint64_t each = strings ? sizeof(uint64_t) : SizeOf(value.element);
  HEARTH_TRY(reader_.CanHold(value.count, each, "array"));
  const size_t start = reader_.position();
  if (strings) {
    HEARTH_TRY(SkipStrings(value.count));
    value.bytes = Since(start);
    return Status();
  }
  HEARTH_ASSIGN(value.bytes, reader_.Bytes(value.count * each, "array"));
  if (value.element != GgufType::kBool) return Status();
  HEARTH_TRY(CheckHeaderSize());
  const auto bad = std::find_if(value.bytes.begin(), value.bytes.end(),
                                [](std::byte flag) { return flag > std::byte{1}; });
  if (bad == value.bytes.end()) return Status();
  return Error(Code::kCorrupt, "element %td: expected a bool of 0 or 1, found %d",
               bad - value.bytes.begin(), std::to_integer<int>(*bad));
}

// Strings are found again one by one when somebody asks; here they are only checked, so that a
// vocabulary of 200,000 tokens costs no memory.
Status Parser::SkipStrings(uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    auto text = reader_.String(Limits::kMaxElementBytes, "string");
    if (!text.ok()) return std::move(text).status().Within(Printf("element %" PRIu64, i));
    HEARTH_TRY(CheckHeaderSize());
  }
  return Status();
}

Status Parser::CheckHeaderSize() const {
  if (reader_.position() <= Limits::kMaxHeaderBytes) return Status();
  return Error(Code::kUnsupported, "the header is longer than %" PRIu64 " bytes",
               Limits::kMaxHeaderBytes);
}

Status Parser::ReadAlignment() {
  const GgufValue* value = gguf_.metadata.Find("general.alignment");
  if (value == nullptr) return Status();
  const auto alignment = value->Unsigned();
  if (!alignment) {
    return Error(Code::kCorrupt, "general.alignment: expected an unsigned integer, found %s",
                 NameOf(value->type));
  }
  if (!std::has_single_bit(*alignment) || *alignment < Limits::kMinAlignment ||
      *alignment > Limits::kMaxAlignment) {
    return Error(Code::kCorrupt,
                 "general.alignment: expected a power of two from %" PRIu64 " to %" PRIu64
                 ", found %" PRIu64,
                 Limits::kMinAlignment, Limits::kMaxAlignment, *alignment);
  }
  gguf_.alignment = *alignment;
  return Status();
}

Status Parser::ReadTensors() {
  // Again, now that the keys have taken their share of the file.
  HEARTH_TRY(reader_.CanHold(num_tensors_, kMinTensorBytes, "tensor list"));
  gguf_.tensors.reserve(static_cast<size_t>(num_tensors_));
  offsets_.reserve(static_cast<size_t>(num_tensors_));
  for (uint64_t i = 0; i < num_tensors_; ++i) {
    auto tensor = ReadTensor();
    if (!tensor.ok()) {
      return std::move(tensor).status().Within(
          Printf("tensor %" PRIu64 " of %" PRIu64, i + 1, num_tensors_));
    }
    gguf_.tensors.push_back(*tensor);
  }
  return CheckHeaderSize();
}

Result<GgufTensor> Parser::ReadTensor() {
  GgufTensor tensor;
  HEARTH_ASSIGN(tensor.name, reader_.String(Limits::kMaxNameBytes, "name"));
  HEARTH_TRY(CheckName(tensor.name));
  if (Status status = ReadTensorView(tensor.view); !status.ok()) {
    return std::move(status).Within(Quoted(tensor.name));
  }
  return tensor;
}

Status Parser::ReadTensorView(TensorView& view) {
  HEARTH_ASSIGN(const uint32_t rank, reader_.U32("rank"));
  if (rank < 1 || rank > TensorView::kMaxRank) {
    return Error(Code::kCorrupt, "rank %" PRIu32 ", expected 1 to %d", rank, TensorView::kMaxRank);
  }
  view.rank = static_cast<int>(rank);
  for (uint32_t i = 0; i < rank; ++i) {
    HEARTH_ASSIGN(const uint64_t size, reader_.U64("dimension"));
    if (size < 1 || size > INT64_MAX) {
      return Error(Code::kCorrupt, "dimension %" PRIu32 " is %" PRId64 ", expected at least 1", i,
                   static_cast<int64_t>(size));
    }
    view.shape[rank - 1 - i] = static_cast<int64_t>(size);  // the file says innermost first
  }
  HEARTH_ASSIGN(const uint32_t type, reader_.U32("type"));
  HEARTH_ASSIGN(view.dtype, TensorTypeOf(type));
  HEARTH_ASSIGN(const uint64_t offset, reader_.U64("offset"));
  offsets_.push_back(offset);
  return Status();
}

Status Parser::CheckNames() const {
  std::vector<std::string_view> names;
  names.reserve(gguf_.tensors.size());
  for (const GgufTensor& tensor : gguf_.tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return Status();
  return Error(Code::kCorrupt, "tensor %s appears twice", Quoted(*twice).c_str());
}

Status Parser::PlaceTensors() {
  const Checked data_start = Checked(reader_.position()).AlignedUp(gguf_.alignment);
  if (gguf_.tensors.empty()) return Status();  // then the padding may be missing as well
  if (!data_start.FitsIn(file_.size())) {
    return Error(Code::kCorrupt,
                 "the file ends at byte %zu, before the tensor data that follows the header's "
                 "%zu bytes",
                 file_.size(), reader_.position());
  }
  for (size_t i = 0; i < gguf_.tensors.size(); ++i) {
    GgufTensor& tensor = gguf_.tensors[i];
    if (Status status = PlaceTensor(tensor.view, offsets_[i], *data_start.value()); !status.ok()) {
      return std::move(status).Within("tensor " + Quoted(tensor.name));
    }
  }
  return Status();
}

Status Parser::PlaceTensor(TensorView& view, uint64_t offset, uint64_t data_start) {
  const auto [elems, bytes] = BlockShapeOf(view.dtype);
  const auto row = static_cast<uint64_t>(view.shape[static_cast<size_t>(view.rank - 1)]);
  if (row % static_cast<uint64_t>(elems) != 0) {
    return Error(Code::kCorrupt, "rows of %" PRIu64 " elements, expected a multiple of %s's %d",
                 row, NameOf(view.dtype), elems);
  }
  Checked size = Checked(row / static_cast<uint64_t>(elems)) * static_cast<uint64_t>(bytes);
  Checked num_elements(row);
  for (int i = 0; i < view.rank - 1; ++i) {
    size = size * static_cast<uint64_t>(view.shape[static_cast<size_t>(i)]);
    num_elements = num_elements * static_cast<uint64_t>(view.shape[static_cast<size_t>(i)]);
  }
  if (!size.FitsIn(INT64_MAX) || !num_elements.FitsIn(INT64_MAX)) {
    return Error(Code::kCorrupt, "shape %s of %s overflows 63 bits", ShapeText(view).c_str(),
                 NameOf(view.dtype));
  }
  if (offset % gguf_.alignment != 0) {
    return Error(Code::kCorrupt, "offset %" PRIu64 " is not a multiple of the alignment %" PRIu64,
                 offset, gguf_.alignment);
  }
  const uint64_t room = file_.size() - data_start;
  if (!(Checked(offset) + size).FitsIn(room)) {
    return Error(Code::kCorrupt,
                 "%s %s needs %" PRIu64 " bytes at offset %" PRIu64 ", the file has %" PRIu64
                 " bytes of tensor data; is the download complete?",
                 NameOf(view.dtype), ShapeText(view).c_str(), *size.value(), offset, room);
  }
  if (offset != data_end_) {
    return Error(Code::kCorrupt, "offset %" PRIu64 " %s the tensor before it, expected %" PRIu64,
                 offset, offset < data_end_ ? "overlaps" : "leaves a gap after", data_end_);
  }
  view.bytes =
      file_.subspan(static_cast<size_t>(data_start + offset), static_cast<size_t>(*size.value()));
  // Both sums were just bounded by the file's size; the padding of the last one may pass its end.
  data_end_ = *(Checked(offset) + size).AlignedUp(gguf_.alignment).value();
  return Status();
}

std::atomic<int64_t> num_parses = 0;

}  // namespace

Result<Gguf> ParseGguf(std::span<const std::byte> file) {
  num_parses.fetch_add(1, std::memory_order_relaxed);
  return Parser(file).Parse();
}

std::optional<uint32_t> GgufTypeId(DType dtype) {
  for (const TensorType& type : kTensorTypes) {
    if (type.dtype == dtype) return type.id;
  }
  return std::nullopt;
}

void AddGgufType(uint32_t id, DType dtype) {
  HEARTH_CHECK(!TensorTypeOf(id).ok());
  AddedTypes().emplace_back(id, dtype);
}

int64_t NumGgufParses() { return num_parses.load(std::memory_order_relaxed); }

}  // namespace hearth
