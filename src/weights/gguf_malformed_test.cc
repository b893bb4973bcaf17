// SPDX-License-Identifier: Apache-2.0
// One named GGUF file per check of the parser, each broken in one place. All must be refused with
// a message that names the place and the values, and without memory out of proportion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/allocations.h"
#include "testing/gguf_builder.h"
#include "weights/gguf.h"

namespace hearth {
namespace {

using testing::AllocationMeter;
using testing::Allocations;
using testing::AsBytes;
using testing::GgufBuilder;
using ::testing::HasSubstr;
using testing::Raw;
using testing::RawArray;
using testing::RawString;

constexpr uint64_t kHuge = uint64_t{1} << 62;
constexpr uint64_t kMax = ~uint64_t{0};

// A small file with a bit of everything: 5 keys, 3 tensors of 68, 128 and 20 bytes.
GgufBuilder WellFormed() {
  GgufBuilder builder;
  builder.AddString("general.architecture", "llama");
  builder.Add<uint32_t>("llama.context_length", GgufType::kU32, 2048);
  builder.Add<uint8_t>("flag", GgufType::kBool, 1);
  builder.AddStrings("tokens", {"<s>", "</s>", "a"});
  builder.AddRaw("types", GgufType::kArray,
                 RawArray(GgufType::kI32, 2, Raw<int32_t>(1) + Raw<int32_t>(3)));
  builder.AddTensor("q", {32, 2}, 8).AddTensor("w", {8, 4}).AddTensor("bias", {5});
  return builder;
}

// What ParseGguf may ask `new` for on a file of that size: an entry of an index costs about nine
// times the 14 bytes of the smallest key, twice that while a vector grows. The constant is for
// messages.
constexpr uint64_t kBudgetPerByte = 16;
constexpr uint64_t kBudgetConstant = 4096;

Status ParseWithinBudget(const std::string& bytes) {
  const AllocationMeter meter;
  const Status status = ParseGguf(AsBytes(bytes)).status();
  const Allocations used = meter.Read();
  EXPECT_LE(used.largest, kBudgetPerByte / 2 * bytes.size() + kBudgetConstant);
  EXPECT_LE(used.total, kBudgetPerByte * bytes.size() + kBudgetConstant);
  return status;
}

struct Case {
  const char* name;
  void (*harm)(GgufBuilder&);
  Code code;
  const char* message;  // a part of it
};
void PrintTo(const Case& broken, std::ostream* out) { *out << broken.name; }
std::string NameOfCase(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

class MalformedGguf : public ::testing::TestWithParam<Case> {};

TEST_P(MalformedGguf, IsRefused) {
  GgufBuilder builder = WellFormed();
  GetParam().harm(builder);
  const Status status = ParseWithinBudget(builder.Build());
  EXPECT_EQ(status.code(), GetParam().code) << status.message();
  EXPECT_THAT(status.message(), HasSubstr(GetParam().message));
}

const Case kHeadCases[] = {
    {"BadMagic", [](GgufBuilder& b) { b.magic = "GGML"; }, Code::kCorrupt,
     "not a GGUF file: expected \"GGUF\" at byte 0, found \"GGML\""},
    {"SwappedMagic", [](GgufBuilder& b) { b.magic = "FUGG"; }, Code::kCorrupt, "(byte-swapped)"},
    {"MagicOfControlBytes", [](GgufBuilder& b) { b.magic = "\x1b[2J"; }, Code::kCorrupt,
     "found \"\\x1b[2J\""},
    {"Version0", [](GgufBuilder& b) { b.version = 0; }, Code::kUnsupported, "GGUF version 0 is"},
    {"Version1", [](GgufBuilder& b) { b.version = 1; }, Code::kUnsupported, "GGUF version 1 is"},
    {"Version4", [](GgufBuilder& b) { b.version = 4; }, Code::kUnsupported,
     "GGUF version 4 is not supported; supported: 2 and 3"},
    {"VersionMax", [](GgufBuilder& b) { b.version = ~0u; }, Code::kUnsupported,
     "GGUF version 4294967295 is"},
    {"BigEndian", [](GgufBuilder& b) { b.version = 0x03000000; }, Code::kUnsupported,
     "a big-endian GGUF file (version reads 0x03000000)"},
    {"TensorCountHuge", [](GgufBuilder& b) { b.num_tensors = kHuge; }, Code::kCorrupt,
     "tensor count at byte 16: 4611686018427387904 elements of at least 33 bytes cannot fit"},
    {"TensorCountNegative", [](GgufBuilder& b) { b.num_tensors = kMax; }, Code::kCorrupt,
     "tensor count at byte 16: 18446744073709551615 elements"},
    {"TensorCountThatWrapsToZeroBytes", [](GgufBuilder& b) { b.num_tensors = uint64_t{1} << 63; },
     Code::kCorrupt, "tensor count at byte 16: 9223372036854775808 elements"},
    {"TensorCountAboveTheLimit",
     [](GgufBuilder& b) {
       b.num_tensors = 65537;
       b.tail.assign(33 * 65537, '\0');
     },
     Code::kUnsupported, "tensor count is 65537, the limit is 65536"},
    {"TensorCountWhenTheKeysTookAllBytes",
     [](GgufBuilder& b) {
       b.tensors.clear();
       b.num_tensors = 1;
       b.num_cut = b.Build().size() - b.Header().size();
     },
     Code::kCorrupt, "tensor list at byte 221: 1 elements of at least 33 bytes cannot fit"},
    {"KeyCountHuge", [](GgufBuilder& b) { b.num_keys = kHuge; }, Code::kCorrupt,
     "key count at byte 24: 4611686018427387904 elements of at least 14 bytes cannot fit"},
    {"KeyCountNegative", [](GgufBuilder& b) { b.num_keys = kMax; }, Code::kCorrupt,
     "key count at byte 24: 18446744073709551615 elements"},
    {"KeyCountAboveTheLimit",
     [](GgufBuilder& b) {
       b.num_keys = 65537;
       b.tail.assign(14 * 65537, '\0');
     },
     Code::kUnsupported, "key count is 65537, the limit is 65536"},
    {"KeyCountOneTooMany",
     [](GgufBuilder& b) {
       b.tensors.clear();
       b.num_keys = 6;
       b.num_cut = b.Build().size() - b.Header().size();
     },
     Code::kCorrupt, "key 6 of 6: key at byte 221: expected 8 bytes, only 0 are left"},
};
INSTANTIATE_TEST_SUITE_P(Head, MalformedGguf, ::testing::ValuesIn(kHeadCases), NameOfCase);

const Case kKeyCases[] = {
    {"LengthHuge", [](GgufBuilder& b) { b.keys[0].name_length = kHuge; }, Code::kCorrupt,
     "key 1 of 5: key at byte 24: a string of 4611686018427387904 bytes, the limit is 65535"},
    {"LengthPastTheEnd", [](GgufBuilder& b) { b.keys[0].name_length = 60000; }, Code::kCorrupt,
     "key 1 of 5: key at byte 32: expected 60000 bytes, only"},
    {"Empty", [](GgufBuilder& b) { b.keys[1].name = ""; }, Code::kCorrupt,
     "key 2 of 5: the name is empty"},
    {"ControlCharacter", [](GgufBuilder& b) { b.keys[2].name = "fl\nag"; }, Code::kCorrupt,
     "key 3 of 5: name \"fl\\x0aag\": byte 2 is not printable UTF-8"},
    {"Delete", [](GgufBuilder& b) { b.keys[2].name = "\x7f"; }, Code::kCorrupt,
     "byte 0 is not printable"},
    {"LatinOne", [](GgufBuilder& b) { b.keys[2].name = "gr\xfc\x6e"; }, Code::kCorrupt,
     "byte 2 is not printable UTF-8"},
    {"CutSequence", [](GgufBuilder& b) { b.keys[2].name = "a\xe2\x82"; }, Code::kCorrupt,
     "byte 1 is not printable UTF-8"},
    {"OverlongSlash", [](GgufBuilder& b) { b.keys[2].name = "\xc0\xaf"; }, Code::kCorrupt,
     "byte 0 is not printable UTF-8"},
    {"OverlongOfThree", [](GgufBuilder& b) { b.keys[2].name = "\xe0\x9f\xbf"; }, Code::kCorrupt,
     "byte 0 is not printable UTF-8"},
    {"Surrogate", [](GgufBuilder& b) { b.keys[2].name = "\xed\xa0\x80"; }, Code::kCorrupt,
     "byte 0 is not printable UTF-8"},
    {"BeyondUnicode", [](GgufBuilder& b) { b.keys[2].name = "\xf4\x90\x80\x80"; }, Code::kCorrupt,
     "byte 0 is not printable UTF-8"},
    {"ControlOfTwoBytes", [](GgufBuilder& b) { b.keys[2].name = "\xc2\x85"; }, Code::kCorrupt,
     "byte 0 is not printable UTF-8"},
    {"Twice", [](GgufBuilder& b) { b.keys[4].name = b.keys[0].name; }, Code::kCorrupt,
     "key 5 of 5: \"general.architecture\" appears twice"},
    {"TypeUnknown", [](GgufBuilder& b) { b.keys[1].type = 13; }, Code::kCorrupt,
     "key 2 of 5: \"llama.context_length\": value type at byte 97: 13 is not a value type"},
    {"TypeNegative", [](GgufBuilder& b) { b.keys[1].type = ~0u; }, Code::kCorrupt,
     "4294967295 is not a value type; expected 0 to 12"},
    {"BoolOfTwo", [](GgufBuilder& b) { b.keys[2].value = "\x02"; }, Code::kCorrupt,
     "\"flag\": bool at byte 121: expected 0 or 1, found 2"},
    {"BoolOf255", [](GgufBuilder& b) { b.keys[2].value = "\xff"; }, Code::kCorrupt, "found 255"},
    {"StringLengthHuge", [](GgufBuilder& b) { b.keys[0].value = Raw(kHuge); }, Code::kCorrupt,
     "\"general.architecture\": string at byte 56: a string of 4611686018427387904 bytes, the "
     "limit is 33554432"},
    {"StringPastTheEnd", [](GgufBuilder& b) { b.keys[0].value = Raw(uint64_t{1} << 20); },
     Code::kCorrupt, "string at byte 64: expected 1048576 bytes, only"},
    {"HeaderTooLong",
     [](GgufBuilder& b) {
       b.AddString("one", std::string(32u << 20, 'x'))
           .AddString("two", std::string(32u << 20, 'x'));
     },
     Code::kUnsupported, "key 7 of 7: the header is longer than 67108864 bytes"},
};
INSTANTIATE_TEST_SUITE_P(Key, MalformedGguf, ::testing::ValuesIn(kKeyCases), NameOfCase);

const Case kArrayCases[] = {
    {"Nested", [](GgufBuilder& b) { b.keys[3].value = RawArray(GgufType::kArray, 1, ""); },
     Code::kUnsupported, "key 4 of 5: \"tokens\": array of arrays at byte 144 is not supported"},
    {"ElementTypeUnknown",
     [](GgufBuilder& b) { b.keys[3].value = RawArray(static_cast<GgufType>(13), 1, ""); },
     Code::kCorrupt, "\"tokens\": element type at byte 140: 13 is not a value type"},
    {"CountHugeOfBytes",
     [](GgufBuilder& b) { b.keys[3].value = RawArray(GgufType::kU8, kHuge, ""); }, Code::kCorrupt,
     "array at byte 152: 4611686018427387904 elements of at least 1 bytes cannot fit"},
    {"CountThatWrapsToZeroBytes",
     [](GgufBuilder& b) { b.keys[3].value = RawArray(GgufType::kF64, uint64_t{1} << 61, ""); },
     Code::kCorrupt, "2305843009213693952 elements of at least 8 bytes cannot fit"},
    {"CountNegative", [](GgufBuilder& b) { b.keys[3].value = RawArray(GgufType::kI32, kMax, ""); },
     Code::kCorrupt, "18446744073709551615 elements of at least 4 bytes cannot fit"},
    {"CountHugeOfStrings",
     [](GgufBuilder& b) { b.keys[3].value = RawArray(GgufType::kString, kHuge, ""); },
     Code::kCorrupt, "4611686018427387904 elements of at least 8 bytes cannot fit"},
    {"CountOfStringsThatWrapsToZeroBytes",
     [](GgufBuilder& b) { b.keys[3].value = RawArray(GgufType::kString, uint64_t{1} << 61, ""); },
     Code::kCorrupt, "2305843009213693952 elements of at least 8 bytes cannot fit"},
    {"OneElementTooMany",
     [](GgufBuilder& b) {
       b.tensors.clear();
       b.keys[4].value = RawArray(GgufType::kI32, 3, Raw(int64_t{0}));
       b.num_cut = b.Build().size() - b.Header().size();
     },
     Code::kCorrupt,
     "\"types\": array at byte 213: 3 elements of at least 4 bytes cannot fit in the 8"},
    {"StringTooLong",
     [](GgufBuilder& b) {
       b.keys[3].value = RawArray(GgufType::kString, 2, RawString("a") + Raw((1ull << 20) + 1));
     },
     Code::kCorrupt,
     "\"tokens\": element 1: string at byte 161: a string of 1048577 bytes, the limit"},
    {"StringPastTheEnd",
     [](GgufBuilder& b) { b.keys[3].value = RawArray(GgufType::kString, 1, Raw(uint64_t{9999})); },
     Code::kCorrupt, "element 0: string at byte 160: expected 9999 bytes, only"},
    {"StringLengthMax",
     [](GgufBuilder& b) { b.keys[3].value = RawArray(GgufType::kString, 1, Raw(kMax)); },
     Code::kCorrupt, "element 0: string at byte 152: a string of 18446744073709551615 bytes"},
    {"BoolOfThree",
     [](GgufBuilder& b) {
       b.keys[3].value = RawArray(GgufType::kBool, 3, std::string("\0\1\3", 3));
     },
     Code::kCorrupt, "\"tokens\": element 2: expected a bool of 0 or 1, found 3"},
    {"HeaderTooLong",
     [](GgufBuilder& b) {
       std::string elements;
       for (int i = 0; i < 65; ++i) elements += RawString(std::string(1u << 20, 'x'));
       b.keys[3].value = RawArray(GgufType::kString, 65, elements);
     },
     Code::kUnsupported, "\"tokens\": the header is longer than 67108864 bytes"},
};
INSTANTIATE_TEST_SUITE_P(Array, MalformedGguf, ::testing::ValuesIn(kArrayCases), NameOfCase);

void Align(GgufBuilder& builder, uint32_t alignment) {
  builder.Add("general.alignment", GgufType::kU32, alignment);
}
const Case kAlignmentCases[] = {
    {"Zero", [](GgufBuilder& b) { Align(b, 0); }, Code::kCorrupt,
     "general.alignment: expected a power of two from 8 to 4096, found 0"},
    {"One", [](GgufBuilder& b) { Align(b, 1); }, Code::kCorrupt, "to 4096, found 1"},
    {"Three", [](GgufBuilder& b) { Align(b, 3); }, Code::kCorrupt, "to 4096, found 3"},
    {"Four", [](GgufBuilder& b) { Align(b, 4); }, Code::kCorrupt, "to 4096, found 4"},
    {"FortyEight", [](GgufBuilder& b) { Align(b, 48); }, Code::kCorrupt, "to 4096, found 48"},
    {"EightThousand", [](GgufBuilder& b) { Align(b, 8192); }, Code::kCorrupt, "found 8192"},
    {"TwoBillion", [](GgufBuilder& b) { Align(b, 1u << 31); }, Code::kCorrupt, "found 2147483648"},
    {"Negative", [](GgufBuilder& b) { b.Add("general.alignment", GgufType::kI32, -32); },
     Code::kCorrupt, "general.alignment: expected an unsigned integer, found i32"},
    {"Text", [](GgufBuilder& b) { b.AddString("general.alignment", "32"); }, Code::kCorrupt,
     "general.alignment: expected an unsigned integer, found string"},
    {"Float", [](GgufBuilder& b) { b.Add("general.alignment", GgufType::kF32, 32.0f); },
     Code::kCorrupt, "found f32"},
};
INSTANTIATE_TEST_SUITE_P(Alignment, MalformedGguf, ::testing::ValuesIn(kAlignmentCases),
                         NameOfCase);

const Case kTensorCases[] = {
    {"NameEmpty", [](GgufBuilder& b) { b.tensors[1].name = ""; }, Code::kCorrupt,
     "tensor 2 of 3: the name is empty"},
    {"NameOf256", [](GgufBuilder& b) { b.tensors[1].name.assign(256, 'n'); }, Code::kCorrupt,
     "tensor 2 of 3: name at byte 262: a string of 256 bytes, the limit is 255"},
    {"NameLengthHuge", [](GgufBuilder& b) { b.tensors[0].name_length = kHuge; }, Code::kCorrupt,
     "tensor 1 of 3: name at byte 221: a string of 4611686018427387904 bytes, the limit is 255"},
    {"NamePastTheEnd",
     [](GgufBuilder& b) {
       b.tensors.resize(1);
       b.tensors[0].name_length = 200;
       b.num_cut = b.Build().size() - b.Header().size();
     },
     Code::kCorrupt, "tensor 1 of 1: name at byte 229: expected 200 bytes, only 33 are left"},
    {"NameWithEscape", [](GgufBuilder& b) { b.tensors[0].name = "\x1b[31m"; }, Code::kCorrupt,
     "tensor 1 of 3: name \"\\x1b[31m\": byte 0 is not printable UTF-8"},
    {"NameWithNul", [](GgufBuilder& b) { b.tensors[0].name = std::string("q\0", 2); },
     Code::kCorrupt, "name \"q\\x00\": byte 1 is not printable UTF-8"},
    {"NameNotUtf8", [](GgufBuilder& b) { b.tensors[0].name = "q\xff"; }, Code::kCorrupt,
     "name \"q\\xff\": byte 1 is not printable UTF-8"},
    {"NameTwice", [](GgufBuilder& b) { b.tensors[2].name = "q"; }, Code::kCorrupt,
     "tensor \"q\" appears twice"},
    {"RankZero", [](GgufBuilder& b) { b.tensors[0].ne.clear(); }, Code::kCorrupt,
     "tensor 1 of 3: \"q\": rank 0, expected 1 to 4"},
    {"RankFive", [](GgufBuilder& b) { b.tensors[1].ne = {1, 1, 1, 1, 1}; }, Code::kCorrupt,
     "tensor 2 of 3: \"w\": rank 5, expected 1 to 4"},
    {"RankNegative", [](GgufBuilder& b) { b.tensors[1].rank = ~0u; }, Code::kCorrupt,
     "\"w\": rank 4294967295, expected 1 to 4"},
    {"DimensionZero", [](GgufBuilder& b) { b.tensors[1].ne = {8, 0}; }, Code::kCorrupt,
     "tensor 2 of 3: \"w\": dimension 1 is 0, expected at least 1"},
    {"DimensionNegative",
     [](GgufBuilder& b) {
       b.tensors[1].ne = {kMax, 1};
       b.tensors[1].data_bytes = 128;
     },
     Code::kCorrupt, "\"w\": dimension 0 is -1, expected at least 1"},
    {"TypeRemoved", [](GgufBuilder& b) { b.tensors[1].type = 4; }, Code::kUnsupported,
     "tensor 2 of 3: \"w\": tensor type 4 is not supported"},
    {"TypeIq2Xs", [](GgufBuilder& b) { b.tensors[1].type = 17; }, Code::kUnsupported,
     "\"w\": tensor type 17 (IQ2_XS) is not supported"},
    {"TypeNvfp4", [](GgufBuilder& b) { b.tensors[1].type = 40; }, Code::kUnsupported,
     "\"w\": tensor type 40 (NVFP4) is not supported"},
    {"TypeUnknown", [](GgufBuilder& b) { b.tensors[1].type = 4711; }, Code::kUnsupported,
     "\"w\": tensor type 4711 is not supported"},
    {"TypeNegative", [](GgufBuilder& b) { b.tensors[1].type = ~0u; }, Code::kUnsupported,
     "\"w\": tensor type 4294967295 is not supported"},
    {"HalfABlockOfQ8", [](GgufBuilder& b) { b.tensors[0].ne = {48, 2}; }, Code::kCorrupt,
     "tensor \"q\": rows of 48 elements, expected a multiple of Q8_0's 32"},
    {"BlocksOnlyAcrossRows", [](GgufBuilder& b) { b.tensors[0].ne = {16, 4}; }, Code::kCorrupt,
     "tensor \"q\": rows of 16 elements, expected a multiple of Q8_0's 32"},
    {"HalfABlockOfQ4K",
     [](GgufBuilder& b) {
       b.tensors[0].type = 12;
       b.tensors[0].ne = {2880, 2};
     },
     Code::kCorrupt, "rows of 2880 elements, expected a multiple of Q4_K's 256"},
    {"HalfABlockOfMxfp4",
     [](GgufBuilder& b) {
       b.tensors[0].type = 39;
       b.tensors[0].ne = {33};
     },
     Code::kCorrupt, "rows of 33 elements, expected a multiple of MXFP4's 32"},
};
INSTANTIATE_TEST_SUITE_P(Tensor, MalformedGguf, ::testing::ValuesIn(kTensorCases), NameOfCase);

// Declares the shape but writes only a few bytes for it.
void Claim(GgufBuilder& builder, std::vector<uint64_t> ne, uint32_t type) {
  builder.tensors[1].ne = std::move(ne);
  builder.tensors[1].type = type;
  builder.tensors[1].data_bytes = 128;
}
const Case kExtentCases[] = {
    {"ElementsWrapToZero", [](GgufBuilder& b) { Claim(b, {1ull << 32, 1ull << 32}, 24); },
     Code::kCorrupt, "tensor \"w\": shape [4294967296, 4294967296] of I8 overflows 63 bits"},
    {"ElementsWrapInFourDimensions",
     [](GgufBuilder& b) { Claim(b, {1 << 16, 1 << 16, 1 << 16, 1 << 16}, 24); }, Code::kCorrupt,
     "shape [65536, 65536, 65536, 65536] of I8 overflows 63 bits"},
    {"ElementsFitOnly64Bits", [](GgufBuilder& b) { Claim(b, {1ull << 32, 1ull << 31}, 24); },
     Code::kCorrupt, "of I8 overflows 63 bits"},
    {"ElementsFitButBytesWrap", [](GgufBuilder& b) { Claim(b, {kHuge}, 0); }, Code::kCorrupt,
     "shape [4611686018427387904] of F32 overflows 63 bits"},
    {"BytesFitButElementsWrap", [](GgufBuilder& b) { Claim(b, {kHuge, 2}, 16); }, Code::kCorrupt,
     "of IQ2_XXS overflows 63 bits"},
    {"MoreThanAnyDiskHolds", [](GgufBuilder& b) { Claim(b, {kHuge}, 8); }, Code::kCorrupt,
     "tensor \"w\": Q8_0 [4611686018427387904] needs 4899916394579099648 bytes"},
    {"OffsetMisaligned", [](GgufBuilder& b) { b.tensors[1].offset = 97; }, Code::kCorrupt,
     "tensor \"w\": offset 97 is not a multiple of the alignment 32"},
    {"OffsetAlignedToLessThanDeclared",
     [](GgufBuilder& b) {
       Align(b, 64);
       b.alignment = 64;
       b.tensors[1].offset = 96;
     },
     Code::kCorrupt, "offset 96 is not a multiple of the alignment 64"},
    {"OffsetPastTheEnd", [](GgufBuilder& b) { b.tensors[2].offset = 1 << 20; }, Code::kCorrupt,
     "tensor \"bias\": F32 [5] needs 20 bytes at offset 1048576, the file has 256 bytes"},
    {"OffsetPlusSizeWraps", [](GgufBuilder& b) { b.tensors[1].offset = kMax - 31; }, Code::kCorrupt,
     "needs 128 bytes at offset 18446744073709551584"},
    {"OneByteShort", [](GgufBuilder& b) { b.num_cut = 13; }, Code::kCorrupt,
     "tensor \"bias\": F32 [5] needs 20 bytes at offset 224, the file has 243 bytes"},
    {"ShapeLargerThanItsData",
     [](GgufBuilder& b) {
       Claim(b, {8, 5}, 0);
       b.tensors.resize(2);
     },
     Code::kCorrupt, "F32 [5, 8] needs 160 bytes at offset 96, the file has 224 bytes"},
    {"SameOffsetTwice", [](GgufBuilder& b) { b.tensors[1].offset = 0; }, Code::kCorrupt,
     "tensor \"w\": offset 0 overlaps the tensor before it, expected 96"},
    {"OverlapByOneUnit", [](GgufBuilder& b) { b.tensors[1].offset = 64; }, Code::kCorrupt,
     "tensor \"w\": offset 64 overlaps the tensor before it, expected 96"},
    {"LargerThanTheGapToTheNext", [](GgufBuilder& b) { Claim(b, {8, 5}, 0); }, Code::kCorrupt,
     "tensor \"bias\": offset 224 overlaps the tensor before it, expected 256"},
    {"Gap",
     [](GgufBuilder& b) {
       b.tensors[2].offset = 224 + 32;
       b.tail.assign(64, 'x');
     },
     Code::kCorrupt,
     "tensor \"bias\": offset 256 leaves a gap after the tensor before it, expected"},
    {"FirstNotAtZero", [](GgufBuilder& b) { b.tensors[0].offset = 32; }, Code::kCorrupt,
     "tensor \"q\": offset 32 leaves a gap"},
    {"OutOfOrder",
     [](GgufBuilder& b) {
       b.tensors[0].offset = 96;
       b.tensors[1].offset = 0;
     },
     Code::kCorrupt, "tensor \"q\": offset 96 leaves a gap"},
    {"NoDataAtAll", [](GgufBuilder& b) { b.num_cut = b.Build().size() - b.Header().size(); },
     Code::kCorrupt, "the file ends at byte 339, before the tensor data"},
};
INSTANTIATE_TEST_SUITE_P(Extent, MalformedGguf, ::testing::ValuesIn(kExtentCases), NameOfCase);

TEST(MalformedGguf, TruncatedAtEveryByte) {
  const std::string whole = WellFormed().Build();
  const size_t padding = 12;  // after the last tensor; the only bytes nobody misses
  ASSERT_TRUE(ParseWithinBudget(whole.substr(0, whole.size() - padding)).ok());
  for (size_t size = 0; size < whole.size() - padding; ++size) {
    const Status status = ParseWithinBudget(whole.substr(0, size));
    ASSERT_EQ(status.code(), Code::kCorrupt) << "cut at " << size << ": " << status.message();
    ASSERT_THAT(status.message(), HasSubstr("byte")) << "cut at " << size;
  }
}

// Whatever one byte says, the parser answers, and what it accepts lies inside the file.
TEST(MalformedGguf, EveryByteReplaced) {
  const std::string whole = WellFormed().Build();
  const size_t header_size = WellFormed().Header().size();
  constexpr size_t kFixedHead = 24;
  size_t num_refused = 0;
  for (size_t at = 0; at < header_size; ++at) {
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(value);
      const AllocationMeter meter;
      auto gguf = ParseGguf(AsBytes(bytes));
      ASSERT_LE(meter.Read().total, kBudgetPerByte * bytes.size() + kBudgetConstant);
      if (!gguf.ok()) {
        ++num_refused;
        continue;
      }
      for (const GgufTensor& tensor : gguf->tensors) {
        ASSERT_GE(tensor.view.bytes.data(), AsBytes(bytes).data() + kFixedHead);
        ASSERT_LE(tensor.view.bytes.data() + tensor.view.bytes.size(),
                  AsBytes(bytes).data() + bytes.size());
      }
    }
  }
  EXPECT_GT(num_refused, header_size);
}

TEST(MalformedGguf, WellFormedFilesStayWithinTheSameBudget) {
  EXPECT_TRUE(ParseWithinBudget(WellFormed().Build()).ok());
  GgufBuilder smallest_keys;
  for (int i = 0; i < 20000; ++i) {
    smallest_keys.Add<uint8_t>(Printf("%04x", i), GgufType::kU8, 0);
  }
  EXPECT_TRUE(ParseWithinBudget(smallest_keys.Build()).ok());
  GgufBuilder smallest_tensors;
  for (int i = 0; i < 20000; ++i) smallest_tensors.AddTensor(Printf("%04x", i), {1}, 24);
  EXPECT_TRUE(ParseWithinBudget(smallest_tensors.Build()).ok());
  GgufBuilder strings;
  strings.AddStrings("tokens", std::vector<std::string>(20000));
  EXPECT_TRUE(ParseWithinBudget(strings.Build()).ok());
}

}  // namespace
}  // namespace hearth
