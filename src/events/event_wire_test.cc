// SPDX-License-Identifier: Apache-2.0
#include "events/event_wire.h"

#include <gtest/gtest.h>

#include "events/msgpack_writer.h"
#include "testing/kv_driver.h"

namespace hearth {
namespace {

using testing::SmallLayout;

std::string Hex(const std::string& bytes) {
  std::string hex;
  for (const char byte : bytes) hex += Printf("%02x", static_cast<uint8_t>(byte));
  return hex;
}

// Each as the specification of MessagePack has it, at the edges between its sizes.
TEST(MsgpackWriter, TakesTheShortestForm) {
  const auto number = [](uint64_t value) {
    MsgpackWriter out;
    out.Unsigned(value);
    return Hex(out.Take());
  };
  EXPECT_EQ(number(127), "7f");
  EXPECT_EQ(number(128), "cc80");
  EXPECT_EQ(number(256), "cd0100");
  EXPECT_EQ(number(65536), "ce00010000");
  EXPECT_EQ(number(uint64_t{1} << 32), "cf0000000100000000");
  const auto negative = [](int64_t value) {
    MsgpackWriter out;
    out.Signed(value);
    return Hex(out.Take());
  };
  EXPECT_EQ(negative(-32), "e0");
  EXPECT_EQ(negative(-33), "d0df");
  EXPECT_EQ(negative(-129), "d1ff7f");
  EXPECT_EQ(negative(-32769), "d2ffff7fff");
  EXPECT_EQ(negative(INT64_MIN), "d38000000000000000");
  MsgpackWriter out;
  out.Array(15), out.Array(16), out.Array(65536), out.Map(15), out.Map(16);
  out.Text("abc"), out.Text(std::string(32, 'x')), out.Nil(), out.Double(1.5);
  EXPECT_EQ(Hex(out.Take()), "9fdc0010dd000100008fde0010a3616263d920" + Hex(std::string(32, 'x')) +
                                 "c0cb3ff8000000000000");
}

BlockEvents Example() {
  BlockEvents events;
  events.events = {{true, BlockPlace::kMemory, 0, {1, 1}, {}},
                   {true, BlockPlace::kMemory, 1, {1, 1}, {}},
                   {true, BlockPlace::kMemory, 0, {2, 2}, {1, 1}},
                   {false, BlockPlace::kDisk, 1, {3, 3}, {}}};
  events.tokens = std::vector<Token>{7, 8, 7, 8, 9, 300};
  return events;
}

KvLayout TwoTokens() {
  KvLayout layout = SmallLayout(4, 4, 32);
  layout.block_tokens = 2;
  return layout;
}

std::string HashBytes(const WireOptions& options, uint64_t key) {
  MsgpackWriter out;
  out.Unsigned(WireHash(options, {key, key}));
  return Hex(out.Take());
}

// Written out by hand from vLLM's classes: [ts, events, rank] with a class name before the fields.
TEST(EventWire, IsVllmsForm) {
  const WireOptions options{.hash_seed = 5};
  const std::string one = HashBytes(options, 1), two = HashBytes(options, 2),
                    three = HashBytes(options, 3);
  const std::string stored = "ab" + Hex("BlockStored"), removed = "ac" + Hex("BlockRemoved");
  const std::string full = "ae" + Hex("full_attention"), window = "ae" + Hex("sliding_window");
  const std::string gpu = "a3" + Hex("GPU"), disk = "a4" + Hex("DISK");
  EXPECT_EQ(Hex(EncodeEvents(options, TwoTokens(), Example(), 1.5)),
            "93cb3ff800000000000093"
            // two blocks of one chain in the group that sees everything
            "9c" +
                stored + "92" + one + two +
                "c0"
                "94"
                "0708"
                "09cd012c"
                "02"
                "c0" +
                gpu +
                "c0c0"
                "00" +
                full +
                "c0"
                // one in the group with a window of 32
                "9c" +
                stored + "91" + one +
                "c0"
                "92"
                "0708"
                "02"
                "c0" +
                gpu +
                "c0c0"
                "01" +
                window +
                "20"
                "94" +
                removed + "91" + three + disk +
                "01"
                "00");
}

TEST(EventWire, IsSglangsForm) {
  const WireOptions options{.form = EventForm::kSglang, .hash_seed = 5};
  BlockEvents events;
  events.is_all = true;
  events.events = {{true, BlockPlace::kShared, 0, {1, 1}, {}}};
  events.tokens = {7, 8};
  MsgpackWriter hash;
  hash.Signed(static_cast<int64_t>(WireHash(options, {1, 1})));
  EXPECT_EQ(Hex(EncodeEvents(options, TwoTokens(), events, 1.5)),
            "93cb3ff800000000000092"
            "91b0" +
                Hex("AllBlocksCleared") + "97ab" + Hex("BlockStored") + "91" + Hex(hash.Take()) +
                "c0"
                "92"
                "0708"
                "02"
                "c0"
                "a8" +
                Hex("EXTERNAL") + "00");
}

TEST(EventWire, IsVllmsNewerForm) {
  const WireOptions options{.form = EventForm::kVllmMaps, .hash_seed = 5};
  BlockEvents events;
  events.events = {{false, BlockPlace::kMemory, 0, {1, 1}, {}}};
  const auto text = [](const std::string& word) {
    MsgpackWriter out;
    out.Text(word);
    return Hex(out.Take());
  };
  EXPECT_EQ(Hex(EncodeEvents(options, TwoTokens(), events, 1.5)),
            "83" + text("ts") + "cb3ff8000000000000" + text("events") +
                "91"
                "84" +
                text("type") + text("BlockRemoved") + text("block_hashes") + "91" +
                HashBytes(options, 1) + text("medium") + text("GPU") + text("group_idx") + "00" +
                text("data_parallel_rank") + "00");
}

TEST(EventWire, HashesDoNotTellTheKey) {
  const BlockKey key{1, 2};
  EXPECT_NE(WireHash({.hash_seed = 1}, key), WireHash({.hash_seed = 2}, key));
  EXPECT_NE(WireHash({.hash_seed = 1}, key), key.lo);
  EXPECT_NE(WireHash({.hash_seed = 1}, {1, 2}), WireHash({.hash_seed = 1}, {2, 2}));
}

}  // namespace
}  // namespace hearth
