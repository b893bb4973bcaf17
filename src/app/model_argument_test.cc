// SPDX-License-Identifier: Apache-2.0
#include "app/model_argument.h"

#include <gtest/gtest.h>

#include "store/model_store.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using testing::TempDir;

class ModelArgumentTest : public ::testing::Test {
 protected:
  Result<ModelArgument> Find(const std::string& given) {
    return FindModelArgument(given, [&](const char* name) {
      return std::string_view(name) == "HOME" ? dir_.Path("home") : std::string();
    });
  }
  std::string PathOf(const std::string& given) {
    Result<ModelArgument> found = Find(given);
    return found.ok() ? found->path : found.status().message();
  }
  TempDir dir_;
};

TEST_F(ModelArgumentTest, PathsStayWhatTheyAre) {
  dir_.Write("m.gguf", "GGUF").Write("hf/config.json", "{}").Write("text", "hello");
  for (const char* name : {"m.gguf", "hf", "text"}) {
    EXPECT_EQ(PathOf(dir_.Path(name)), dir_.Path(name));
    EXPECT_EQ(Find(dir_.Path(name))->name, "");
  }
}

TEST_F(ModelArgumentTest, AFolderWithOneModelStandsForIt) {
  dir_.Write("one/m-00002-of-00002.gguf", "GGUF").Write("one/m-00001-of-00002.gguf", "GGUF");
  EXPECT_EQ(PathOf(dir_.Path("one")), dir_.Path("one/m-00001-of-00002.gguf"));
  dir_.Write("two/a.gguf", "GGUF").Write("two/b.gguf", "GGUF");
  EXPECT_EQ(
      PathOf(dir_.Path("two")),
      dir_.Path("two") + ": this folder has several models: name one of its files: a.gguf, b.gguf");
  dir_.Write("half/m-00001-of-00002.gguf", "GGUF");
  EXPECT_NE(PathOf(dir_.Path("half")).find("no whole model"), std::string::npos);
  dir_.Write("none/x.txt", "");
  EXPECT_NE(PathOf(dir_.Path("none")).find("has no model"), std::string::npos);
}

TEST_F(ModelArgumentTest, MissingPathsSayWhatIsBeside) {
  dir_.Write("m.gguf", "GGUF");
  EXPECT_EQ(PathOf(dir_.Path("n.gguf")),
            dir_.Path("n.gguf") + ": no such file; " + dir_.path() + " has: m.gguf");
  EXPECT_NE(PathOf(dir_.Path("no/n.gguf")).find("no folder"), std::string::npos);
}

TEST_F(ModelArgumentTest, PointersOfGitAreNoModels) {
  dir_.Write("m.gguf", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n");
  EXPECT_NE(PathOf(dir_.Path("m.gguf")).find("git lfs pull"), std::string::npos);
}

TEST_F(ModelArgumentTest, NamesOfTheStore) {
  const ModelStore store(dir_.Path("home/.local/share/hearth/models"));
  const Manifest manifest{.name = "mine", .is_complete = true, .files = {{"x.gguf", 1, ""}}};
  ASSERT_TRUE(store.MakeFolder("mine").ok() && store.Write(manifest).ok());
  Result<ModelArgument> found = Find("mine");
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->path, store.PathOf(manifest));
  EXPECT_EQ(found->name, "mine");
  EXPECT_NE(PathOf("mime").find("did you mean mine?"), std::string::npos);
}

TEST_F(ModelArgumentTest, UnknownNamesSayHowToGetThem) {
  EXPECT_NE(PathOf("gpt-oss-20b").find("`hearth pull gpt-oss-20b`"), std::string::npos);
  EXPECT_NE(PathOf("a/b:Q8_0").find("`hearth pull a/b:Q8_0`"), std::string::npos);
  EXPECT_NE(PathOf("https://x/y.gguf").find("hearth pull https"), std::string::npos);
  EXPECT_NE(PathOf("").find("name a model"), std::string::npos);
  EXPECT_NE(PathOf("a b").find("expected a name"), std::string::npos);
}

}  // namespace
}  // namespace hearth
