// SPDX-License-Identifier: Apache-2.0
// A checkpoint directory: the layouts that open, and one named test for every way not to.
#include "weights/safetensors_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>

#include "testing/safetensors_builder.h"
#include "testing/temp_dir.h"
#include "weights/safetensors.h"

namespace hearth {
namespace {

using testing::Concat;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::SafetensorsBuilder;
using testing::SafetensorsEntry;
using testing::SafetensorsFile;
using testing::TempDir;

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kConfig = R"({"model_type":"gpt_oss","num_hidden_layers":2})";

// A file whose tensors hold their own names.
std::string FileOf(const std::vector<std::string>& names) {
  SafetensorsBuilder builder;
  for (const std::string& name : names) {
    builder.Add(name, "U8", {static_cast<int64_t>(name.size())}, name);
  }
  return builder.Build();
}

std::string IndexOf(std::initializer_list<std::pair<const char*, const char*>> placements) {
  std::string map;
  for (const auto& [tensor, shard] : placements) {
    map.append(map.empty() ? "" : ",").append(Concat("\"", tensor, "\":\"", shard, "\""));
  }
  return Concat(R"({"metadata":{"total_size":4},"weight_map":{)", map, "}}");
}

// a and c in the second shard, b in the first.
void WriteTwoShards(const TempDir& dir) {
  dir.Write("config.json", kConfig);
  dir.Write(kIndex,
            IndexOf({{"a", "y.safetensors"}, {"b", "x.safetensors"}, {"c", "y.safetensors"}}));
  dir.Write("x.safetensors", FileOf({"b"}));
  dir.Write("y.safetensors", FileOf({"c", "a"}));
}

std::vector<std::string> NamesOf(const WeightFile& weights) {
  std::vector<std::string> names;
  for (const NamedTensor& tensor : weights.tensors()) names.emplace_back(tensor.name);
  return names;
}

TEST(SafetensorsDirTest, OpensASingleFile) {
  TempDir dir;
  dir.Write("config.json", kConfig);
  dir.Write("model.safetensors", FileOf({"lm_head.weight", "b"}));
  auto opened = OpenSafetensors(dir.path());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  WeightFile& weights = **opened;
  EXPECT_EQ(weights.format(), WeightFormat::kHuggingFace);
  EXPECT_EQ(weights.num_shards(), 1);
  EXPECT_EQ(weights.file_bytes(), FileOf({"lm_head.weight", "b"}).size());
  EXPECT_EQ(weights.metadata(), nullptr);
  ASSERT_NE(weights.config(), nullptr);
  EXPECT_EQ(weights.config()->Find("num_hidden_layers")->integer(), 2);
  EXPECT_THAT(NamesOf(weights), ElementsAre("lm_head.weight", "b"));
  auto found = weights.Find("b");
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->bytes.size(), 1u);
  EXPECT_EQ(static_cast<char>(found->bytes[0]), 'b');
}

TEST(SafetensorsDirTest, OpensIndexedShardsInTheOrderOfTheirNames) {
  TempDir dir;
  WriteTwoShards(dir);
  auto opened = OpenSafetensors(dir.path());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ((*opened)->num_shards(), 2);
  EXPECT_EQ((*opened)->file_bytes(), FileOf({"b"}).size() + FileOf({"c", "a"}).size());
  EXPECT_THAT(NamesOf(**opened), ElementsAre("b", "c", "a"));
  for (const char* name : {"a", "b", "c"}) {
    auto found = (*opened)->Find(name);
    ASSERT_TRUE(found.ok()) << name;
    EXPECT_EQ(static_cast<char>(found->bytes[0]), name[0]);
  }
}

TEST(SafetensorsDirTest, FindsNothingElseAndSaysWhere) {
  TempDir dir;
  WriteTwoShards(dir);
  auto opened = OpenSafetensors(dir.path());
  ASSERT_TRUE(opened.ok());
  for (const char* name : {"", "A", "aa", "zz"}) {
    EXPECT_FALSE((*opened)->Has(name)) << name;
    auto found = (*opened)->Find(name);
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.status().code(), Code::kNotFound);
    EXPECT_THAT(found.status().message(), HasSubstr(dir.path() + ": tensor \""));
  }
}

