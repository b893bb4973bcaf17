// SPDX-License-Identifier: Apache-2.0
#include "weights/safetensors.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <optional>
#include <string_view>
#include <tuple>

#include "base/byte_reader.h"
#include "base/checked.h"
#include "base/json.h"

namespace hearth {
namespace {

constexpr std::string_view kMetadata = "__metadata__";

// Their names are also those of NameOf(DType). Not GGUF's block types, whose names could clash.
constexpr std::array kDTypes = {DType::kF64,  DType::kF32,    DType::kF16,   DType::kBf16,
                                DType::kI64,  DType::kI32,    DType::kI16,   DType::kI8,
                                DType::kU8,   DType::kU16,    DType::kU32,   DType::kU64,
                                DType::kBool, DType::kF8E4m3, DType::kF8E5m2};

const char* KindOf(const Json& value) {
  if (value.is_null()) return "null";
  if (value.boolean() != nullptr) return "a boolean";
  if (value.string() != nullptr) return "a string";
  if (value.array() != nullptr) return "an array";
  if (value.object() != nullptr) return "an object";
  return value.unsigned_integer() || value.integer() ? "an integer" : "a number";
}

Result<DType> ParseDType(const Json& value) {
  const std::string* name = value.string();
  if (name == nullptr) {
    return Error(Code::kCorrupt, "dtype: expected a string, found %s", KindOf(value));
  }
  const auto is_named = [&](DType dtype) { return *name == NameOf(dtype); };
  const auto found = std::find_if(kDTypes.begin(), kDTypes.end(), is_named);
  if (found != kDTypes.end()) return *found;
  std::string known = NameOf(kDTypes.front());
  for (const DType dtype : std::span(kDTypes).subspan(1)) known.append(" ").append(NameOf(dtype));
  return Error(Code::kUnsupported, "dtype: expected one of %s, found %s", known.c_str(),
               Quoted(*name).c_str());
}

// Sets rank and shape.
Status ParseShape(const Json& value, TensorView& view) {
  const JsonArray* dims = value.array();
  if (dims == nullptr) {
    return Error(Code::kCorrupt, "shape: expected an array, found %s", KindOf(value));
  }
  if (dims->size() > TensorView::kMaxRank) {
    return Error(Code::kUnsupported, "shape: expected at most %d dimensions, found %zu",
                 TensorView::kMaxRank, dims->size());
  }
  view.rank = static_cast<int>(dims->size());
  for (size_t i = 0; i < dims->size(); ++i) {
    const std::optional<int64_t> dim = (*dims)[i].integer();
    if (!dim || *dim < 0) {
      return Error(Code::kCorrupt, "shape: dimension %zu: expected an integer from 0 to 2^63-1", i);
    }
    view.shape[i] = *dim;
  }
  return Status();
}

// The bytes that dtype and shape ask for. Dimensions beside a 0 must be sound too: whoever computes
// strides multiplies them.
Result<uint64_t> SizeOf(const TensorView& view) {
  Checked bytes(static_cast<uint64_t>(BlockShapeOf(view.dtype).bytes));
  bool is_empty = false;
  for (int i = 0; i < view.rank; ++i) {
    const auto dim = static_cast<uint64_t>(view.shape[static_cast<size_t>(i)]);
    is_empty = is_empty || dim == 0;
    bytes = bytes * std::max<uint64_t>(dim, 1);
  }
  if (!bytes.FitsIn(INT64_MAX)) {
    return Error(Code::kCorrupt, "%s %s: the size overflows 63 bits", NameOf(view.dtype),
                 ShapeText(view).c_str());
  }
  return is_empty ? 0 : *bytes.value();
}

// Sets bytes; dtype and shape are there.
Status ParseOffsets(const Json& value, std::span<const std::byte> data, TensorView& view) {
  const JsonArray* pair = value.array();
  if (pair == nullptr || pair->size() != 2) {
    return Error(Code::kCorrupt, "data_offsets: expected [begin, end]");
  }
  const std::optional<uint64_t> begin = (*pair)[0].unsigned_integer();
  const std::optional<uint64_t> end = (*pair)[1].unsigned_integer();
  if (!begin || !end) {
    return Error(Code::kCorrupt, "data_offsets: expected two integers from 0 to 2^64-1");
  }
  if (*begin > *end || *end > data.size()) {
    return Error(Code::kCorrupt,
                 "data_offsets: expected begin <= end <= %zu (the bytes of data), found [%" PRIu64
                 ", %" PRIu64 "]",
                 data.size(), *begin, *end);
  }
  HEARTH_ASSIGN(const uint64_t expected, SizeOf(view));
  if (expected != *end - *begin) {
    return Error(Code::kCorrupt,
                 "%s %s: expected %" PRIu64 " bytes, found %" PRIu64 " (data_offsets [%" PRIu64
                 ", %" PRIu64 "])",
                 NameOf(view.dtype), ShapeText(view).c_str(), expected, *end - *begin, *begin,
                 *end);
  }
  view.bytes = data.subspan(static_cast<size_t>(*begin), static_cast<size_t>(expected));
  return Status();
}

Result<TensorView> ParseEntry(const Json& entry, std::span<const std::byte> data) {
  const JsonObject* fields = entry.object();
  if (fields == nullptr) {
    return Error(Code::kCorrupt, "expected an object, found %s", KindOf(entry));
  }
  for (const JsonMember& field : *fields) {
    // A field we do not know may change what the bytes mean, so it is not skipped.
    if (field.first != "dtype" && field.first != "shape" && field.first != "data_offsets") {
      return Error(Code::kCorrupt, "expected dtype, shape and data_offsets, found %s",
                   Quoted(field.first).c_str());
    }
  }
  for (const char* needed : {"dtype", "shape", "data_offsets"}) {
    if (entry.Find(needed) == nullptr) return Error(Code::kCorrupt, "%s is missing", needed);
  }
  TensorView view;
  HEARTH_ASSIGN(view.dtype, ParseDType(*entry.Find("dtype")));
  HEARTH_TRY(ParseShape(*entry.Find("shape"), view));
  HEARTH_TRY(ParseOffsets(*entry.Find("data_offsets"), data, view));
  return view;
}

// `__metadata__` says nothing that Hearth needs; it is checked and dropped.
Status CheckMetadata(const Json& metadata) {
  const JsonObject* pairs = metadata.object();
  if (pairs == nullptr) {
    return Error(Code::kCorrupt, "__metadata__: expected an object, found %s", KindOf(metadata));
  }
  for (const JsonMember& pair : *pairs) {
    if (pair.second.string() == nullptr) {
      return Error(Code::kCorrupt, "__metadata__: %s: expected a string, found %s",
                   Quoted(pair.first).c_str(), KindOf(pair.second));
    }
  }
  return Status();
}

// Holes and overlaps are refused both: bytes that no tensor owns are a place to hide things in,
// bytes that two own are a sign that offsets were made up.
Status CheckCoverage(const std::vector<SafetensorsTensor>& tensors,
                     std::span<const std::byte> data) {
  size_t covered = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    const auto begin = static_cast<size_t>(tensor.view.bytes.data() - data.data());
    if (begin < covered) {
      return Error(Code::kCorrupt,
                   "tensor %s: begins at %zu of the data, inside the tensor that ends at %zu",
                   Quoted(tensor.name).c_str(), begin, covered);
    }
    if (begin > covered) {
      return Error(Code::kCorrupt, "tensor %s: begins at %zu of the data, a hole of %zu bytes",
                   Quoted(tensor.name).c_str(), begin, begin - covered);
    }
    covered = begin + tensor.view.bytes.size();
  }
  if (covered != data.size()) {
    return Error(Code::kCorrupt, "expected %zu bytes of data, found %zu", covered, data.size());
  }
  return Status();
}

Result<Json> ParseHeader(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.empty() || text.front() != '{') {
    return Error(Code::kCorrupt, "header: expected '{', found %s",
                 text.empty() ? "nothing" : Quoted(text.substr(0, 1)).c_str());
  }
  JsonLimits limits;
  limits.max_bytes = kMaxSafetensorsHeaderBytes;
  limits.max_depth = 3;  // header, entry, shape
  // The tightest sound header, {"":{"dtype":"I8","shape":[1,1,1,1],"data_offsets":[0,1]}, spends
  // more than 5 bytes on a value. A denser one is a list of nothings that would cost 40 times its
  // size as a tree.
  limits.max_values = text.size() / 4 + 8;
  auto header = ParseJson(text, limits);
  if (!header.ok()) {
    return Error(Code::kCorrupt, "header: %s", std::move(header).status().message().c_str());
  }
  return header;
}

