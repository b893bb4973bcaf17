// SPDX-License-Identifier: Apache-2.0
// The part of MessagePack that events need: whole numbers, text, doubles, arrays and maps, each in
// its shortest form, as msgspec writes them.
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
namespace hearth {

class MsgpackWriter {
 public:
  void Nil() { Byte(0xc0); }
  void Double(double value) {
    Byte(0xcb);
    BigEndian(std::bit_cast<uint64_t>(value), 8);
  }
  void Unsigned(uint64_t value) {
    if (value < 0x80) return Byte(static_cast<uint8_t>(value));
    Sized(value, {0xcc, 0xcd, 0xce, 0xcf});
  }
  void Signed(int64_t value) {
    if (value >= 0) return Unsigned(static_cast<uint64_t>(value));
    const auto bits = static_cast<uint64_t>(value);
    if (value >= -32) return Byte(static_cast<uint8_t>(bits));
    if (value >= INT8_MIN) return Tagged(0xd0, bits, 1);
    if (value >= INT16_MIN) return Tagged(0xd1, bits, 2);
    if (value >= INT32_MIN) return Tagged(0xd2, bits, 4);
    Tagged(0xd3, bits, 8);
  }
  void Text(std::string_view text) {
    if (text.size() < 32) {
      Byte(static_cast<uint8_t>(0xa0 | text.size()));
    } else {
      Sized(text.size(), {0xd9, 0xda, 0xdb, 0});
    }
    bytes_.append(text);
  }
  // `count` values follow.
  void Array(size_t count) { Container(count, 0x90, 0xdc); }
  // `count` pairs of values follow.
  void Map(size_t count) { Container(count, 0x80, 0xde); }

  std::string Take() { return std::move(bytes_); }

 private:
  struct Tags {
    uint8_t one, two, four, eight;
  };
  void Byte(uint8_t byte) { bytes_.push_back(static_cast<char>(byte)); }
  void BigEndian(uint64_t value, int num_bytes) {
    for (int i = num_bytes - 1; i >= 0; --i) Byte(static_cast<uint8_t>(value >> (8 * i)));
  }
  void Tagged(uint8_t tag, uint64_t value, int num_bytes) {
    Byte(tag);
    BigEndian(value, num_bytes);
  }
  void Sized(uint64_t value, const Tags& tags) {
    if (value <= 0xff) return Tagged(tags.one, value, 1);
    if (value <= 0xffff) return Tagged(tags.two, value, 2);
    if (value <= 0xffffffff) return Tagged(tags.four, value, 4);
    Tagged(tags.eight, value, 8);
  }
  void Container(size_t count, uint8_t few, uint8_t many) {
    if (count < 16) return Byte(static_cast<uint8_t>(few | count));
    if (count <= 0xffff) return Tagged(many, count, 2);
    Tagged(static_cast<uint8_t>(many + 1), count, 4);
  }

  std::string bytes_;
};

}  // namespace hearth