TEST(SafetensorsDirTest, AFileStandsForItsDirectory) {
  TempDir dir;
  WriteTwoShards(dir);
  auto opened = OpenSafetensors(dir.Path("y.safetensors"));
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ((*opened)->num_shards(), 2);
}

TEST(SafetensorsDirTest, IsWhatWeightFileOpensForADirectoryOrOneOfItsFiles) {
  TempDir dir;
  WriteTwoShards(dir);
  for (const std::string& path : {dir.path(), dir.path() + "/", dir.Path("x.safetensors")}) {
    auto opened = WeightFile::Open(path);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_EQ((*opened)->format(), WeightFormat::kHuggingFace);
    EXPECT_TRUE((*opened)->Has("c"));
  }
}

TEST(SafetensorsDirTest, KnowsOpenAisLayoutByItsTensors) {
  TempDir dir;
  dir.Write("config.json", "{}");
  dir.Write("model.safetensors", FileOf({"block.0.attn.qkv.weight"}));
  auto opened = OpenSafetensors(dir.path());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ((*opened)->format(), WeightFormat::kOpenAi);
}

TEST(SafetensorsDirTest, OpensTheSubdirectoryOriginalOnlyWhenThereIsNothingAbove) {
  TempDir dir;
  dir.Write("config.json", R"({"above":true})");
  dir.Write("original/config.json", R"({"below":true})");
  dir.Write("original/model.safetensors", FileOf({"block.0.attn.qkv.weight"}));
  auto below = OpenSafetensors(dir.path());
  ASSERT_TRUE(below.ok()) << below.status().message();
  EXPECT_EQ((*below)->format(), WeightFormat::kOpenAi);
  EXPECT_NE((*below)->config()->Find("below"), nullptr);
  dir.Write("model.safetensors", FileOf({"lm_head.weight"}));
  auto above = OpenSafetensors(dir.path());
  ASSERT_TRUE(above.ok()) << above.status().message();
  EXPECT_EQ((*above)->format(), WeightFormat::kHuggingFace);
  EXPECT_NE((*above)->config()->Find("above"), nullptr);
}

TEST(SafetensorsDirTest, OpensAWholeSetOfNumberedShardsWithoutAnIndex) {
  TempDir dir;
  dir.Write("original/config.json", "{}");
  dir.Write("original/model--00001-of-00002.safetensors", FileOf({"z"}));
  dir.Write("original/model--00002-of-00002.safetensors", FileOf({"block.0.attn.qkv.weight"}));
  auto opened = OpenSafetensors(dir.path());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ((*opened)->num_shards(), 2);
  EXPECT_EQ((*opened)->format(), WeightFormat::kOpenAi);
  EXPECT_THAT(NamesOf(**opened), ElementsAre("z", "block.0.attn.qkv.weight"));
}

// Download caches keep the bytes elsewhere and link to them.
TEST(SafetensorsDirTest, FollowsLinksTheUserMade) {
  TempDir dir, elsewhere;
  WriteTwoShards(dir);
  elsewhere.Write("blob", FileOf({"b"}));
  std::filesystem::remove(dir.Path("x.safetensors"));
  std::filesystem::create_symlink(elsewhere.Path("blob"), dir.Path("x.safetensors"));
  auto opened = OpenSafetensors(dir.path());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_TRUE((*opened)->Has("b"));
}

struct Spoiled {
  const char* name;
  std::function<void(const TempDir&)> spoil;  // what it does to the two sound shards
  Code code;
  std::vector<std::string> says;  // parts of the message, after the directory's path
};

void PrintTo(const Spoiled& spoiled, std::ostream* out) { *out << spoiled.name; }

// Replaces the shard that the index names for tensor b.
std::function<void(const TempDir&)> ShardOfB(std::string shard) {
  return [shard = std::move(shard)](const TempDir& dir) {
    dir.Write(kIndex,
              IndexOf({{"a", "y.safetensors"}, {"b", shard.c_str()}, {"c", "y.safetensors"}}));
  };
}
std::function<void(const TempDir&)> Replace(std::string name, std::string content) {
  return [name = std::move(name), content = std::move(content)](const TempDir& dir) {
    dir.Write(name, content);
  };
}
std::function<void(const TempDir&)> Remove(std::string name) {
  return [name = std::move(name)](const TempDir& dir) { std::filesystem::remove(dir.Path(name)); };
}

