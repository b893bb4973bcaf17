// SPDX-License-Identifier: Apache-2.0
#include "store/inventory.h"

#include <gtest/gtest.h>

#include "store/model_store.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using testing::TempDir;

// A store of ours with one whole and one begun model, and one of LM Studio.
class InventoryTest : public ::testing::Test {
 protected:
  InventoryTest() {
    places_.own = dir_.Path("own");
    places_.lm_studio = {dir_.Path("lm")};
    const ModelStore store(places_.own);
    Manifest manifest{.name = "mine",
                      .repo = "a/mine-GGUF",
                      .revision = std::string(40, 'c'),
                      .selector = "Q8_0",
                      .is_complete = true,
                      .files = {{"mine-Q8_0.gguf", 5, ""}}};
    EXPECT_TRUE(store.MakeFolder("mine").ok() && store.Write(manifest).ok());
    manifest.name = "begun";
    manifest.repo = "a/begun-GGUF";
    manifest.is_complete = false;
    EXPECT_TRUE(store.MakeFolder("begun").ok() && store.Write(manifest).ok());
    dir_.Write("lm/Qwen/Qwen3-8B-GGUF/Qwen3-8B-Q4_K_M.gguf", "GGUF");
    dir_.Write("lm/Qwen/Qwen3-8B-GGUF/Qwen3-8B-Q8_0.gguf", "GGUF");
    inventory_ = TakeInventory(places_);
  }
  std::string Found(const std::string& text) {
    Result<ModelReference> reference = ParseReference(text);
    EXPECT_TRUE(reference.ok()) << text;
    const StoredModel* model = FindModel(inventory_, *reference);
    return model == nullptr ? "" : model->path.substr(dir_.path().size());
  }
  std::string How(const std::string& text) {
    Result<ModelReference> reference = ParseReference(text);
    return HowToGet(inventory_, *reference, text);
  }

  TempDir dir_;
  StorePlaces places_;
  Inventory inventory_;
};

TEST_F(InventoryTest, OwnModelsByNameAndSource) {
  const std::string mine = "/own/mine/mine-Q8_0.gguf";
  for (const char* text : {"mine", "MINE", "mine:latest", "a/mine-GGUF", "a/mine-GGUF:q8_0",
                           "a/mine-GGUF:mine-Q8_0.gguf", "a/mine-GGUF@cccccc"}) {
    EXPECT_EQ(Found(text), mine) << text;
  }
  for (const char* text : {"a/mine-GGUF:Q4_0", "a/mine-GGUF@main", "other", "begun", "a/begun-GGUF",
                           "https://x/mine"}) {
    EXPECT_EQ(Found(text), "") << text;
  }
}

TEST_F(InventoryTest, CatalogueNamesFindOthersCopies) {
  EXPECT_EQ(Found("qwen3-8b"), "/lm/Qwen/Qwen3-8B-GGUF/Qwen3-8B-Q4_K_M.gguf");
  EXPECT_EQ(Found("Qwen/Qwen3-8B-GGUF"), "/lm/Qwen/Qwen3-8B-GGUF/Qwen3-8B-Q4_K_M.gguf");
  EXPECT_EQ(Found("qwen/qwen3-8b-gguf:Q8_0"), "/lm/Qwen/Qwen3-8B-GGUF/Qwen3-8B-Q8_0.gguf");
}

TEST_F(InventoryTest, NamesAreCut) {
  EXPECT_EQ(NamesOf(inventory_), "mine, Qwen/Qwen3-8B-GGUF:Q4_K_M, Qwen/Qwen3-8B-GGUF:Q8_0");
  EXPECT_EQ(NamesOf(inventory_, 1), "mine and 2 more");
}

TEST_F(InventoryTest, HowToGetWhatIsNotHere) {
  EXPECT_EQ(How("begun"), "its download is unfinished; resume it with `hearth pull begun`");
  EXPECT_EQ(How("gpt-oss"), "download it (12.1 GB) with `hearth pull gpt-oss-20b`");
  EXPECT_EQ(How("x/y:Q8_0"), "download it with `hearth pull x/y:Q8_0`");
  EXPECT_EQ(How("mime").substr(0, 19), "did you mean mine? ");
  EXPECT_EQ(How("zzzzzzzz").substr(0, 19), "`hearth list --all`");
}

