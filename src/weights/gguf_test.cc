// SPDX-License-Identifier: Apache-2.0
// Well-formed GGUF files and what their accessors answer. Malformed ones: gguf_malformed_test.cc.
#include "weights/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "testing/allocations.h"
#include "testing/data.h"
#include "testing/gguf_builder.h"
#include "weights/weight_file.h"

namespace hearth {
namespace {

using testing::AsBytes;
using ::testing::ElementsAre;
using testing::GgufBuilder;
using testing::Raw;
using testing::RawArray;
using testing::RawString;

// Keeps the bytes that the parsed file points into.
struct Parsed {
  std::string bytes;
  Gguf gguf;
};
Parsed MustParse(const GgufBuilder& builder) {
  Parsed parsed{builder.Build(), {}};
  auto gguf = ParseGguf(AsBytes(parsed.bytes));
  EXPECT_TRUE(gguf.ok()) << gguf.status().message();
  if (gguf.ok()) parsed.gguf = *std::move(gguf);
  return parsed;
}

template <class T>
GgufValue Scalar(const T& value, GgufType type) {
  static std::string bytes;
  bytes = Raw(value);
  return {type, GgufType::kU8, 1, AsBytes(bytes)};
}

TEST(Gguf, ReadsBothVersions) {
  for (const uint32_t version : {2u, 3u}) {
    GgufBuilder builder;
    builder.version = version;
    builder.AddString("general.architecture", "llama").AddTensor("w", {4, 2});
    const Parsed parsed = MustParse(builder);
    EXPECT_EQ(parsed.gguf.version, version);
    EXPECT_EQ(parsed.gguf.alignment, 32u);
    ASSERT_EQ(parsed.gguf.tensors.size(), 1u);
  }
}

TEST(Gguf, ShapeIsOutermostFirst) {
  GgufBuilder builder;
  builder.AddTensor("w", {5, 4, 3, 2}, 0).AddTensor("v", {7});
  const Parsed parsed = MustParse(builder);
  const TensorView& w = parsed.gguf.tensors.at(0).view;
  EXPECT_EQ(ShapeText(w), "[2, 3, 4, 5]");
  EXPECT_EQ(w.bytes.size(), 480u);
  EXPECT_EQ(w.bytes[0], std::byte{'a'});
  EXPECT_EQ(w.bytes[479], std::byte{'a'});
  const TensorView& v = parsed.gguf.tensors.at(1).view;
  EXPECT_EQ(ShapeText(v), "[7]");
  EXPECT_EQ(v.bytes.size(), 28u);
  EXPECT_EQ(v.bytes[0], std::byte{'b'});
}

TEST(Gguf, ReadsEveryTensorType) {
  GgufBuilder builder;
  for (const auto& type : testing::kGgufTypeIds) {
    builder.AddTensor(NameOf(type.dtype), {type.elems * 3, 2}, type.id);
  }
  const Parsed parsed = MustParse(builder);
  ASSERT_EQ(parsed.gguf.tensors.size(), std::size(testing::kGgufTypeIds));
  for (size_t i = 0; i < std::size(testing::kGgufTypeIds); ++i) {
    const auto& type = testing::kGgufTypeIds[i];
    const GgufTensor& tensor = parsed.gguf.tensors[i];
    EXPECT_EQ(tensor.name, NameOf(type.dtype));
    EXPECT_EQ(tensor.view.dtype, type.dtype);
    EXPECT_EQ(tensor.view.bytes.size(), 6 * type.bytes);
    EXPECT_EQ(tensor.view.bytes.front(), std::byte(static_cast<unsigned char>('a' + i % 26)));
    EXPECT_EQ(tensor.view.bytes.back(), tensor.view.bytes.front());
  }
}

TEST(Gguf, HonoursAlignment) {
  for (const uint32_t alignment : {8u, 64u, 4096u}) {
    GgufBuilder builder;
    builder.alignment = alignment;
    builder.Add("general.alignment", GgufType::kU32, alignment);
    builder.AddTensor("a", {3}).AddTensor("b", {5});
    const Parsed parsed = MustParse(builder);
    EXPECT_EQ(parsed.gguf.alignment, alignment);
    const TensorView& b = parsed.gguf.tensors.at(1).view;
    EXPECT_EQ(static_cast<size_t>(b.bytes.data() - AsBytes(parsed.bytes).data()) % alignment, 0u);
    EXPECT_EQ(b.bytes[0], std::byte{'b'});
    EXPECT_EQ(b.bytes[19], std::byte{'b'});
  }
}

TEST(Gguf, AllowsNoTensorsMissingPaddingAndTrailingBytes) {
  GgufBuilder builder;
  builder.AddString("k", "v");
  builder.num_cut = builder.Build().size() - builder.Header().size();
  EXPECT_TRUE(MustParse(builder).gguf.tensors.empty());

  GgufBuilder unpadded;
  unpadded.AddTensor("w", {3});
  unpadded.num_cut = 20;  // 12 bytes of data, 20 of padding
  EXPECT_EQ(MustParse(unpadded).gguf.tensors.at(0).view.bytes.size(), 12u);

  GgufBuilder longer;
  longer.AddTensor("w", {3});
  longer.tail = "more";
  EXPECT_EQ(MustParse(longer).gguf.tensors.at(0).view.bytes.size(), 12u);
}

TEST(Gguf, NamesMayBeAnyPrintableUtf8) {
  GgufBuilder builder;
  const std::string long_name(255, 'n');
  builder.AddTensor("h\xc3\xb6he \xe2\x82\xac \xf0\x9f\x94\xa5", {1}).AddTensor(long_name, {1});
  builder.AddTensor("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\xc2\xa0", {1});
  EXPECT_EQ(MustParse(builder).gguf.tensors.at(1).name, long_name);
}

TEST(GgufValue, IntegersOfEveryTypeAndTheirEdges) {
  using std::numeric_limits;
  EXPECT_EQ(Scalar<uint8_t>(255, GgufType::kU8).Unsigned(), 255u);
  EXPECT_EQ(Scalar<int8_t>(-128, GgufType::kI8).Integer(), -128);
  EXPECT_EQ(Scalar<int8_t>(-1, GgufType::kI8).Unsigned(), std::nullopt);
  EXPECT_EQ(Scalar<uint16_t>(65535, GgufType::kU16).Integer(), 65535);
  EXPECT_EQ(Scalar<int16_t>(-32768, GgufType::kI16).Integer(), -32768);
  EXPECT_EQ(Scalar<uint32_t>(4294967295u, GgufType::kU32).Integer(), 4294967295);
  EXPECT_EQ(Scalar<int32_t>(-2147483647 - 1, GgufType::kI32).Integer(), -2147483648LL);
  EXPECT_EQ(Scalar<int32_t>(-7, GgufType::kI32).Unsigned(), std::nullopt);
  const auto max = numeric_limits<uint64_t>::max();
  EXPECT_EQ(Scalar(max, GgufType::kU64).Unsigned(), max);
  EXPECT_EQ(Scalar(max, GgufType::kU64).Integer(), std::nullopt);
  EXPECT_EQ(Scalar(max, GgufType::kU64).Number(), 0x1p64);
  const auto min = numeric_limits<int64_t>::min();
  EXPECT_EQ(Scalar(min, GgufType::kI64).Integer(), min);
  EXPECT_EQ(Scalar(min, GgufType::kI64).Unsigned(), std::nullopt);
  EXPECT_EQ(Scalar(min, GgufType::kI64).Number(), -0x1p63);
  EXPECT_EQ(Scalar(uint64_t{1} << 63, GgufType::kU64).Integer(), std::nullopt);
  EXPECT_EQ(Scalar((uint64_t{1} << 63) - 1, GgufType::kU64).Integer(),
            numeric_limits<int64_t>::max());
}

TEST(GgufValue, FloatsAreNoIntegersAndBoolsAreNoNumbers) {
  EXPECT_EQ(Scalar(2.0f, GgufType::kF32).Number(), 2.0);
  EXPECT_EQ(Scalar(2.0f, GgufType::kF32).Integer(), std::nullopt);
  EXPECT_EQ(Scalar(2.0, GgufType::kF64).Unsigned(), std::nullopt);
  EXPECT_EQ(Scalar(1e-5f, GgufType::kF32).Number(), double{1e-5f});
  EXPECT_EQ(Scalar<uint8_t>(1, GgufType::kBool).Bool(), true);
  EXPECT_EQ(Scalar<uint8_t>(0, GgufType::kBool).Bool(), false);
  EXPECT_EQ(Scalar<uint8_t>(1, GgufType::kBool).Integer(), std::nullopt);
  EXPECT_EQ(Scalar<uint8_t>(1, GgufType::kBool).Number(), std::nullopt);
  EXPECT_EQ(Scalar<uint8_t>(1, GgufType::kU8).Bool(), std::nullopt);
  EXPECT_EQ(Scalar<uint8_t>(1, GgufType::kU8).String(), std::nullopt);
}

TEST(GgufValue, EveryTypeComesBackFromAFile) {
  GgufBuilder builder;
  builder.Add<uint8_t>("u8", GgufType::kU8, 8).Add<int8_t>("i8", GgufType::kI8, -8);
  builder.Add<uint16_t>("u16", GgufType::kU16, 16).Add<int16_t>("i16", GgufType::kI16, -16);
  builder.Add<uint32_t>("u32", GgufType::kU32, 32).Add<int32_t>("i32", GgufType::kI32, -32);
  builder.Add<uint64_t>("u64", GgufType::kU64, 64).Add<int64_t>("i64", GgufType::kI64, -64);
  builder.Add("f32", GgufType::kF32, 0.5f).Add("f64", GgufType::kF64, -0.25);
  builder.Add<uint8_t>("yes", GgufType::kBool, 1).Add<uint8_t>("no", GgufType::kBool, 0);
  builder.AddString("text", std::string_view("a\0b", 3)).AddString("empty", "");
  const Parsed parsed = MustParse(builder);
  const GgufMetadata& metadata = parsed.gguf.metadata;
  ASSERT_EQ(metadata.entries().size(), 14u);
  EXPECT_EQ(metadata.entries()[1].first, "i8");
  const auto number = [&](const char* key) { return metadata.Find(key)->Number(); };
  EXPECT_EQ(number("u8"), 8.0);
  EXPECT_EQ(number("i8"), -8.0);
  EXPECT_EQ(number("u16"), 16.0);
  EXPECT_EQ(number("i16"), -16.0);
  EXPECT_EQ(number("u32"), 32.0);
  EXPECT_EQ(number("i32"), -32.0);
  EXPECT_EQ(number("u64"), 64.0);
  EXPECT_EQ(number("i64"), -64.0);
  EXPECT_EQ(number("f32"), 0.5);
  EXPECT_EQ(number("f64"), -0.25);
  EXPECT_EQ(metadata.Find("yes")->Bool(), true);
  EXPECT_EQ(metadata.Find("no")->Bool(), false);
  EXPECT_EQ(metadata.Find("text")->String(), std::string_view("a\0b", 3));
  EXPECT_EQ(metadata.Find("empty")->String(), "");
  EXPECT_EQ(metadata.Find("text")->Number(), std::nullopt);
  EXPECT_EQ(metadata.Find("absent"), nullptr);
}

TEST(GgufValue, Arrays) {
  GgufBuilder builder;
  builder.AddStrings("tokens", {"<s>", "", "\xff"});
  builder.AddRaw("types", GgufType::kArray,
                 RawArray(GgufType::kI32, 2, Raw<int32_t>(1) + Raw<int32_t>(-6)));
  builder.AddRaw("large", GgufType::kArray,
                 RawArray(GgufType::kU64, 1, Raw(std::numeric_limits<uint64_t>::max())));
  builder.AddRaw("scores", GgufType::kArray, RawArray(GgufType::kF32, 2, Raw(0.5f) + Raw(-1.0f)));
  builder.AddRaw("flags", GgufType::kArray, RawArray(GgufType::kBool, 3, std::string("\1\0\1", 3)));
  builder.AddRaw("none", GgufType::kArray, RawArray(GgufType::kString, 0, ""));
  const Parsed parsed = MustParse(builder);
  const auto at = [&](const char* key) { return *parsed.gguf.metadata.Find(key); };
  EXPECT_EQ(at("tokens").count, 3u);
  EXPECT_THAT(at("tokens").Strings().value(), ElementsAre("<s>", "", "\xff"));
  EXPECT_EQ(at("tokens").String(), std::nullopt);
  EXPECT_EQ(at("tokens").Numbers(), std::nullopt);
  EXPECT_THAT(at("types").Integers().value(), ElementsAre(1, -6));
  EXPECT_THAT(at("types").Numbers().value(), ElementsAre(1.0, -6.0));
  EXPECT_EQ(at("types").Integer(), std::nullopt);
  EXPECT_EQ(at("types").Strings(), std::nullopt);
  EXPECT_EQ(at("large").Integers(), std::nullopt);
  EXPECT_THAT(at("scores").Numbers().value(), ElementsAre(0.5, -1.0));
  EXPECT_EQ(at("scores").Integers(), std::nullopt);
  EXPECT_THAT(at("flags").Bools().value(), ElementsAre(true, false, true));
  EXPECT_EQ(at("flags").Integers(), std::nullopt);
  EXPECT_EQ(at("flags").Numbers(), std::nullopt);
  EXPECT_EQ(at("scores").Bools(), std::nullopt);
  EXPECT_TRUE(at("none").Strings().value().empty());
  EXPECT_EQ(at("none").Numbers(), std::nullopt);
}

// A value that contradicts itself can only come from our own code, yet must not run off its bytes.
TEST(GgufValue, AccessorsAreTotal) {
  const std::string bytes = RawString("abc");
  const auto cut = AsBytes(bytes).first(9);
  EXPECT_EQ((GgufValue{GgufType::kString, GgufType::kU8, 1, cut}.String()), std::nullopt);
  EXPECT_EQ((GgufValue{GgufType::kArray, GgufType::kString, 1, cut}.Strings()), std::nullopt);
  EXPECT_EQ((GgufValue{GgufType::kArray, GgufType::kString, uint64_t{1} << 62, cut}.Strings()),
            std::nullopt);
  EXPECT_EQ((GgufValue{GgufType::kArray, GgufType::kU32, uint64_t{1} << 62, cut}.Numbers()),
            std::nullopt);
  EXPECT_EQ((GgufValue{GgufType::kU32, GgufType::kU8, 1, {}}.Number()), std::nullopt);
  EXPECT_EQ((GgufValue{GgufType::kBool, GgufType::kU8, 1, {}}.Bool()), std::nullopt);
  EXPECT_EQ((GgufValue{GgufType::kArray, GgufType::kBool, 2, {}}.Bools()), std::nullopt);
}

struct RealFile {
  const char* path;
  size_t num_keys, num_tensors;
  const char* architecture;
};
class GgufRealFile : public ::testing::TestWithParam<RealFile> {};

TEST_P(GgufRealFile, Opens) {
  const std::string path = testing::DataPath(GetParam().path);
  HEARTH_SKIP_WITHOUT(path);
  auto file = WeightFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ((*file)->format(), WeightFormat::kGguf);
  EXPECT_EQ((*file)->num_shards(), 1);
  EXPECT_EQ((*file)->file_bytes(), std::filesystem::file_size(path));
  EXPECT_EQ((*file)->metadata()->entries().size(), GetParam().num_keys);
  EXPECT_EQ((*file)->tensors().size(), GetParam().num_tensors);
  EXPECT_EQ((*file)->config(), nullptr);
  const GgufValue* architecture = (*file)->metadata()->Find("general.architecture");
  ASSERT_NE(architecture, nullptr);
  EXPECT_EQ(architecture->String(), GetParam().architecture);
  EXPECT_TRUE((*file)->Has("token_embd.weight"));
}
INSTANTIATE_TEST_SUITE_P(
    Shared, GgufRealFile,
    ::testing::Values(RealFile{"golden/tiny-oss-f32.gguf", 21, 79, "gpt-oss"},
                      RealFile{"golden/tiny-oss-mxfp4.gguf", 21, 79, "gpt-oss"},
                      RealFile{"models/minimind2-small-q8_0.gguf", 23, 75, "llama"},
                      RealFile{"models/stories15M-q8_0.gguf", 20, 57, "llama"},
                      RealFile{"models/stories15M-mxfp4.gguf", 20, 57, "llama"}));

size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

// The vocabulary is looked at once and kept where it lies; tensor data is not looked at.
TEST(GgufRealFile, FullSizeModelCostsLittle) {
  const std::string path = testing::WorkPath("gpt-oss-20b.gguf");
  HEARTH_SKIP_WITHOUT(path);
  const size_t resident_before = ResidentBytes();
  const testing::AllocationMeter meter;
  auto file = WeightFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_LT(meter.Read().total, size_t{1} << 20);
  EXPECT_LT(ResidentBytes() - resident_before, size_t{64} << 20);
  EXPECT_EQ((*file)->tensors().size(), 459u);
  EXPECT_EQ((*file)->metadata()->Find("tokenizer.ggml.tokens")->count, 201088u);
  EXPECT_EQ((*file)->metadata()->Find("tokenizer.ggml.merges")->Strings().value().size(), 446189u);
}

}  // namespace
}  // namespace hearth
