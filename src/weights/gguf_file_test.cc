// SPDX-License-Identifier: Apache-2.0
// Files on disk: single ones, split sets, and sets whose parts do not belong together.
#include "weights/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "testing/gguf_builder.h"

namespace hearth {
namespace {

using testing::AsBytes;
using ::testing::ElementsAre;
using testing::GgufBuilder;
using ::testing::HasSubstr;

class GgufFile : public ::testing::Test {
 protected:
  GgufFile() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    // With the process id: the suite may run twice at a time.
    folder_ = Printf("%shearth_%d_%s", ::testing::TempDir().c_str(), ::getpid(), info->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  ~GgufFile() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }
  // A set of three, of one, two and no tensors, as a writer leaves it. The first holds the keys.
  static std::vector<GgufBuilder> Set() {
    std::vector<GgufBuilder> set(3);
    set[0].AddString("general.architecture", "llama").AddTensor("a", {4});
    set[1].AddTensor("b", {2, 3}).AddTensor("c", {8});
    for (size_t i = 0; i < set.size(); ++i) set[i].AddSplit(static_cast<uint16_t>(i), 3, 3);
    return set;
  }
  std::string WriteSet(const std::vector<GgufBuilder>& set) const {
    for (size_t i = 0; i < set.size(); ++i) {
      Write(Printf("m-%05zu-of-00003.gguf", i + 1), set[i].Build());
    }
    return Path("m-00001-of-00003.gguf");
  }
  static void ExpectRefused(const std::string& path, Code code, const std::string& message) {
    const Status status = WeightFile::Open(path).status();
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_THAT(status.message(), HasSubstr(path));
    EXPECT_THAT(status.message(), HasSubstr(message));
  }

  std::string folder_;
};

TEST_F(GgufFile, IsKnownByItsFirstBytesWhateverItsName) {
  const std::string path = Write("sha256-0123", GgufBuilder().AddTensor("w", {4}).Build());
  auto file = WeightFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ((*file)->format(), WeightFormat::kGguf);
  EXPECT_STREQ(NameOf((*file)->format()), "GGUF");
  EXPECT_EQ((*file)->num_shards(), 1);
  EXPECT_TRUE((*file)->Has("w"));
  EXPECT_FALSE((*file)->Has("v"));
  auto found = (*file)->Find("w");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->bytes[15], std::byte{'a'});
  const Status missing = (*file)->Find("v\n").status();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_EQ(missing.message(), path + ": tensor \"v\\x0a\" not found among 1 tensors");
}

TEST_F(GgufFile, OtherContentIsRefused) {
  ExpectRefused(Write("x.gguf", "PK\x03\x04 and more"), Code::kUnsupported,
                "the file starts with \"PK\\x03\\x04\"");
  ExpectRefused(Write("p.gguf", "PK\x03\x04 and more"), Code::kUnsupported, "convert it to GGUF");
  ExpectRefused(Write("l.gguf", "version https://git-lfs.github.com/spec/v1\n"), Code::kUnsupported,
                "starts with \"vers\"; this is a Git LFS pointer: run `git lfs pull`");
  ExpectRefused(Write("w.gguf", "<!doctype html>"), Code::kUnsupported, "this is a web page");
  ExpectRefused(Write("o.gguf", "tjgg\x03"), Code::kUnsupported, "from before GGUF");
  ExpectRefused(Write("y.gguf", "GG"), Code::kUnsupported, "starts with \"GG\"");
  ExpectRefused(Write("z.gguf", "GGUF"), Code::kCorrupt, "version at byte 4: expected 4 bytes");
  ExpectRefused(Write("empty.gguf", ""), Code::kCorrupt, "the file is empty; download it again");
  ExpectRefused(Path("absent.gguf"), Code::kNotFound, "No such file");
}

TEST_F(GgufFile, ErrorsReadLikeAPath) {
  GgufBuilder builder;
  builder.AddTensor("blk.0.attn_q.weight", {4});
  builder.tensors[0].type = 17;
  const std::string path = Write("m.gguf", builder.Build());
  EXPECT_EQ(OpenGguf(path).status().message(),
            path +
                ": tensor 1 of 1: \"blk.0.attn_q.weight\": tensor type 17 (IQ2_XS) is not "
                "supported");
}

TEST_F(GgufFile, FirstOfASetStandsForAll) {
  const auto set = Set();
  auto file = WeightFile::Open(WriteSet(set));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ((*file)->num_shards(), 3);
  uint64_t bytes = 0;
  for (const GgufBuilder& part : set) bytes += part.Build().size();
  EXPECT_EQ((*file)->file_bytes(), bytes);
  EXPECT_EQ((*file)->metadata()->Find("general.architecture")->String(), "llama");
  std::vector<std::string> names;
  for (const NamedTensor& tensor : (*file)->tensors()) names.emplace_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("a", "b", "c"));
  auto c = (*file)->Find("c");
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(c->bytes.size(), 32u);
  EXPECT_EQ(c->bytes[31], std::byte{'b'});  // the second of its own file
}

TEST_F(GgufFile, CountsOfASetMayBeOfAnyIntegerType) {
  auto set = Set();
  for (size_t i = 0; i < set.size(); ++i) {
    set[i].keys.resize(set[i].keys.size() - 3);
    set[i].Add("split.no", GgufType::kI32, static_cast<int32_t>(i));
    set[i].Add("split.count", GgufType::kU64, uint64_t{3});
    set[i].Add("split.tensors.count", GgufType::kU8, uint8_t{3});
  }
  EXPECT_TRUE(WeightFile::Open(WriteSet(set)).ok());
}

