// SPDX-License-Identifier: Apache-2.0
// Reading metadata values. The bytes were checked by ParseGguf, yet nothing here relies on it: a
// value that contradicts itself answers none.
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/byte_reader.h"
#include "weights/gguf.h"

namespace hearth {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

template <class T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// Calls `visit` with the number of that type at `at`; false when the type is no number.
template <class Visit>
bool VisitNumber(GgufType type, const std::byte* at, Visit visit) {
  switch (type) {
    case GgufType::kU8:
      return visit(Load<uint8_t>(at));
    case GgufType::kI8:
      return visit(Load<int8_t>(at));
    case GgufType::kU16:
      return visit(Load<uint16_t>(at));
    case GgufType::kI16:
      return visit(Load<int16_t>(at));
    case GgufType::kU32:
      return visit(Load<uint32_t>(at));
    case GgufType::kI32:
      return visit(Load<int32_t>(at));
    case GgufType::kU64:
      return visit(Load<uint64_t>(at));
    case GgufType::kI64:
      return visit(Load<int64_t>(at));
    case GgufType::kF32:
      return visit(Load<float>(at));
    case GgufType::kF64:
      return visit(Load<double>(at));
    case GgufType::kBool:
    case GgufType::kString:
    case GgufType::kArray:
      return false;
  }
  return false;
}

// One element as To. Integers only from integers that fit; doubles from every number.
template <class To>
bool Convert(GgufType type, const std::byte* at, To& out) {
  return VisitNumber(type, at, [&out](auto value) {
    using From = decltype(value);
    if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
      return false;
    } else {
      if constexpr (std::is_integral_v<To>) {
        if (!std::in_range<To>(value)) return false;
      }
      out = static_cast<To>(value);
      return true;
    }
  });
}

template <class To>
std::optional<To> ScalarAs(const GgufValue& value) {
  To out{};
  if (value.type == GgufType::kArray || value.bytes.size() != SizeOf(value.type) ||
      !Convert(value.type, value.bytes.data(), out)) {
    return std::nullopt;
  }
  return out;
}

// Whether the bytes are exactly `count` elements of a type of fixed size.
bool IsFixedArray(const GgufValue& value) {
  const size_t each = SizeOf(value.element);
  return value.type == GgufType::kArray && each != 0 && value.bytes.size() % each == 0 &&
         value.bytes.size() / each == value.count;
}

template <class To>
std::optional<std::vector<To>> ArrayAs(const GgufValue& value) {
  if (!IsFixedArray(value)) return std::nullopt;
  const size_t each = SizeOf(value.element);
  std::vector<To> out(static_cast<size_t>(value.count));
  for (size_t i = 0; i < out.size(); ++i) {
    if (!Convert(value.element, value.bytes.data() + i * each, out[i])) return std::nullopt;
  }
  // An empty array of another type would pass the loop.
  if (value.element == GgufType::kBool) return std::nullopt;
  if (std::is_integral_v<To> &&
      (value.element == GgufType::kF32 || value.element == GgufType::kF64)) {
    return std::nullopt;
  }
  return out;
}

}  // namespace

size_t SizeOf(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

const char* NameOf(GgufType type) {
  constexpr const char* kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                    "bool", "string", "array", "u64", "i64", "f64"};
  const auto index = static_cast<size_t>(type);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

std::optional<std::string_view> GgufValue::String() const {
  if (type != GgufType::kString) return std::nullopt;
  ByteReader reader(bytes);
  auto text = reader.String(bytes.size(), "string");
  if (!text.ok() || reader.remaining() != 0) return std::nullopt;
  return *text;
}

std::optional<uint64_t> GgufValue::Unsigned() const { return ScalarAs<uint64_t>(*this); }
std::optional<int64_t> GgufValue::Integer() const { return ScalarAs<int64_t>(*this); }
std::optional<double> GgufValue::Number() const { return ScalarAs<double>(*this); }

std::optional<bool> GgufValue::Bool() const {
  if (type != GgufType::kBool || bytes.size() != 1) return std::nullopt;
  return bytes[0] != std::byte{0};
}

std::optional<std::vector<std::string_view>> GgufValue::Strings() const {
  ByteReader reader(bytes);
  if (type != GgufType::kArray || element != GgufType::kString ||
      !reader.CanHold(count, sizeof(uint64_t), "strings").ok()) {
    return std::nullopt;
  }
  std::vector<std::string_view> out;
  out.reserve(static_cast<size_t>(count));
  for (uint64_t i = 0; i < count; ++i) {
    auto text = reader.String(bytes.size(), "string");
    if (!text.ok()) return std::nullopt;
    out.push_back(*text);
  }
  return out;
}

std::optional<std::vector<double>> GgufValue::Numbers() const { return ArrayAs<double>(*this); }
std::optional<std::vector<int64_t>> GgufValue::Integers() const { return ArrayAs<int64_t>(*this); }

std::optional<std::vector<bool>> GgufValue::Bools() const {
  if (element != GgufType::kBool || !IsFixedArray(*this)) return std::nullopt;
  std::vector<bool> out;
  out.reserve(bytes.size());
  for (const std::byte flag : bytes) out.push_back(flag != std::byte{0});
  return out;
}

const GgufValue* GgufMetadata::Find(std::string_view key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

bool GgufMetadata::Add(std::string_view key, const GgufValue& value) {
  if (!index_.emplace(key, entries_.size()).second) return false;
  entries_.emplace_back(key, value);
  return true;
}

}  // namespace hearth
