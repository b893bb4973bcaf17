// SPDX-License-Identifier: Apache-2.0
// One file: what a sound header gives, and one named test for every way to be unsound.
#include "weights/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/safetensors_builder.h"

namespace hearth {
namespace {

using testing::AsBytes;
using testing::Concat;
using ::testing::HasSubstr;
using testing::LittleEndian64;
using testing::SafetensorsBuilder;
using testing::SafetensorsEntry;
using testing::SafetensorsFile;

std::string SoundFile() {
  return SafetensorsBuilder()
      .AddText(R"("__metadata__":{"format":"pt"})")
      .Add("a.weight", "BF16", {2, 3}, "abcdefghijkl")
      .Add("b", "U8", {1, 2, 1, 2}, "wxyz")
      .Add("scalar", "F32", {}, "1234")
      .Build();
}

TEST(SafetensorsTest, ReadsNamesTypesShapesAndBytes) {
  const std::string file = SoundFile();
  auto parsed = ParseSafetensors(AsBytes(file));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  ASSERT_EQ(parsed->tensors.size(), 3u);
  const TensorView& a = parsed->tensors[0].view;
  EXPECT_EQ(parsed->tensors[0].name, "a.weight");
  EXPECT_EQ(a.dtype, DType::kBf16);
  EXPECT_EQ(ShapeText(a), "[2, 3]");
  EXPECT_EQ(a.bytes.size(), 12u);
  EXPECT_EQ(static_cast<char>(a.bytes[11]), 'l');
  const TensorView& b = parsed->tensors[1].view;
  EXPECT_EQ(ShapeText(b), "[1, 2, 1, 2]");
  EXPECT_EQ(static_cast<char>(b.bytes[0]), 'w');
  const TensorView& scalar = parsed->tensors[2].view;
  EXPECT_EQ(scalar.rank, 0);
  EXPECT_EQ(scalar.bytes.size(), 4u);
  EXPECT_EQ(scalar.bytes.data() + 4, AsBytes(file).data() + file.size());
}

TEST(SafetensorsTest, KnowsEveryDTypeByNameAndSize) {
  const std::pair<const char*, DType> known[] = {
      {"F64", DType::kF64},   {"F32", DType::kF32},        {"F16", DType::kF16},
      {"U64", DType::kU64},   {"BF16", DType::kBf16},      {"I64", DType::kI64},
      {"I32", DType::kI32},   {"I16", DType::kI16},        {"I8", DType::kI8},
      {"U8", DType::kU8},     {"U16", DType::kU16},        {"U32", DType::kU32},
      {"BOOL", DType::kBool}, {"F8_E4M3", DType::kF8E4m3}, {"F8_E5M2", DType::kF8E5m2}};
  for (const auto& [name, dtype] : known) {
    size_t size = 1;
    if (std::string_view(name).find("64") != std::string_view::npos) size = 8;
    if (std::string_view(name).find("32") != std::string_view::npos) size = 4;
    if (std::string_view(name).find("16") != std::string_view::npos) size = 2;
    const std::string file =
        SafetensorsBuilder().Add("t", name, {3}, std::string(3 * size, 'x')).Build();
    auto parsed = ParseSafetensors(AsBytes(file));
    ASSERT_TRUE(parsed.ok()) << name << ": " << parsed.status().message();
    EXPECT_EQ(parsed->tensors[0].view.dtype, dtype) << name;
  }
}

TEST(SafetensorsTest, OrdersTensorsByTheirBytes) {
  const std::string header = Concat("{", SafetensorsEntry("late", "U8", "2", "3,5"), ",",
                                    SafetensorsEntry("early", "U8", "3", "0,3"), ",",
                                    SafetensorsEntry("none", "F32", "0,7", "3,3"), "}");
  const std::string file = SafetensorsFile(header, "abcde");
  auto parsed = ParseSafetensors(AsBytes(file));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  ASSERT_EQ(parsed->tensors.size(), 3u);
  EXPECT_EQ(parsed->tensors[0].name, "early");
  EXPECT_EQ(parsed->tensors[1].name, "none");
  EXPECT_EQ(parsed->tensors[2].name, "late");
}

TEST(SafetensorsTest, TakesAHeaderPaddedWithSpacesAndOneWithoutTensors) {
  const std::string padded =
      SafetensorsFile(Concat("{", SafetensorsEntry("t", "U8", "1", "0,1"), "}     "), "x");
  EXPECT_TRUE(ParseSafetensors(AsBytes(padded)).ok());
  const std::string empty = SafetensorsFile("{}", "");
  auto parsed = ParseSafetensors(AsBytes(empty));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_TRUE(parsed->tensors.empty());
}

TEST(SafetensorsTest, RefusesAFileCutAnywhere) {
  const std::string file = SoundFile();
  for (size_t length = 0; length < file.size(); ++length) {
    // A copy of exactly that size, so that the sanitizers see a read past it.
    const std::vector<char> cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length));
    auto parsed = ParseSafetensors(AsBytes({cut.data(), cut.size()}));
    ASSERT_FALSE(parsed.ok()) << "cut to " << length << " bytes";
    EXPECT_EQ(parsed.status().code(), Code::kCorrupt) << length;
  }
}