std::string IndexOfManyShards() {
  std::string map;
  for (int i = 0; i < 1025; ++i) {
    const std::string number = std::to_string(i);
    map.append(map.empty() ? "" : ",")
        .append(Concat("\"", number, "\":\"", number, ".safetensors\""));
  }
  return Concat("{\"weight_map\":{", map, "}}");
}
std::string IndexOfManyTensors() {
  std::string map;
  for (int i = 0; i < 65537; ++i) {
    map.append(map.empty() ? "" : ",")
        .append(Concat("\"", std::to_string(i), "\":\"x.safetensors\""));
  }
  return Concat("{\"weight_map\":{", map, "}}");
}

const std::vector<std::string> kNotPlain = {"/index.json: tensor \"b\": expected the plain name"};
const std::vector<Spoiled> kSpoiledIndexes = {
    {"ShardInParent", ShardOfB("../x.safetensors"), Code::kCorrupt, kNotPlain},
    {"ShardInSubdirectory", ShardOfB("sub/x.safetensors"), Code::kCorrupt, kNotPlain},
    {"ShardAbsolute", ShardOfB("/x.safetensors"), Code::kCorrupt, kNotPlain},
    {"ShardWithBackslash", ShardOfB("..\\\\x.safetensors"), Code::kCorrupt, kNotPlain},
    {"ShardHidden", ShardOfB(".x.safetensors"), Code::kCorrupt, kNotPlain},
    {"ShardIsDotDot", ShardOfB(".."), Code::kCorrupt, kNotPlain},
    {"ShardOnlySuffix", ShardOfB(".safetensors"), Code::kCorrupt, kNotPlain},
    {"ShardNameEmpty", ShardOfB(""), Code::kCorrupt, kNotPlain},
    {"ShardWithNulByte", ShardOfB("x.safetensors\\u0000.safetensors"), Code::kCorrupt, kNotPlain},
    {"ShardOfAnotherKind", ShardOfB("x.bin"), Code::kCorrupt, {"found \"x.bin\""}},
    {"ShardNameTooLong", ShardOfB(std::string(250, 'x') + ".safetensors"), Code::kCorrupt,
     kNotPlain},
    {"ShardIsNumber",
     Replace(kIndex, R"({"weight_map":{"b":1}})"),
     Code::kCorrupt,
     {"tensor \"b\": expected the plain name of a .safetensors file, found no string"}},
    {"ShardMissing", ShardOfB("z.safetensors"), Code::kNotFound, {"/z.safetensors: cannot open"}},
    {"ShardEmptyFile",
     Replace("x.safetensors", ""),
     Code::kCorrupt,
     {"/x.safetensors: the file is empty"}},
    {"ShardMalformed",
     Replace("x.safetensors", SafetensorsFile("{}", "1")),
     Code::kCorrupt,
     {"/x.safetensors: expected 0 bytes of data, found 1"}},
    {"ShardTensorMalformed",
     Replace("x.safetensors",
             SafetensorsFile(Concat("{", SafetensorsEntry("b", "F32", "1", "0,1"), "}"), "1")),
     Code::kCorrupt,
     {"/x.safetensors: tensor \"b\": F32 [1]: expected 4 bytes, found 1"}},
    {"TensorInTheWrongShard",
     ShardOfB("y.safetensors"),
     Code::kCorrupt,
     {": tensor \"b\": expected by the index, not found"}},
    {"TensorsSwapped",
     Replace(kIndex,
             IndexOf({{"a", "x.safetensors"}, {"b", "y.safetensors"}, {"c", "y.safetensors"}})),
     Code::kCorrupt,
     {": tensor \"a\": the index expects it in x.safetensors, found in y.safetensors"}},
    {"TensorMissing",
     Replace("y.safetensors", FileOf({"c"})),
     Code::kCorrupt,
     {"/y.safetensors: tensor \"a\": expected by the index, not found"}},
    {"LastTensorMissing",
     Replace("y.safetensors", FileOf({"a"})),
     Code::kCorrupt,
     {"/y.safetensors: tensor \"c\": expected by the index, not found"}},
    {"TensorNotIndexed",
     Replace("x.safetensors", FileOf({"b", "bb"})),
     Code::kCorrupt,
     {"/x.safetensors: tensor \"bb\": not listed in the index"}},
    {"LastTensorNotIndexed",
     Replace("x.safetensors", FileOf({"b", "d"})),
     Code::kCorrupt,
     {"/x.safetensors: tensor \"d\": not listed in the index"}},
    {"TensorInTwoShards",
     Replace("x.safetensors", FileOf({"b", "c"})),
     Code::kCorrupt,
     {": tensor \"c\" is in both x.safetensors and y.safetensors"}},
    {"NotJson", Replace(kIndex, "{"), Code::kCorrupt, {"/index.json: JSON near byte"}},
    {"NotAnObject", Replace(kIndex, "[]"), Code::kCorrupt, {"/index.json: expected an object"}},
    {"WithoutWeightMap",
     Replace(kIndex, "{}"),
     Code::kCorrupt,
     {"/index.json: weight_map: expected an object"}},
    {"WeightMapIsArray",
     Replace(kIndex, R"({"weight_map":[]})"),
     Code::kCorrupt,
     {"weight_map: expected an object"}},
    {"WeightMapEmpty",
     Replace(kIndex, R"({"weight_map":{}})"),
     Code::kCorrupt,
     {"weight_map lists no tensors"}},
    {"SameTensorTwice",
     Replace(kIndex, IndexOf({{"b", "x.safetensors"}, {"b", "y.safetensors"}})),
     Code::kCorrupt,
     {"/index.json: JSON near byte", "the name \"b\" appears twice"}},
    {"TooManyShards",
     Replace(kIndex, IndexOfManyShards()),
     Code::kUnsupported,
     {": 1025 shards; the limit is 1024"}},
    {"TooManyTensors",
     Replace(kIndex, IndexOfManyTensors()),
     Code::kUnsupported,
     {"weight_map: 65537 tensors, the limit is 65536"}},
    {"TooLarge",
     Replace(kIndex, std::string((size_t{16} << 20) + 1, ' ')),
     Code::kInvalid,
     {"/index.json: 16777217 bytes, the limit is 16777216"}},
};