TEST_F(GgufFile, ASetOfOneNeedsNoSpecialName) {
  EXPECT_TRUE(OpenGguf(Write("m.gguf", GgufBuilder().AddSplit(0, 1, 0).Build())).ok());
}

TEST_F(GgufFile, ALaterFileSaysWhichToOpen) {
  WriteSet(Set());
  ExpectRefused(Path("m-00002-of-00003.gguf"), Code::kInvalid,
                "file 2 of a split set of 3: open " + Path("m-00001-of-00003.gguf"));
}

TEST_F(GgufFile, AMissingFileOfASetIsNamed) {
  const std::string first = WriteSet(Set());
  std::filesystem::remove(Path("m-00003-of-00003.gguf"));
  ExpectRefused(first, Code::kNotFound, Path("m-00003-of-00003.gguf") + ": cannot open");
}

TEST_F(GgufFile, ACorruptFileOfASetIsNamed) {
  auto set = Set();
  set[1].tensors[0].offset = 7;
  ExpectRefused(WriteSet(set), Code::kCorrupt,
                Path("m-00002-of-00003.gguf") + ": tensor \"b\": offset 7 is not a multiple");
}

TEST_F(GgufFile, AWrongNumberInASetIsRefused) {
  auto set = Set();
  set[1] = Set()[2];
  ExpectRefused(WriteSet(set), Code::kCorrupt,
                Path("m-00002-of-00003.gguf") +
                    ": expected file 2 of 3 with 3 tensors in all "
                    "(split.no, split.count, split.tensors.count), found file 3 of 3 with 3");
}

TEST_F(GgufFile, AFileOfAnotherSetIsRefused) {
  auto set = Set();
  set[2] = GgufBuilder().AddSplit(2, 4, 3);
  ExpectRefused(WriteSet(set), Code::kCorrupt, "found file 3 of 4 with 3");
  set[2] = GgufBuilder().AddSplit(2, 3, 11);
  ExpectRefused(WriteSet(set), Code::kCorrupt, "found file 3 of 3 with 11");
  set[2] = GgufBuilder().AddString("general.architecture", "llama");
  ExpectRefused(WriteSet(set), Code::kCorrupt, "found file 1 of 1 with 0");
}

TEST_F(GgufFile, ATensorInTwoFilesIsRefused) {
  auto set = Set();
  set[1].tensors[1].name = "a";
  ExpectRefused(WriteSet(set), Code::kCorrupt,
                Path("m-00002-of-00003.gguf") + ": tensor \"a\" is already in " +
                    Path("m-00001-of-00003.gguf"));
}

TEST_F(GgufFile, TensorsMissingFromASetAreCounted) {
  auto set = Set();
  set[1].tensors.pop_back();
  ExpectRefused(WriteSet(set), Code::kCorrupt,
                "split.tensors.count is 3, but the 3 files hold 2 tensors");
}

TEST_F(GgufFile, NameAndNumberMustAgree) {
  ExpectRefused(Write("m.gguf", Set()[0].Build()), Code::kInvalid,
                "file 1 of a split set of 3: expected a name that ends in "
                "\"-00001-of-00003.gguf\"");
  ExpectRefused(Write("m-00002-of-00003.gguf", Set()[0].Build()), Code::kInvalid,
                "file 1 of a split set of 3: expected a name that ends");
}

TEST_F(GgufFile, AbsurdSetsAreRefused) {
  const auto refuse = [this](GgufBuilder builder, const char* message) {
    ExpectRefused(Write("m-00001-of-00003.gguf", builder.Build()), Code::kCorrupt, message);
  };
  refuse(GgufBuilder().AddSplit(0, 0, 0), "split.count is 0, expected 1 to 65535");
  refuse(GgufBuilder().AddSplit(3, 3, 0), "split.no is 3, expected less than split.count 3");
  refuse(GgufBuilder().AddSplit(0, 1, -1),
         "split.tensors.count: expected an unsigned integer, found a negative i32");
  refuse(GgufBuilder().AddSplit(0, 1, 5), "split.tensors.count is 5, but the 1 files hold 0");
  refuse(GgufBuilder()
             .Add("split.count", GgufType::kU64, ~uint64_t{0})
             .Add<uint8_t>("split.no", GgufType::kU8, 0),
         "split.count is 18446744073709551615, expected 1 to 65535");
  refuse(GgufBuilder().Add<uint8_t>("split.count", GgufType::kU8, 3),
         "split.no: missing, although split.count is present");
  refuse(GgufBuilder().AddString("split.count", "3"),
         "split.count: expected an unsigned integer, found string");
  refuse(GgufBuilder().Add("split.count", GgufType::kF32, 3.0f),
         "split.count: expected an unsigned integer, found f32");
  GgufBuilder without_total;
  without_total.AddSplit(0, 3, 3).keys.pop_back();
  refuse(without_total, "split.tensors.count: missing");
}

TEST_F(GgufFile, OpensFromMemoryButNoSets) {
  const std::string single = GgufBuilder().AddTensor("w", {4}).Build();
  auto file = OpenGgufBytes(AsBytes(single));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_TRUE((*file)->Has("w"));
  EXPECT_EQ((*file)->file_bytes(), single.size());
  const std::string part = Set()[0].Build();
  EXPECT_EQ(OpenGgufBytes(AsBytes(part)).status().message(),
            "GGUF in memory: one of a split set of 3 files");
  const std::string wrong = GgufBuilder().AddSplit(0, 1, 5).Build();
  EXPECT_THAT(OpenGgufBytes(AsBytes(wrong)).status().message(), HasSubstr("split.tensors.count"));
}

}  // namespace
}  // namespace hearth