// A length that ends inside the header leaves half a JSON text, one that ends behind it data.
TEST(SafetensorsTest, RefusesEveryOtherHeaderLength) {
  std::string file = SoundFile();
  const size_t right = file.size() - 8 - 20;
  for (size_t length = 0; length < file.size(); ++length) {
    if (length == right) continue;
    file.replace(0, 8, LittleEndian64(length));
    EXPECT_FALSE(ParseSafetensors(AsBytes(file)).ok()) << "header length " << length;
  }
}

TEST(SafetensorsTest, TakesTheMostTensorsAllowed) {
  SafetensorsBuilder builder;
  for (size_t i = 0; i < kMaxSafetensorsTensors; ++i) builder.Add(std::to_string(i), "U8", {0}, "");
  const std::string file = builder.Build();
  auto parsed = ParseSafetensors(AsBytes(file));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->tensors.size(), kMaxSafetensorsTensors);
}

struct Malformed {
  const char* name;
  std::string file;
  Code code;
  std::vector<std::string> says;  // parts of the message
};

void PrintTo(const Malformed& malformed, std::ostream* out) { *out << malformed.name; }

// A file of one entry "t" and `data_bytes` bytes.
std::string One(std::string_view dtype, std::string_view shape, std::string_view offsets,
                size_t data_bytes) {
  return SafetensorsFile(Concat("{", SafetensorsEntry("t", dtype, shape, offsets), "}"),
                         std::string(data_bytes, 'd'));
}
std::string HeaderOnly(std::string_view header) { return SafetensorsFile(header, ""); }

std::string ManyEntries(size_t count) {
  std::string header = "{";
  for (size_t i = 0; i < count; ++i) {
    header.append(i > 0 ? "," : "").append(SafetensorsEntry(std::to_string(i), "U8", "0", "0,0"));
  }
  return HeaderOnly(header + "}");
}

std::string ManyZeros() {
  std::string zeros;
  for (int i = 0; i < 100000; ++i) zeros += "0,";
  return zeros;
}

