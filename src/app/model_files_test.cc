// SPDX-License-Identifier: Apache-2.0
#include "app/model_files.h"

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace hearth {
namespace {

using Paths = std::vector<std::string>;

TEST(ModelFiles, AFileIsItself) {
  const testing::TempDir dir;
  dir.Write("a.gguf", "").Write("b.gguf", "").Write("a.json", "").Write("a.hearth", "");
  EXPECT_EQ(ModelFilesOf(dir.Path("a.gguf")).files, Paths{dir.Path("a.gguf")});
  EXPECT_TRUE(ModelFilesOf(dir.Path("a.gguf")).folders.empty());
  EXPECT_EQ(ModelFilesOf(dir.Path("a.hearth")).files, Paths{dir.Path("a.hearth")});
  EXPECT_EQ(ModelFilesOf("blob").files, Paths{"blob"}) << "of this folder, under no known name";
}

TEST(ModelFiles, ASplitSetIsAllOfItsParts) {
  const testing::TempDir dir;
  dir.Write("m-00001-of-00003.gguf", "").Write("m-00002-of-00003.gguf", "");
  dir.Write("m-00003-of-00003.gguf", "").Write("m-00001-of-00002.gguf", "");
  dir.Write("m.gguf", "").Write("om-00002-of-00003.gguf", "").Write("m-0000x-of-00003.gguf", "");
  EXPECT_EQ(ModelFilesOf(dir.Path("m-00001-of-00003.gguf")).files,
            (Paths{dir.Path("m-00001-of-00003.gguf"), dir.Path("m-00002-of-00003.gguf"),
                   dir.Path("m-00003-of-00003.gguf")}));
}

TEST(ModelFiles, AFolderIsItsWeightsAndTheTextsThatAreReadBesideThem) {
  const testing::TempDir dir;
  for (const char* name :
       {"config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json",
        "chat_template.jinja", "a.safetensors", "model.safetensors.index.json"}) {
    dir.Write(name, "");
  }
  const Paths own = ModelFilesOf(dir.path()).files;
  EXPECT_EQ(own.size(), 7u);
  dir.Write("other.gguf", "").Write("notes.txt", "").Write("secrets.json", "");
  dir.Write("original/config.json", "").Write("original/b.safetensors", "");
  EXPECT_EQ(ModelFilesOf(dir.path()).files, own);
  EXPECT_EQ(ModelFilesOf(dir.path()).folders, Paths{dir.path()});
  EXPECT_EQ(ModelFilesOf(dir.Path("a.safetensors")).files, own) << "it stands for its folder";
}

TEST(ModelFiles, OpenAisLayoutIsOneFolderBelow) {
  const testing::TempDir dir;
  dir.Write("tokenizer.json", "").Write("original/config.json", "");
  dir.Write("original/model.safetensors", "").Write("metal/model.bin", "");
  EXPECT_EQ(ModelFilesOf(dir.path()).files,
            (Paths{dir.Path("original/config.json"), dir.Path("original/model.safetensors"),
                   dir.Path("tokenizer.json")}));
  EXPECT_EQ(ModelFilesOf(dir.path()).folders, (Paths{dir.path(), dir.Path("original")}));
}

}  // namespace
}  // namespace hearth