const std::vector<Spoiled> kSpoiledDirectories = {
    {"ConfigMissing", Remove("config.json"), Code::kNotFound, {"/config.json: cannot open"}},
    {"ConfigTooLarge",
     Replace("config.json", Concat("{", std::string((size_t{1} << 20) - 1, ' '), "}")),
     Code::kInvalid,
     {"/config.json: 1048577 bytes, the limit is 1048576"}},
    {"ConfigNotJson",
     Replace("config.json", "model_type: gpt_oss"),
     Code::kCorrupt,
     {"/config.json: JSON near byte 0"}},
    {"ConfigNotAnObject",
     Replace("config.json", "[1]"),
     Code::kCorrupt,
     {"/config.json: expected an object"}},
    {"ConfigEmpty", Replace("config.json", ""), Code::kCorrupt, {"/config.json: JSON near byte 0"}},
    {"ConfigNestedDeeply",
     Replace("config.json", std::string(100000, '[')),
     Code::kCorrupt,
     {"/config.json: JSON near byte"}},
    {"ConfigIsDirectory",
     [](const TempDir& dir) {
       std::filesystem::remove(dir.Path("config.json"));
       std::filesystem::create_directory(dir.Path("config.json"));
     },
     Code::kInvalid,
     {"/config.json: not a regular file"}},
    {"BothSingleAndIndex",
     Replace("model.safetensors", FileOf({"b"})),
     Code::kInvalid,
     {": holds both model.safetensors and model.safetensors.index.json"}},
    {"NoWeights",
     Remove(kIndex),
     Code::kNotFound,
     {": expected model.safetensors or model.safetensors.index.json, found neither"}},
    {"ShardIsDanglingLink",
     [](const TempDir& dir) {
       std::filesystem::remove(dir.Path("x.safetensors"));
       std::filesystem::create_symlink("nowhere", dir.Path("x.safetensors"));
     },
     Code::kNotFound,
     {"/x.safetensors: cannot open"}},
    {"ShardIsLinkToItself",
     [](const TempDir& dir) {
       std::filesystem::remove(dir.Path("x.safetensors"));
       std::filesystem::create_symlink("x.safetensors", dir.Path("x.safetensors"));
     },
     Code::kIo,
     {"/x.safetensors: cannot open"}},
    {"ShardIsDirectory",
     [](const TempDir& dir) {
       std::filesystem::remove(dir.Path("x.safetensors"));
       std::filesystem::create_directory(dir.Path("x.safetensors"));
     },
     Code::kInvalid,
     {"/x.safetensors: not a regular file"}},
    // Opening a pipe nobody writes to would wait for ever.
    {"ShardIsPipe",
     [](const TempDir& dir) {
       std::filesystem::remove(dir.Path("x.safetensors"));
       ASSERT_EQ(::mkfifo(dir.Path("x.safetensors").c_str(), 0600), 0);
     },
     Code::kInvalid,
     {"/x.safetensors: not a regular file"}},
    {"NumberedShardMissing",
     [](const TempDir& dir) {
       std::filesystem::remove(dir.Path(kIndex));
       dir.Write("m-00001-of-00003.safetensors", FileOf({"a"}));
       dir.Write("m-00003-of-00003.safetensors", FileOf({"b"}));
     },
     Code::kCorrupt,
     {": expected 3 shards \"m\" numbered from 1, found 2"}},
    {"LastNumberedShardMissing",
     [](const TempDir& dir) {
       std::filesystem::remove(dir.Path(kIndex));
       dir.Write("m-00001-of-00003.safetensors", FileOf({"a"}));
       dir.Write("m-00002-of-00003.safetensors", FileOf({"b"}));
     },
     Code::kCorrupt,
     {": expected 3 shards \"m\" numbered from 1, found 2"}},
    {"NumberedShardsOfTwoSets",
     [](const TempDir& dir) {
       std::filesystem::remove(dir.Path(kIndex));
       dir.Write("m-00001-of-00002.safetensors", FileOf({"a"}));
       dir.Write("n-00002-of-00002.safetensors", FileOf({"b"}));
     },
     Code::kCorrupt,
     {"found 2 with n-00002-of-00002.safetensors as number 2"}},
    {"NumberedShardsShareATensor",
     [](const TempDir& dir) {
       std::filesystem::remove(dir.Path(kIndex));
       dir.Write("m-00001-of-00002.safetensors", FileOf({"a"}));
       dir.Write("m-00002-of-00002.safetensors", FileOf({"a"}));
     },
     Code::kCorrupt,
     {": tensor \"a\" is in both m-00001"}},
    {"NoTensors",
     [](const TempDir& dir) {
       std::filesystem::remove(dir.Path(kIndex));
       dir.Write("model.safetensors", SafetensorsFile("{}", ""));
     },
     Code::kCorrupt,
     {": the 1 files contain no tensors"}},
};

