// SPDX-License-Identifier: Apache-2.0
// A subscriber to KV events, written from the published formats of vLLM and SGLang: MessagePack
// read back, and the set of blocks that the events leave.
#pragma once
#include <bit>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/ids.h"
namespace hearth::testing {

// A value of MessagePack, as far as events have it.
struct Packed {
  enum class Kind { kNil, kNumber, kDouble, kText, kArray, kMap } kind = Kind::kNil;
  uint64_t number = 0;  // two's complement
  double real = 0;
  std::string text = {};
  std::vector<Packed> items = {};  // of a map: keys and values in turn
  // A field by its place in an array, or by its name in a map.
  const Packed& at(size_t place, const std::string& name) const {
    if (kind == Kind::kArray) return items.at(place);
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      if (items[i].text == name) return items[i + 1];
    }
    throw std::runtime_error("no field " + name);
  }
};

class PackedReader {
 public:
  explicit PackedReader(const std::string& bytes) : bytes_(bytes) {}
  Packed ReadAll() {
    Packed value = Read();
    if (at_ != bytes_.size()) throw std::runtime_error("bytes are left over");
    return value;
  }

 private:
  using Kind = Packed::Kind;
  uint64_t BigEndian(int num_bytes) {
    uint64_t value = 0;
    for (int i = 0; i < num_bytes; ++i) value = value << 8 | static_cast<uint8_t>(bytes_.at(at_++));
    return value;
  }
  static Packed Number(uint64_t number) { return {.kind = Kind::kNumber, .number = number}; }
  Packed Text(uint64_t size) {
    Packed text{.kind = Kind::kText, .text = bytes_.substr(at_, size)};
    at_ += size;
    return text;
  }
  Packed Items(Kind kind, uint64_t count) {
    Packed value{.kind = kind};
    for (uint64_t i = 0; i < count; ++i) value.items.push_back(Read());
    return value;
  }
  Packed Read() {
    const auto tag = static_cast<uint8_t>(BigEndian(1));
    if (tag < 0x80) return Number(tag);
    if (tag >= 0xe0) return Number(static_cast<uint64_t>(static_cast<int8_t>(tag)));
    if (tag < 0x90) return Items(Kind::kMap, 2 * (tag & 0xf));
    if (tag < 0xa0) return Items(Kind::kArray, tag & 0xf);
    if (tag < 0xc0) return Text(tag & 0x1f);
    switch (tag) {
      case 0xc0:
        return {};
      case 0xcb:
        return {.kind = Kind::kDouble, .real = std::bit_cast<double>(BigEndian(8))};
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf:
        return Number(BigEndian(1 << (tag - 0xcc)));
      case 0xd0:
        return Number(static_cast<uint64_t>(static_cast<int8_t>(BigEndian(1))));
      case 0xd1:
        return Number(static_cast<uint64_t>(static_cast<int16_t>(BigEndian(2))));
      case 0xd2:
        return Number(static_cast<uint64_t>(static_cast<int32_t>(BigEndian(4))));
      case 0xd3:
        return Number(BigEndian(8));
      case 0xd9:
        return Text(BigEndian(1));
      case 0xda:
        return Text(BigEndian(2));
      case 0xdc:
        return Items(Kind::kArray, BigEndian(2));
      case 0xdd:
        return Items(Kind::kArray, BigEndian(4));
      case 0xde:
        return Items(Kind::kMap, 2 * BigEndian(2));
      default:
        throw std::runtime_error("not MessagePack that events have");
    }
  }
  const std::string& bytes_;
  size_t at_ = 0;
};

// What a subscriber knows.
class EventReader {
 public:
  using Key = std::tuple<std::string, int, uint64_t>;     // medium, group, hash
  using Block = std::pair<uint64_t, std::vector<Token>>;  // parent's hash, or 0; tokens
  std::map<Key, Block> blocks;
  int num_cleared = 0;

  void Apply(const std::string& payload) {
    const Packed batch = PackedReader(payload).ReadAll();
    for (const Packed& event : batch.at(1, "events").items) {
      const std::string type = event.at(0, "type").text;
      if (type == "AllBlocksCleared") {
        blocks.clear();
        ++num_cleared;
      } else if (type == "BlockStored") {
        Store(event);
      } else if (type == "BlockRemoved") {
        const Packed& medium = event.at(2, "medium");
        for (const Packed& hash : event.at(1, "block_hashes").items) {
          blocks.erase({medium.text, GroupOf(event, 3), hash.number});
        }
      } else {
        throw std::runtime_error("unknown event " + type);
      }
    }
  }

 private:
  // SGLang's events have no group.
  static int GroupOf(const Packed& event, size_t place) {
    if (event.kind == Packed::Kind::kArray && event.items.size() <= place) return 0;
    return static_cast<int>(event.at(place, "group_idx").number);
  }
  void Store(const Packed& event) {
    const std::vector<Packed>& hashes = event.at(1, "block_hashes").items;
    const std::vector<Packed>& tokens = event.at(3, "token_ids").items;
    const uint64_t size = event.at(4, "block_size").number;
    if (tokens.size() != hashes.size() * size) throw std::runtime_error("tokens do not fit");
    uint64_t parent = event.at(2, "parent_block_hash").number;
    for (size_t i = 0; i < hashes.size(); ++i) {
      Block block{parent, {}};
      for (size_t j = i * size; j < (i + 1) * size; ++j) {
        block.second.push_back(static_cast<Token>(tokens[j].number));
      }
      parent = hashes[i].number;
      blocks[{event.at(6, "medium").text, GroupOf(event, 9), parent}] = std::move(block);
    }
  }
};

}  // namespace hearth::testing
