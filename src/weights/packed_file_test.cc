// SPDX-License-Identifier: Apache-2.0
// A packed file says what its checkpoint said, and whatever is wrong with it is refused, never
// believed and never fatal.
#include "weights/packed_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "testing/data.h"

namespace hearth {
namespace {

constexpr uint32_t kLayout = 7;

std::string Fixture(const std::string& name) {
  return testing::RepoPath("tests/fixtures/families/" + name);
}
std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

class PackedFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "hearth-pack-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    weights_.resize(size_t{3} << 20);
    std::mt19937 random(1);
    for (std::byte& byte : weights_) byte = static_cast<std::byte>(random());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Packs a fixture with made-up weights; returns the file's bytes.
  std::string Packed(const std::string& fixture) {
    original_ = *WeightFile::Open(Fixture(fixture));
    std::vector<NamedText> texts = {{"tokenizer.json", "{\"a\":1}"}};
    if (original_->config() != nullptr) {
      texts.push_back({"config.json", WriteJson(*original_->config())});
    }
    auto sources = SourcesOf(*original_, texts);
    EXPECT_TRUE(sources.ok());
    const PackedContent content{kLayout, *sources, weights_, "besides"};
    EXPECT_TRUE(WritePackedFile(path(), content, nullptr).ok());
    return *ReadTextFile(path(), size_t{1} << 30);
  }
  std::string path() const { return folder_ + "/packed"; }

  // What opening says, and if it opens, what the chunks say.
  static Status Verdict(const std::string& file) {
    auto opened = PackedFile::FromBytes("f", Bytes(file));
    if (!opened.ok()) return std::move(opened).status();
    for (int i = 0; i < (*opened)->num_chunks(); ++i) HEARTH_TRY((*opened)->CheckChunk(i));
    return Status();
  }
  // A file whose every hash is right, around these sources.
  std::string Sealed(const std::string& sources) const {
    PackedHeader header = PlaceSections(kLayout, sources.size(), 64, 0);
    std::string file(header.file_bytes, '\0');
    std::memcpy(file.data() + PackedFormat::kHeaderBytes, sources.data(), sources.size());
    for (uint64_t i = 0; i < header.num_chunks(); ++i) {
      const uint64_t begin = header.chunk_begin(i), size = header.chunk_end(i) - begin;
      const ChunkHash hash = HashOf(Bytes(file).subspan(begin, size));
      std::memcpy(file.data() + header.hashes_offset + i * sizeof hash, &hash, sizeof hash);
    }
    header.hash_of_hashes = HashOf(Bytes(file).subspan(header.hashes_offset));
    const std::string head = WriteHeader(header);
    std::memcpy(file.data(), head.data(), head.size());
    return file;
  }