TEST(Inventory, HumanBytes) {
  EXPECT_EQ(HumanBytes(12'109'566'560), "12.1 GB");
  EXPECT_EQ(HumanBytes(2'500'000'000), "2.50 GB");
  EXPECT_EQ(HumanBytes(250'000'000'000), "250 GB");
  EXPECT_EQ(HumanBytes(98'000'000), "98 MB");
  EXPECT_EQ(HumanBytes(50'000), "50 kB");
  EXPECT_EQ(HumanBytes(512), "512 bytes");
}

// Of Ollama's names, which may look like a repository's.
TEST_F(InventoryTest, OllamasNames) {
  for (const char* name : {"qwen3:8b", "someone/tuned:latest", "hf.co/x/y:Q8_0"}) {
    inventory_.models.push_back(
        {.name = name, .origin = Origin::kOllama, .path = dir_.path() + "/" + name});
  }
  EXPECT_EQ(Found("someone/tuned"), "/someone/tuned:latest");
  EXPECT_EQ(Found("SomeOne/tuned:LATEST"), "/someone/tuned:latest");
  EXPECT_EQ(Found("someone/tuned:8b"), "");
  EXPECT_EQ(Found("x/y:Q8_0"), "/hf.co/x/y:Q8_0") << "pulled from the Hub by Ollama";
  EXPECT_EQ(Found("someone/tuned@main"), "") << "a revision is the Hub's";
  // The catalogue's own repository is preferred to a name that is merely the same.
  EXPECT_EQ(Found("qwen3:8b"), "/lm/Qwen/Qwen3-8B-GGUF/Qwen3-8B-Q4_K_M.gguf");
}

TEST_F(InventoryTest, ANameThatIsExactlyRightIsPreferred) {
  inventory_.models.push_back({.name = "Odd-Name", .path = dir_.path() + "/first"});
  inventory_.models.push_back({.name = "odd-name", .path = dir_.path() + "/second"});
  inventory_.models[inventory_.models.size() - 2].origin = Origin::kLmStudio;
  inventory_.models.back().origin = Origin::kLmStudio;
  EXPECT_EQ(Found("odd-name"), "/second");
  EXPECT_EQ(Found("ODD-NAME"), "/first") << "else the first that is like it";
}

TEST_F(InventoryTest, OwnModelsComeFirst) {
  const StoredModel theirs{
      .name = "mine", .origin = Origin::kOllama, .path = dir_.path() + "/theirs"};
  inventory_.models.insert(inventory_.models.begin(), theirs);
  EXPECT_EQ(Found("mine"), "/own/mine/mine-Q8_0.gguf");
}

TEST_F(InventoryTest, WithoutAUsualQuantisationTheFirstIsTaken) {
  for (const char* quant : {"IQ2_XXS", "F32"}) {
    inventory_.models.push_back({.name = std::string("z/z:") + quant,
                                 .origin = Origin::kLmStudio,
                                 .path = dir_.path() + "/" + quant,
                                 .repo = "z/z",
                                 .quant = quant});
  }
  EXPECT_EQ(Found("z/z"), "/IQ2_XXS");
  EXPECT_EQ(Found("z/z:f32"), "/F32");
}

TEST_F(InventoryTest, DamagedManifestsAreTold) {
  dir_.Write("own/broken/hearth.json", "{");
  const Inventory inventory = TakeInventory(places_);
  ASSERT_EQ(inventory.problems.size(), 1u);
  EXPECT_NE(inventory.problems[0].find("broken/hearth.json"), std::string::npos);
  EXPECT_EQ(inventory.models.size(), inventory_.models.size()) << "the others are listed";
}

TEST_F(InventoryTest, SizesThatNobodyStatedAreNotTold) {
  EXPECT_EQ(How("smollm2:135m"), "download it with `hearth pull smollm2-135m`");
  EXPECT_EQ(How("https://x/y.gguf"), "download it with `hearth pull https://x/y.gguf`");
}

}  // namespace
}  // namespace hearth