const std::vector<Malformed> kMalformedContainers = {
    {"EmptyFile", "", Code::kCorrupt, {"header length at byte 0"}},
    {"LengthOnly", LittleEndian64(0), Code::kCorrupt, {"header: expected '{', found nothing"}},
    {"HeaderLengthZeroBeforeData", LittleEndian64(0) + "xyz", Code::kCorrupt, {"found nothing"}},
    {"HeaderLengthTwoToThe62",
     LittleEndian64(uint64_t{1} << 62) + "{}",
     Code::kCorrupt,
     {"header at byte 8", "4611686018427387904 bytes", "only 2 are left"}},
    {"HeaderLengthAllOnes",
     LittleEndian64(~uint64_t{0}) + "{}",
     Code::kCorrupt,
     {"18446744073709551615 bytes", "only 2"}},
    {"HeaderOneByteLongerThanFile", LittleEndian64(3) + "{}", Code::kCorrupt, {"only 2 are left"}},
    {"HeaderAboveTheLimit",
     HeaderOnly(Concat("{}", std::string((size_t{16} << 20) - 1, ' '))),
     Code::kUnsupported,
     {"header: 16777217 bytes, the limit is 16777216"}},
    {"BigEndianLength", std::string("\0\0\0\0\0\0\0\2{}", 10), Code::kCorrupt, {"only 2 are left"}},
    {"HeaderNotJson", HeaderOnly("{\"a\":}"), Code::kCorrupt, {"header: JSON near byte"}},
    {"HeaderIsArray", HeaderOnly("[]"), Code::kCorrupt, {"expected '{', found \"[\""}},
    {"HeaderIsNumber", HeaderOnly("12"), Code::kCorrupt, {"expected '{'"}},
    {"HeaderStartsWithSpace", HeaderOnly(" {}"), Code::kCorrupt, {"expected '{', found \" \""}},
    {"HeaderHasTwoValues", HeaderOnly("{}{}"), Code::kCorrupt, {"header: JSON near byte 2"}},
    {"HeaderPaddedWithZeros", HeaderOnly(std::string("{}\0\0", 4)), Code::kCorrupt, {"JSON near"}},
    {"HeaderNotUtf8", HeaderOnly("{\"\xff\":1}"), Code::kCorrupt, {"header: JSON near"}},
    {"HeaderNestedDeeply",
     HeaderOnly(Concat("{\"a\":", std::string(100000, '['))),
     Code::kCorrupt,
     {"header: JSON near byte"}},
    {"ShapeNestedTooDeeply", One("U8", "[1]", "0,1", 1), Code::kCorrupt, {"header: JSON near"}},
    {"HeaderOfNothings",
     HeaderOnly(Concat("{\"a\":[", ManyZeros(), "0]}")),
     Code::kCorrupt,
     {"header: JSON near byte", "more than"}},
    {"TooManyTensors",
     ManyEntries(65537),
     Code::kUnsupported,
     {"header: 65537 tensors, the limit is 65536"}},
    {"HundredThousandTensors", ManyEntries(100000), Code::kUnsupported, {"100000 tensors"}},
    {"MetadataIsString",
     HeaderOnly(R"({"__metadata__":"x"})"),
     Code::kCorrupt,
     {"__metadata__: expected an object, found a string"}},
    {"MetadataValueIsNumber",
     HeaderOnly(R"({"__metadata__":{"k":1}})"),
     Code::kCorrupt,
     {"__metadata__: \"k\": expected a string, found an integer"}},
    {"MetadataValueIsObject",
     HeaderOnly(R"({"__metadata__":{"k":{}}})"),
     Code::kCorrupt,
     {"\"k\": expected a string, found an object"}},
    {"SameNameTwice",
     SafetensorsFile(Concat("{", SafetensorsEntry("t", "U8", "1", "0,1"), ",",
                            SafetensorsEntry("t", "U8", "1", "1,2"), "}"),
                     "ab"),
     Code::kCorrupt,
     {"the name \"t\" appears twice"}},
    {"SameNameTwiceByEscape",
     SafetensorsFile(Concat("{", SafetensorsEntry("t", "U8", "1", "0,1"), ",",
                            SafetensorsEntry("\\u0074", "U8", "1", "1,2"), "}"),
                     "ab"),
     Code::kCorrupt,
     {"the name \"t\" appears twice"}},
    {"NameEmpty",
     SafetensorsFile(Concat("{", SafetensorsEntry("", "U8", "1", "0,1"), "}"), "a"),
     Code::kCorrupt,
     {"a tensor without a name"}},
};

