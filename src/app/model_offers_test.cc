// SPDX-License-Identifier: Apache-2.0
#include "app/model_offers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "store/model_store.h"
#include "testing/data.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using testing::DataPath;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ModelOffersTest : public ::testing::Test {
 protected:
  void AddToStore(const std::string& name, bool is_complete) {
    const ModelStore store(dir_.Path("home/.local/share/hearth/models"));
    const Manifest manifest{.name = name, .is_complete = is_complete, .files = {{"x.gguf", 7, ""}}};
    ASSERT_TRUE(store.MakeFolder(name).ok() && store.Write(manifest).ok());
  }
  Result<Offers> Find(const std::vector<std::string>& given) {
    ServedSpec common;
    common.engine.max_context = 512;
    return FindOffers(given, flags_, common, [&](const char* name) {
      return std::string_view(name) == "HOME" ? dir_.Path("home") : std::string();
    });
  }
  std::string Problem(const std::vector<std::string>& given) {
    return Find(given).status().message();
  }
  testing::TempDir dir_;
  OfferFlags flags_;
};

TEST_F(ModelOffersTest, WithoutNamesTheWholeStore) {
  EXPECT_THAT(Problem({}), HasSubstr("`hearth pull smollm2`"));
  AddToStore("one", true);
  AddToStore("half", false);
  AddToStore("two", true);
  Result<Offers> offers = Find({});
  ASSERT_TRUE(offers.ok()) << offers.status().message();
  ASSERT_EQ(offers->models.size(), 2u);
  EXPECT_EQ(offers->models[0].name, "one");
  EXPECT_EQ(offers->models[0].file_bytes, 7);
  EXPECT_FALSE(offers->models[0].is_pinned);
  EXPECT_EQ(offers->specs[1].name, "two");
  EXPECT_THAT(offers->specs[1].path, HasSubstr("two/x.gguf"));
  EXPECT_EQ(offers->specs[1].engine.max_context, 512);
  EXPECT_EQ(offers->host.keep_alive_s, 300);
  EXPECT_GT(offers->host.budget_bytes, 0);
}

TEST_F(ModelOffersTest, PathsAreNamedByTheirFiles) {
  dir_.Write("a.gguf", "GGUF").Write("b/a.gguf", "GGUF").Write("c.gguf", "GGUF");
  Result<Offers> offers = Find({dir_.Path("a.gguf"), dir_.Path("c.gguf")});
  ASSERT_TRUE(offers.ok()) << offers.status().message();
  EXPECT_EQ(offers->models[1].name, "c");
  EXPECT_THAT(Problem({dir_.Path("a.gguf"), dir_.Path("b/a.gguf")}), HasSubstr("two models"));
  EXPECT_TRUE(Find({dir_.Path("a.gguf")})->models[0].is_pinned) << "one alone stays";
  flags_.keep_alive = "10s";
  EXPECT_FALSE(Find({dir_.Path("a.gguf")})->models[0].is_pinned);
}

TEST_F(ModelOffersTest, SettingsAreOfOneModel) {
  AddToStore("one-0.5b", true);
  AddToStore("two", true);
  flags_.settings = {"one-0.5b.context=4096", "one-0.5b.kv-memory=1GiB",
                     "two.served-name=best",  "two.keep-alive=1h",
                     "two.pin=true",          "tow.pin=true"};
  flags_.pins = {"one-0.5b"};
  flags_.keep_alive = "-1";
  Result<Offers> offers = Find({});
  ASSERT_TRUE(offers.ok()) << offers.status().message();
  EXPECT_EQ(offers->specs[0].engine.max_context, 4096);
  EXPECT_EQ(offers->specs[0].engine.kv_bytes, 1 << 30);
  EXPECT_TRUE(offers->models[0].is_pinned && offers->models[1].is_pinned);
  EXPECT_EQ(offers->models[1].keep_alive_s, 3600);
  EXPECT_THAT(offers->models[1].aliases, ElementsAre("best"));
  EXPECT_EQ(offers->host.keep_alive_s, -1);
  ASSERT_EQ(offers->warnings.size(), 1u);
  EXPECT_THAT(offers->warnings[0], HasSubstr("did you mean \"two\"?"));
  ServedSpec alone;
  alone.name = "one-0.5b";
  ASSERT_TRUE(ApplySettings(flags_, alone).ok());
  EXPECT_EQ(alone.engine.max_context, 4096);
}

TEST_F(ModelOffersTest, MistakesAreNamed) {
  AddToStore("one", true);
  AddToStore("two", true);
  const std::pair<const char*, const char*> settings[] = {
      {"one", "NAME.KEY=VALUE"},
      {"one.contxt=5", "did you mean \"context\"?"},
      {"one.context=5", "from 16"},
      {"one.pin=maybe", "true or false"},
      {"one.kv-memory=much", "a size such as"},
      {"one.keep-alive=soon", "a time such as"},
      {"one.served-name=two", "two models are called"},
      {"one.served-name=*", "one model"}};
  for (const auto& [text, problem] : settings) {
    flags_.settings = {text};
    EXPECT_THAT(Problem({}), HasSubstr(problem)) << text;
  }
  flags_.settings = {};
  flags_.pins = {"tow"};
  EXPECT_THAT(Problem({}), HasSubstr("did you mean \"two\"?"));
  flags_.pins = {};
  flags_.memory_bytes = int64_t{1} << 60;
  EXPECT_THAT(Problem({}), HasSubstr("usable"));
}

TEST_F(ModelOffersTest, TheFlagChecksSettingsByItself) {
  CLI::App app;
  AddOfferFlags(app, flags_);
  EXPECT_NO_THROW(
      app.parse("--model-setting a.pin=true --model-setting b.c.context=99 --memory 2GiB"));
  EXPECT_EQ(flags_.memory_bytes, int64_t{2} << 30);
  EXPECT_EQ(flags_.settings.size(), 2u);
  EXPECT_THROW(app.parse("--model-setting a.pni=true"), CLI::ValidationError);
}

TEST(ServedParts, WhatIsMeasuredIsWhatIsOpened) {
  ServedSpec spec;
  spec.path = DataPath("golden/tiny-oss-mxfp4.gguf");
  HEARTH_SKIP_WITHOUT(spec.path);
  spec.name = "tiny";
  spec.engine.max_sequences = 4;
  constexpr int64_t kBudget = int64_t{512} << 20;
  Result<MeasuredModel> measured = MeasureServed(spec, kBudget);
  if (!measured.ok()) GTEST_SKIP() << measured.status().message();  // it has no tokenizer
  EXPECT_LE(measured->bytes, kBudget);
  StepGate gate;
  EXPECT_EQ(OpenServedWithin(spec, kBudget, measured->bytes - 1, gate, 1).status().code(),
            Code::kExhausted);
  auto opened = OpenServedWithin(spec, kBudget, measured->bytes, gate, 1);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ((*opened)->model().max_context, measured->known.max_context);
}

}  // namespace
}  // namespace hearth