class SpoiledSafetensorsDir : public ::testing::TestWithParam<Spoiled> {};

TEST_P(SpoiledSafetensorsDir, IsRefused) {
  TempDir dir;
  WriteTwoShards(dir);
  ASSERT_TRUE(OpenSafetensors(dir.path()).ok());
  GetParam().spoil(dir);
  auto opened = OpenSafetensors(dir.path());
  ASSERT_FALSE(opened.ok());
  const std::string message = opened.status().message();
  EXPECT_EQ(opened.status().code(), GetParam().code) << message;
  EXPECT_EQ(message.rfind(dir.path(), 0), 0u) << message;
  for (std::string part : GetParam().says) {
    if (part.starts_with("/index.json")) part.replace(1, 10, kIndex);
    EXPECT_THAT(message, HasSubstr(part));
  }
}

std::string NameOfCase(const ::testing::TestParamInfo<Spoiled>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Index, SpoiledSafetensorsDir, ::testing::ValuesIn(kSpoiledIndexes),
                         NameOfCase);
INSTANTIATE_TEST_SUITE_P(Directory, SpoiledSafetensorsDir, ::testing::ValuesIn(kSpoiledDirectories),
                         NameOfCase);

TEST(SafetensorsDirTest, RefusesAFileThatIsNotPartOfTheCheckpoint) {
  TempDir dir;
  WriteTwoShards(dir);
  dir.Write("other.safetensors", FileOf({"b"}));
  auto other = OpenSafetensors(dir.Path("other.safetensors"));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.status().code(), Code::kInvalid);
  EXPECT_THAT(other.status().message(), HasSubstr("/other.safetensors does not belong to"));
  auto absent = OpenSafetensors(dir.Path("absent.safetensors"));
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace hearth