const std::vector<Malformed> kMalformedEntries = {
    {"EntryIsNumber",
     HeaderOnly(R"({"t":1})"),
     Code::kCorrupt,
     {"tensor \"t\": expected an object, found an integer"}},
    {"EntryIsNull", HeaderOnly(R"({"t":null})"), Code::kCorrupt, {"found null"}},
    {"EntryEmpty", HeaderOnly(R"({"t":{}})"), Code::kCorrupt, {"tensor \"t\": dtype is missing"}},
    {"ShapeMissing",
     HeaderOnly(R"({"t":{"dtype":"U8","data_offsets":[0,0]}})"),
     Code::kCorrupt,
     {"shape is missing"}},
    {"OffsetsMissing",
     HeaderOnly(R"({"t":{"dtype":"U8","shape":[0]}})"),
     Code::kCorrupt,
     {"data_offsets is missing"}},
    {"FieldUnknown",
     HeaderOnly(R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"strides":[1]}})"),
     Code::kCorrupt,
     {"expected dtype, shape and data_offsets, found \"strides\""}},
    {"FieldTwice",
     HeaderOnly(R"({"t":{"dtype":"U8","dtype":"I8"}})"),
     Code::kCorrupt,
     {"the name \"dtype\" appears twice"}},
    {"DTypeUnknown",
     One("F4", "2", "0,1", 1),
     Code::kUnsupported,
     {"tensor \"t\": dtype: expected one of F64 F32", "found \"F4\""}},
    {"DTypeLowerCase", One("f32", "1", "0,4", 4), Code::kUnsupported, {"found \"f32\""}},
    {"DTypeOfGguf", One("Q8_0", "32", "0,34", 34), Code::kUnsupported, {"found \"Q8_0\""}},
    {"DTypeIsNumber",
     HeaderOnly(R"({"t":{"dtype":8,"shape":[0],"data_offsets":[0,0]}})"),
     Code::kCorrupt,
     {"dtype: expected a string, found an integer"}},
    {"ShapeIsString",
     HeaderOnly(R"({"t":{"dtype":"U8","shape":"1","data_offsets":[0,0]}})"),
     Code::kCorrupt,
     {"shape: expected an array, found a string"}},
    {"ShapeOfFiveDimensions",
     One("U8", "1,1,1,1,1", "0,1", 1),
     Code::kUnsupported,
     {"shape: expected at most 4 dimensions, found 5"}},
    {"ShapeNegative", One("U8", "1,-1", "0,1", 1), Code::kCorrupt, {"shape: dimension 1"}},
    {"ShapeBothNegative", One("U8", "-1,-1", "0,1", 1), Code::kCorrupt, {"shape: dimension 0"}},
    {"ShapeFractional", One("U8", "1.0", "0,1", 1), Code::kCorrupt, {"shape: dimension 0"}},
    {"ShapeOfStrings", One("U8", "\"1\"", "0,1", 1), Code::kCorrupt, {"shape: dimension 0"}},
    {"ShapeAboveInt64",
     One("U8", "9223372036854775808", "0,0", 0),
     Code::kCorrupt,
     {"shape: dimension 0: expected an integer from 0 to 2^63-1"}},
    {"ShapeAboveUint64",
     One("U8", "18446744073709551616", "0,0", 0),
     Code::kCorrupt,
     {"shape: dimension 0"}},
    {"ShapeProductWrapsToZero",
     One("U8", "4294967296,4294967296", "0,0", 0),
     Code::kCorrupt,
     {"U8 [4294967296, 4294967296]: the size overflows 63 bits"}},
    {"ShapeProductWrapsToFour",
     One("U8", "4611686018427387905,4", "0,4", 4),
     Code::kCorrupt,
     {"the size overflows 63 bits"}},
    {"ShapeWrapsBehindAZero",
     One("U8", "0,4294967296,4294967296", "0,0", 0),
     Code::kCorrupt,
     {"U8 [0, 4294967296, 4294967296]: the size overflows 63 bits"}},
    {"ShapeWrapsBeforeAZero",
     One("U8", "4294967296,4294967296,0", "0,0", 0),
     Code::kCorrupt,
     {"the size overflows 63 bits"}},
    {"ShapeTwoToThe63",
     One("U8", "4611686018427387904,2", "0,0", 0),
     Code::kCorrupt,
     {"the size overflows 63 bits"}},
    {"ElementSizeWraps",
     One("F64", "2305843009213693953", "0,8", 8),
     Code::kCorrupt,
     {"F64 [2305843009213693953]: the size overflows 63 bits"}},
    {"OffsetsReversed",
     One("U8", "1", "1,0", 1),
     Code::kCorrupt,
     {"tensor \"t\": data_offsets: expected begin <= end <= 1", "found [1, 0]"}},
    {"OffsetsEndPastTheData",
     One("U8", "2", "0,2", 1),
     Code::kCorrupt,
     {"expected begin <= end <= 1", "found [0, 2]"}},
    {"OffsetsBothPastTheData", One("U8", "1", "5,6", 1), Code::kCorrupt, {"found [5, 6]"}},
    {"OffsetsNearTwoToThe64",
     One("U8", "1", "18446744073709551614,18446744073709551615", 1),
     Code::kCorrupt,
     {"found [18446744073709551614, 18446744073709551615]"}},
    {"OffsetsNegative",
     One("U8", "1", "-1,0", 1),
     Code::kCorrupt,
     {"data_offsets: expected two integers from 0 to 2^64-1"}},
    {"OffsetsFractional", One("U8", "1", "0,1.5", 1), Code::kCorrupt, {"expected two integers"}},
    {"OffsetsAlone",
     One("U8", "1", "0", 1),
     Code::kCorrupt,
     {"data_offsets: expected [begin, end]"}},
    {"OffsetsThree", One("U8", "1", "0,1,1", 1), Code::kCorrupt, {"expected [begin, end]"}},
    {"OffsetsNotAnArray",
     HeaderOnly(R"({"t":{"dtype":"U8","shape":[0],"data_offsets":0}})"),
     Code::kCorrupt,
     {"expected [begin, end]"}},
    {"SizeOneByteShort",
     One("F32", "2", "0,7", 7),
     Code::kCorrupt,
     {"tensor \"t\": F32 [2]: expected 8 bytes, found 7"}},
    {"SizeOneByteLong",
     One("F32", "2", "0,9", 9),
     Code::kCorrupt,
     {"expected 8 bytes, found 9 (data_offsets [0, 9])"}},
    {"ScalarWithoutBytes",
     One("F32", "", "0,0", 0),
     Code::kCorrupt,
     {"F32 []: expected 4 bytes, found 0"}},
    {"TrailingByte",
     One("U8", "1", "0,1", 2),
     Code::kCorrupt,
     {"expected 1 bytes of data, found 2"}},
    {"DataWithoutTensors",
     SafetensorsFile("{}", "x"),
     Code::kCorrupt,
     {"expected 0 bytes of data, found 1"}},
    {"HoleBeforeTheFirst",
     One("U8", "1", "1,2", 2),
     Code::kCorrupt,
     {"tensor \"t\": begins at 1 of the data, a hole of 1 bytes"}},
    {"HoleBetweenTwo",
     SafetensorsFile(Concat("{", SafetensorsEntry("a", "U8", "1", "0,1"), ",",
                            SafetensorsEntry("b", "U8", "1", "2,3"), "}"),
                     "abc"),
     Code::kCorrupt,
     {"tensor \"b\": begins at 2 of the data, a hole of 1 bytes"}},
    {"OverlapByOneByte",
     SafetensorsFile(Concat("{", SafetensorsEntry("a", "U8", "2", "0,2"), ",",
                            SafetensorsEntry("b", "U8", "2", "1,3"), "}"),
                     "abc"),
     Code::kCorrupt,
     {"tensor \"b\": begins at 1 of the data, inside the tensor that ends at 2"}},
    {"SameBytesTwice",
     SafetensorsFile(Concat("{", SafetensorsEntry("a", "U8", "2", "0,2"), ",",
                            SafetensorsEntry("b", "U8", "2", "0,2"), "}"),
                     "ab"),
     Code::kCorrupt,
     {"tensor \"b\": begins at 0 of the data, inside"}},
    {"EmptyTensorInsideAnother",
     SafetensorsFile(Concat("{", SafetensorsEntry("a", "U8", "2", "0,2"), ",",
                            SafetensorsEntry("b", "U8", "0", "1,1"), "}"),
                     "ab"),
     Code::kCorrupt,
     {"tensor \"b\": begins at 1 of the data, inside"}},
    {"NameOfControlBytesIsQuoted",
     SafetensorsFile(Concat("{", SafetensorsEntry("a\\u001b[2J", "U9", "1", "0,1"), "}"), "a"),
     Code::kUnsupported,
     {"tensor \"a\\x1b[2J\""}},
};

class MalformedSafetensors : public ::testing::TestWithParam<Malformed> {};

TEST_P(MalformedSafetensors, IsRefused) {
  auto parsed = ParseSafetensors(AsBytes(GetParam().file));
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.status().code(), GetParam().code) << parsed.status().message();
  for (const std::string& part : GetParam().says) {
    EXPECT_THAT(parsed.status().message(), HasSubstr(part));
  }
}

std::string NameOfCase(const ::testing::TestParamInfo<Malformed>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Container, MalformedSafetensors, ::testing::ValuesIn(kMalformedContainers),
                         NameOfCase);
INSTANTIATE_TEST_SUITE_P(Entry, MalformedSafetensors, ::testing::ValuesIn(kMalformedEntries),
                         NameOfCase);

}  // namespace
}  // namespace hearth