bool LiesBefore(const SafetensorsTensor& a, const SafetensorsTensor& b) {
  const auto key = [](const SafetensorsTensor& tensor) {
    const std::byte* begin = tensor.view.bytes.data();
    return std::make_tuple(begin, begin + tensor.view.bytes.size(), std::string_view(tensor.name));
  };
  return key(a) < key(b);
}

}  // namespace

Result<Safetensors> ParseSafetensors(std::span<const std::byte> file) {
  ByteReader reader(file);
  HEARTH_ASSIGN(const uint64_t header_bytes, reader.U64("header length"));
  HEARTH_ASSIGN(const auto text, reader.Bytes(header_bytes, "header"));
  if (header_bytes > kMaxSafetensorsHeaderBytes) {
    return Error(Code::kUnsupported, "header: %" PRIu64 " bytes, the limit is %" PRIu64,
                 header_bytes, kMaxSafetensorsHeaderBytes);
  }
  const std::span<const std::byte> data = file.subspan(reader.position());
  HEARTH_ASSIGN(Json header, ParseHeader(text));
  JsonObject& members = *header.object();
  const size_t num_tensors = members.size() - (header.Find(kMetadata) != nullptr ? 1 : 0);
  if (num_tensors > kMaxSafetensorsTensors) {
    return Error(Code::kUnsupported, "header: %zu tensors, the limit is %zu", num_tensors,
                 kMaxSafetensorsTensors);
  }
  Safetensors found;
  found.tensors.reserve(num_tensors);
  for (JsonMember& member : members) {
    if (member.first == kMetadata) {
      HEARTH_TRY(CheckMetadata(member.second));
      continue;
    }
    if (member.first.empty()) return Error(Code::kCorrupt, "header: a tensor without a name");
    auto view = ParseEntry(member.second, data);
    if (!view.ok()) return std::move(view).status().Within("tensor " + Quoted(member.first));
    found.tensors.push_back({std::move(member.first), *view});
  }
  std::sort(found.tensors.begin(), found.tensors.end(), LiesBefore);
  HEARTH_TRY(CheckCoverage(found.tensors, data));
  return found;
}

}  // namespace hearth