  std::string folder_;
  std::vector<std::byte> weights_;
  std::unique_ptr<WeightFile> original_;
};

TEST_F(PackedFileTest, SaysWhatItsCheckpointSaid) {
  for (const char* fixture : {"llama3/model.gguf", "gpt-oss/hf-mxfp4", "qwen3moe/hf"}) {
    SCOPED_TRACE(fixture);
    Packed(fixture);
    auto opened = WeightFile::Open(path());
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    const WeightFile& file = **opened;
    EXPECT_EQ(file.format(), original_->format());
    ASSERT_EQ(file.tensors().size(), original_->tensors().size());
    for (size_t i = 0; i < file.tensors().size(); ++i) {
      EXPECT_EQ(file.tensors()[i].name, original_->tensors()[i].name);
      EXPECT_EQ(file.tensors()[i].tensor.dtype, original_->tensors()[i].tensor.dtype);
      EXPECT_EQ(file.tensors()[i].tensor.shape, original_->tensors()[i].tensor.shape);
    }
    ASSERT_NE(file.packed(), nullptr);
    EXPECT_EQ(file.packed()->layout(), kLayout);
    EXPECT_EQ(std::memcmp(file.packed()->weights().data(), weights_.data(), weights_.size()), 0);
    EXPECT_EQ(std::memcmp(file.packed()->extra().data(), "besides", 7), 0);
  }
}

TEST_F(PackedFileTest, EveryByteIsUnderAHash) {
  std::string file = Packed("llama3/model.gguf");
  ASSERT_TRUE(Verdict(file).ok()) << Verdict(file).message();
  std::mt19937 random(2);
  std::vector<size_t> places = {0, 7, 8, 12, 16, 87, 88, 103, 104, 4095, 4096, file.size() - 1};
  for (int i = 0; i < 300; ++i) places.push_back(random() % file.size());
  for (int i = 0; i < 300; ++i) places.push_back(random() % 8192);
  for (const size_t place : places) {
    file[place] = static_cast<char>(file[place] ^ (1 << random() % 8));
    const Status refused = Verdict(file);
    EXPECT_FALSE(refused.ok()) << "byte " << place;
    file = *ReadTextFile(path(), size_t{1} << 30);
  }
}

TEST_F(PackedFileTest, ABadChunkIsNamedWithBothHashes) {
  std::string file = Packed("llama3/model.gguf");
  const size_t place = (size_t{2} << 20) + (size_t{1} << 20) + 5;  // the weights' second chunk
  const auto chunk = Bytes(file).subspan(size_t{3} << 20, size_t{1} << 20);
  const std::string expected = HexOf(HashOf(chunk));
  file[place] = static_cast<char>(file[place] ^ 1);
  EXPECT_EQ(Verdict(file).code(), Code::kCorrupt);
  EXPECT_EQ(Verdict(file).message(), "f: chunk 3 (bytes 3145728 to 4194304): expected hash " +
                                         expected + ", found " + HexOf(HashOf(chunk)));
}

TEST_F(PackedFileTest, TornFilesAreRefused) {
  const std::string file = Packed("llama3/model.gguf");
  for (const size_t size : {size_t{0}, size_t{1}, size_t{8}, size_t{103}, size_t{4095},
                            size_t{4096}, size_t{2} << 20, file.size() / 2, file.size() - 1}) {
    EXPECT_EQ(Verdict(file.substr(0, size)).code(), Code::kCorrupt) << size;
  }
  EXPECT_EQ(Verdict(file + "x").code(), Code::kCorrupt);
  std::string other = file;
  other[8] = 2;
  EXPECT_EQ(Verdict(other).code(), Code::kUnsupported);
}

// Hashes keep accidents out, not authors: with all of them right, nothing may be believed either.
TEST_F(PackedFileTest, LyingHeadersAreRefused) {
  const std::string file = Packed("llama3/model.gguf");
  const PackedHeader sound = *ReadHeader(Bytes(file));
  for (int field = 0; field < 6; ++field) {
    for (const uint64_t wrong :
         {uint64_t{0}, uint64_t{1}, uint64_t{4096}, file.size(), file.size() + 1, uint64_t{1} << 40,
          UINT64_MAX, UINT64_MAX - 4095, uint64_t{1} << 63}) {
      PackedHeader header = sound;
      uint64_t* const fields[] = {&header.file_bytes,     &header.sources_bytes,
                                  &header.weights_offset, &header.weights_bytes,
                                  &header.extra_bytes,    &header.hashes_offset};
      // A few extra bytes less leave everything in place; who reads them must notice.
      if (*fields[field] == wrong || (field == 4 && wrong == 1)) continue;
      *fields[field] = wrong;
      EXPECT_EQ(Verdict(WriteHeader(header) + file.substr(4096)).code(), Code::kCorrupt)
          << field << " = " << wrong;
    }
  }
}

TEST_F(PackedFileTest, LyingSourcesAreRefused) {
  Packed("llama3/model.gguf");
  const std::vector<PackedSource> sound = *SourcesOf(*original_, {});
  ASSERT_TRUE(Verdict(Sealed(WriteSources(sound))).ok());
  const auto refuses = [&](const char* what, auto change) {
    std::vector<PackedSource> sources = sound;
    change(sources);
    EXPECT_FALSE(Verdict(Sealed(WriteSources(sources))).ok()) << what;
  };
  refuses("none", [](auto& s) { s.clear(); });
  refuses("twice", [](auto& s) { s.push_back(s[0]); });
  refuses("a folder", [](auto& s) { s[0].name = "../x"; });
  refuses("no name", [](auto& s) { s[0].name = ""; });
  refuses("a kind", [](auto& s) { s[0].kind = static_cast<PackedSource::Kind>(3); });
  refuses("the other kind", [](auto& s) { s[0].kind = PackedSource::Kind::kSafetensors; });
  refuses("a text only", [](auto& s) { s[0].kind = PackedSource::Kind::kText; });
  refuses("no size", [](auto& s) { s[0].size = 0; });
  refuses("all sizes", [](auto& s) { s[0].size = UINT64_MAX; });
  refuses("less than its tensors", [](auto& s) { s[0].size -= 4096; });
  refuses("half a header", [](auto& s) { s[0].pieces[0].bytes = s[0].pieces[0].bytes.first(200); });
  refuses("no header", [](auto& s) { s[0].pieces.erase(s[0].pieces.begin()); });
  refuses("elsewhere", [](auto& s) { s[0].pieces[0].offset = 8; });
  refuses("outside", [](auto& s) { s[0].pieces[0].offset = UINT64_MAX - 3; });
  refuses("overlap", [](auto& s) { s[0].pieces.push_back(s[0].pieces[0]); });
}

// Any damage to the sources, all hashes made right again: refused or opened, but nothing else.
TEST_F(PackedFileTest, SurvivesRandomSources) {
  std::mt19937 random(3);
  for (const char* fixture : {"llama3/model.gguf", "gpt-oss/hf-mxfp4"}) {
    Packed(fixture);
    const std::string config =
        original_->config() != nullptr ? WriteJson(*original_->config()) : "{}";
    const std::vector<NamedText> texts = {{"config.json", config}};
    const std::string sound = WriteSources(*SourcesOf(*original_, texts));
    int refused = 0;
    for (int i = 0; i < 400; ++i) {
      std::string sources = sound;
      for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
        const size_t at =
            random() % std::min<size_t>(sources.size(), random() % 2 == 0 ? 64 : 4096);
        sources[at] = static_cast<char>(random());
        if (random() % 16 == 0) sources.resize(at + 1);
      }
      if (!Verdict(Sealed(sources)).ok()) ++refused;
    }
    EXPECT_GT(refused, 100) << fixture;
  }
}

TEST_F(PackedFileTest, AFullDiskLeavesNothingBehind) {
  std::filesystem::create_symlink("/dev/full", path() + ".tmp");
  const Status refused = WritePackedFile(path(), {kLayout, {}, weights_, ""}, nullptr);
  EXPECT_EQ(refused.code(), Code::kIo);
  EXPECT_NE(refused.message().find("No space left"), std::string::npos) << refused.message();
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace hearth
