// SPDX-License-Identifier: Apache-2.0
// What a file may make us allocate: never more than a small multiple of its header, whatever it
// says about itself.
#include <gtest/gtest.h>

#include <string>

#include "testing/allocations.h"
#include "testing/safetensors_builder.h"
#include "weights/safetensors.h"

namespace hearth {
namespace {

using testing::AllocationMeter;
using testing::Allocations;
using testing::AsBytes;
using testing::Concat;
using testing::LittleEndian64;
using testing::SafetensorsBuilder;
using testing::SafetensorsFile;

// The worst header is a list of the smallest values the density limit lets through, one in 4 bytes:
// 40 bytes of tree each, at most doubled while the list grows, make 20; all the lists on the way
// there together make 40.
constexpr size_t kLargestPerByte = 24;
constexpr size_t kTotalPerByte = 48;
constexpr size_t kConstant = 16384;  // messages, the parser's own state

void ExpectFrugal(const std::string& file, size_t header_bytes, const char* what) {
  Allocations used;
  {
    const AllocationMeter meter;
    auto parsed = ParseSafetensors(AsBytes(file));
    used = meter.Read();
  }
  EXPECT_LE(used.largest, kLargestPerByte * header_bytes + kConstant) << what;
  EXPECT_LE(used.total, kTotalPerByte * header_bytes + kConstant) << what;
}
void ExpectFrugal(const std::string& header, const char* what) {
  ExpectFrugal(SafetensorsFile(header, ""), header.size(), what);
}

// `piece` again and again up to about `bytes`, between `before` and `after`.
std::string Repeat(std::string_view before, std::string_view piece, std::string_view after,
                   size_t bytes) {
  std::string text(before);
  while (text.size() < bytes) text += piece;
  return text.append(after);
}

TEST(SafetensorsBudgetTest, TheMeterIsConnected) {
  const AllocationMeter meter;
  const std::string text(5000, 'x');
  EXPECT_GE(meter.Read().largest, text.size());
}

TEST(SafetensorsBudgetTest, LengthsAndShapesAreNotBelieved) {
  for (int bit = 0; bit < 64; ++bit) {
    ExpectFrugal(Concat(LittleEndian64(uint64_t{1} << bit), "{}"), 2, "header length");
    const std::string huge = std::to_string(uint64_t{1} << bit);
    ExpectFrugal(Concat("{", testing::SafetensorsEntry("t", "F64", huge, "0,8"), "}"), "shape");
    ExpectFrugal(Concat("{", testing::SafetensorsEntry("t", "U8", "1", Concat("0,", huge)), "}"),
                 "offset");
  }
}

TEST(SafetensorsBudgetTest, SoundHeadersOfAnySizeAreCheap) {
  for (const size_t count : {1, 100, 10000, 65536}) {
    SafetensorsBuilder builder;
    for (size_t i = 0; i < count; ++i) builder.Add(std::to_string(i), "U8", {0}, "");
    const std::string file = builder.Build();
    ASSERT_TRUE(ParseSafetensors(AsBytes(file)).ok());
    ExpectFrugal(file, file.size() - 8, "sound");
  }
}

TEST(SafetensorsBudgetTest, HeadersFullOfNothingAreCheap) {
  for (const size_t bytes : {size_t{1000}, size_t{100000}, size_t{4} << 20}) {
    ExpectFrugal(Repeat("{\"a\":[", "0,", "0]}", bytes), "zeros");
    ExpectFrugal(Repeat("{\"a\":[", "   0,", "0]}", bytes), "zeros at the limit of density");
    ExpectFrugal(Repeat("{\"a\":[", "[],", "0]}", bytes), "empty arrays");
    ExpectFrugal(Repeat("{\"a\":[", "  [],", "0]}", bytes), "empty arrays at the limit");
    ExpectFrugal(Repeat("{\"a\":[", "\"\",", "0]}", bytes), "empty strings");
    ExpectFrugal(Repeat("{\"a\":", "[", "", bytes), "depth");
    ExpectFrugal(Repeat("{\"", "x", "\":0}", bytes), "one long name");
    ExpectFrugal(Repeat("{\"__metadata__\":{\"a\":\"", "x", "\"}}", bytes), "one long string");
    ExpectFrugal(Repeat("{\"a\":", "1", "}", bytes), "one long number");
    ExpectFrugal(Repeat("{", " ", "}", bytes), "spaces");
  }
}

TEST(SafetensorsBudgetTest, ManySmallMembersAreCheap) {
  for (const int count : {100, 10000, 200000}) {
    std::string members = "{", metadata = "{\"__metadata__\":{";
    for (int i = 0; i < count; ++i) {
      members.append(Concat("\"", std::to_string(i), "\":0,"));
      metadata.append(Concat("\"", std::to_string(i), "\":\"\","));
    }
    ExpectFrugal(members + "\"x\":0}", "members that are no tensors");
    ExpectFrugal(metadata + "\"x\":\"\"}}", "metadata");
  }
}

}  // namespace
}  // namespace hearth
