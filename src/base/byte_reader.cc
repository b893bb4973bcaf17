// SPDX-License-Identifier: Apache-2.0
#include "base/byte_reader.h"

#include <bit>
#include <cinttypes>
#include <cstring>

#include "base/checked.h"

namespace hearth {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

template <class T>
Result<T> Number(ByteReader& reader, const char* what) {
  HEARTH_ASSIGN(const auto bytes, reader.Bytes(sizeof(T), what));
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

}  // namespace

Result<uint8_t> ByteReader::U8(const char* what) { return Number<uint8_t>(*this, what); }
Result<uint16_t> ByteReader::U16(const char* what) { return Number<uint16_t>(*this, what); }
Result<uint32_t> ByteReader::U32(const char* what) { return Number<uint32_t>(*this, what); }
Result<uint64_t> ByteReader::U64(const char* what) { return Number<uint64_t>(*this, what); }

Result<std::span<const std::byte>> ByteReader::Bytes(uint64_t count, const char* what) {
  if (count > remaining()) {
    return Error(Code::kCorrupt,
                 "%s at byte %zu: expected %" PRIu64
                 " bytes, only %zu are left; is the file complete?",
                 what, position_, count, remaining());
  }
  const auto found = bytes_.subspan(position_, static_cast<size_t>(count));
  position_ += found.size();
  return found;
}

Result<std::string_view> ByteReader::String(uint64_t max_bytes, const char* what) {
  const size_t start = position_;
  HEARTH_ASSIGN(const uint64_t length, U64(what));
  if (length > max_bytes) {
    return Error(Code::kCorrupt,
                 "%s at byte %zu: a string of %" PRIu64 " bytes, the limit is %" PRIu64, what,
                 start, length, max_bytes);
  }
  HEARTH_ASSIGN(const auto bytes, Bytes(length, what));
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status ByteReader::CanHold(uint64_t count, uint64_t min_bytes, const char* what) const {
  if ((Checked(count) * min_bytes).FitsIn(remaining())) return Status();
  return Error(Code::kCorrupt,
               "%s at byte %zu: %" PRIu64 " elements of at least %" PRIu64
               " bytes cannot fit in the %zu bytes left; is the file complete?",
               what, position_, count, min_bytes, remaining());
}

}  // namespace hearth
