// SPDX-License-Identifier: Apache-2.0
#include "app/model_digest.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

class ModelDigestTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  static uint64_t Digest(const std::vector<std::string>& files) {
    Result<uint64_t> digest = DigestOf(files);
    EXPECT_TRUE(digest.ok()) << digest.status().message();
    return digest.ok() ? *digest : 0;
  }
  static std::string Identity(const std::vector<std::string>& files) {
    Result<std::string> identity = IdentityOf(files);
    EXPECT_TRUE(identity.ok()) << identity.status().message();
    return identity.ok() ? *identity : "";
  }
  const testing::TempDir dir_;
  const fs::path folder_ = dir_.path();
};

TEST_F(ModelDigestTest, ChangesWithEveryByteAndNotWithThePlace) {
  std::string text(9 << 20, 'a');  // more than one piece
  const std::string one = Write("one", text), two = Write("two", text);
  EXPECT_EQ(Digest({one}), Digest({two}));
  std::set<uint64_t> digests{Digest({one}), Digest({one, two})};
  for (const size_t at : {size_t{0}, size_t{8} << 20, text.size() - 1}) {
    std::string changed = text;
    changed[at] = 'b';
    digests.insert(Digest({Write("two", changed)}));
  }
  digests.insert(Digest({Write("two", text + "a")}));
  digests.insert(Digest({Write("two", "")}));
  EXPECT_EQ(digests.size(), 7u);
  EXPECT_EQ(DigestOf({(folder_ / "none").string()}).status().code(), Code::kIo);
}

TEST_F(ModelDigestTest, TheIdentityChangesWhenAFileIsReplacedOrTouched) {
  const std::string path = Write("one", "abc");
  const std::string first = Identity({path});
  EXPECT_EQ(Identity({path}), first);
  fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(1));
  const std::string touched = Identity({path});
  EXPECT_NE(touched, first);
  Write("other", "abd");
  fs::last_write_time(folder_ / "other", fs::last_write_time(path));
  fs::rename(folder_ / "other", path);
  EXPECT_NE(Identity({path}), touched) << "as large and as old, and another";
  EXPECT_EQ(IdentityOf({(folder_ / "none").string()}).status().code(), Code::kIo);
}

TEST_F(ModelDigestTest, ADirectoryIsItsWeightsAndDescriptions) {
  const std::string b = Write("b.safetensors", ""), a = Write("a.safetensors", "");
  const std::string config = Write("config.json", "");
  Write("README.md", "");
  Write("other.gguf", "");
  const Model none{};
  Result<std::vector<std::string>> files = FilesOf(none, folder_.string());
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(*files, (std::vector<std::string>{a, b, config}));
  Result<std::vector<std::string>> by_shard = FilesOf(none, a);
  ASSERT_TRUE(by_shard.ok());
  EXPECT_EQ(*by_shard, *files) << "a shard stands for its directory";
  Result<std::vector<std::string>> one = FilesOf(none, "m.gguf");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(*one, std::vector<std::string>{"m.gguf"});
}

}  // namespace
}  // namespace hearth
