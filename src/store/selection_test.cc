// SPDX-License-Identifier: Apache-2.0
#include "store/selection.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

std::vector<ListedFile> Files(std::initializer_list<const char*> paths) {
  std::vector<ListedFile> files;
  for (const char* path : paths) files.push_back({path, 10});
  return files;
}

// The path of the first file of what is chosen, or the message.
std::string Chosen(const std::vector<ListedFile>& files, std::string_view selector) {
  const std::vector<ModelFiles> models = ModelsAmong(files);
  Result<ModelFiles> model = ChooseModel(files, models, selector, "a/b");
  if (!model.ok()) return model.status().message();
  return model->is_directory ? "directory" : files[model->files[0]].path;
}

TEST(Selection, QuantisationsAreReadFromNames) {
  const auto files = Files({"Llama-3.2-1B-Instruct-Q4_K_M.gguf", "gpt-oss-20b-mxfp4.gguf",
                            "x.IQ4_XS.gguf", "plain.gguf", "m-BF16.gguf", "qwen2.5-q8_0.gguf"});
  std::vector<std::string> quants;
  for (const ModelFiles& model : ModelsAmong(files)) quants.push_back(model.quant);
  std::sort(quants.begin(), quants.end());
  EXPECT_EQ(quants, (std::vector<std::string>{"", "BF16", "IQ4_XS", "MXFP4", "Q4_K_M", "Q8_0"}));
}

TEST(Selection, ShardsMakeOneModelWhenNoneIsMissing) {
  const auto files = Files({"m-Q8_0-00002-of-00002.gguf", "m-Q8_0-00001-of-00002.gguf",
                            "m-Q4_0-00001-of-00003.gguf", "m-Q4_0-00003-of-00003.gguf"});
  const std::vector<ModelFiles> models = ModelsAmong(files);
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].files, (std::vector<size_t>{1, 0}));
  EXPECT_EQ(models[0].bytes, 20u);
  EXPECT_EQ(models[0].stem, "m-Q8_0");
}

TEST(Selection, ProjectorsAndMatricesAreNoModels) {
  EXPECT_TRUE(
      ModelsAmong(Files({"mmproj-x-f16.gguf", "x.imatrix.gguf", ".gguf", "README.md"})).empty());
}

TEST(Selection, SafetensorsNeedTheirConfigurationAndAllShards) {
  EXPECT_EQ(Chosen(Files({"config.json", "model.safetensors", "tokenizer.json", "x.bin"}), ""),
            "directory");
  EXPECT_TRUE(ModelsAmong(Files({"model.safetensors"})).empty());
  EXPECT_TRUE(ModelsAmong(Files({"config.json", "model-00001-of-00002.safetensors"})).empty());
  const auto files =
      Files({"config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
             "original/model.safetensors", "pytorch_model.bin", "onnx/model.onnx"});
  const std::vector<ModelFiles> models = ModelsAmong(files);
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].files, (std::vector<size_t>{0, 1, 2}));
}

TEST(Selection, ASelectorIsAQuantisationOrAFile) {
  const auto files = Files({"m-Q4_K_M.gguf", "m-Q8_0.gguf", "sub/m-F16.gguf"});
  EXPECT_EQ(Chosen(files, "q8_0"), "m-Q8_0.gguf");
  EXPECT_EQ(Chosen(files, "M-q4_k_m.GGUF"), "m-Q4_K_M.gguf");
  EXPECT_EQ(Chosen(files, "m-F16"), "sub/m-F16.gguf");
  EXPECT_EQ(Chosen(files, "sub/m-F16.gguf"), "sub/m-F16.gguf");
  EXPECT_EQ(
      Chosen(files, "Q5_0"),
      "\"a/b\" has no model for \"Q5_0\"; write one of these behind a colon: Q4_K_M, Q8_0, F16");
}

TEST(Selection, WithoutASelectorTheUsualOneIsTaken) {
  EXPECT_EQ(Chosen(Files({"m-F16.gguf", "m-Q4_K_M.gguf", "m-Q8_0.gguf"}), ""), "m-Q4_K_M.gguf");
  EXPECT_EQ(Chosen(Files({"m-F16.gguf", "m-Q8_0.gguf"}), ""), "m-Q8_0.gguf");
  EXPECT_EQ(Chosen(Files({"only-F32.gguf"}), ""), "only-F32.gguf");
  EXPECT_EQ(Chosen(Files({"m-F16.gguf", "m-F32.gguf", "config.json", "model.safetensors"}), ""),
            "directory");
  EXPECT_EQ(Chosen(Files({"m-F16.gguf", "m-F32.gguf"}), ""),
            "\"a/b\" has several models; write one of these behind a colon: F16, F32");
  EXPECT_EQ(Chosen(Files({"README.md"}), ""),
            "\"a/b\" has neither GGUF files nor safetensors with a config.json");
}

TEST(Selection, QuantisationsOfAllKinds) {
  const std::pair<const char*, const char*> cases[] = {
      {"m-TQ1_0.gguf", "TQ1_0"}, {"m-mxfp4_moe.gguf", "MXFP4_MOE"},
      {"m-fp16.gguf", "FP16"},   {"m.Q4_K_M.v2.gguf", "Q4_K_M"},
      {"Q8_0.gguf", "Q8_0"},     {"m-Quick.gguf", ""},
      {"m-IQ.gguf", ""},         {"qwen-q4.gguf", "Q4"},
      {"m-F160.gguf", ""},       {"m-Q8_0-Instruct.gguf", "Q8_0"}};
  for (const auto& [path, quant] : cases) {
    const auto models = ModelsAmong(Files({path}));
    ASSERT_EQ(models.size(), 1u) << path;
    EXPECT_EQ(models[0].quant, quant) << path;
  }
}

TEST(Selection, NumbersThatAreNoShardsBelongToTheName) {
  for (const char* path : {"m-00000-of-00002.gguf", "m-00003-of-00002.gguf", "m-0001-of-00002.gguf",
                           "m-00001-xx-00002.gguf", "m-0000x-of-00002.gguf"}) {
    const auto models = ModelsAmong(Files({path}));
    ASSERT_EQ(models.size(), 1u) << path;
    EXPECT_EQ(models[0].stem + ".gguf", path);
  }
  // The same model in two and in three files is two models.
  EXPECT_EQ(
      ModelsAmong(Files({"m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "m-00001-of-00003.gguf",
                         "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"}))
          .size(),
      2u);
}

TEST(Selection, ModelsOfOneQuantisationAreNamedByTheirFiles) {
  const auto files = Files({"a-Q8_0.gguf", "b-Q8_0.gguf", "c-F16.gguf"});
  EXPECT_EQ(Chosen(files, "Q8_0"),
            "\"a/b\" has several models for \"Q8_0\"; write one of these behind a colon: "
            "a-Q8_0.gguf, b-Q8_0.gguf, F16");
  EXPECT_EQ(Chosen(files, "b-q8_0"), "b-Q8_0.gguf");
  EXPECT_EQ(Chosen(files, "safetensors").substr(0, 19), "\"a/b\" has no model ");
}

TEST(Selection, LongListsAreCut) {
  std::vector<ListedFile> files;
  for (int i = 0; i < 30; ++i) files.push_back({Printf("m%02d.gguf", i), 1});
  const std::string message = Chosen(files, "Q8_0");
  EXPECT_NE(message.find("m23.gguf and 6 more"), std::string::npos) << message;
  EXPECT_EQ(message.find("m24"), std::string::npos);
}

}  // namespace
}  // namespace hearth
