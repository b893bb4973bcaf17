// SPDX-License-Identifier: Apache-2.0
#include "store/catalogue.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "store/reference.h"

namespace hearth {
namespace {

TEST(Catalogue, EveryEntryIsWellFormedAndFoundByItsName) {
  std::set<std::string_view> names;
  for (const CatalogueEntry& entry : Catalogue()) {
    EXPECT_TRUE(IsModelName(entry.name)) << entry.name;
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_EQ(PlainForm(entry.name), entry.name);
    Result<ModelReference> reference =
        ParseReference(std::string(entry.repo) + ":" + std::string(entry.selector));
    ASSERT_TRUE(reference.ok()) << entry.name;
    EXPECT_EQ(reference->repo, entry.repo);
    EXPECT_FALSE(entry.licence.empty() || entry.parameters.empty());
    EXPECT_EQ(FindInCatalogue(entry.name), &entry);
  }
  EXPECT_GE(names.size(), 15u);
}

TEST(Catalogue, OtherNames) {
  ASSERT_NE(FindInCatalogue("Qwen3:8B"), nullptr);
  EXPECT_EQ(FindInCatalogue("Qwen3:8B")->name, "qwen3-8b");
  ASSERT_NE(FindInCatalogue("gpt-oss"), nullptr);
  EXPECT_EQ(FindInCatalogue("gpt-oss:latest")->name, "gpt-oss-20b");
  EXPECT_EQ(FindInCatalogue("nonsense"), nullptr);
  EXPECT_EQ(FindInCatalogue(""), nullptr);
}

TEST(Catalogue, EveryOtherNameLeadsSomewhere) {
  for (const auto& [other, name] :
       std::vector<std::pair<const char*, const char*>>{{"smollm2", "smollm2-1.7b"},
                                                        {"qwen2.5", "qwen2.5-7b"},
                                                        {"qwen2.5-coder", "qwen2.5-coder-7b"},
                                                        {"qwen3", "qwen3-8b"},
                                                        {"llama3.1", "llama3.1-8b"},
                                                        {"llama3.2:latest", "llama3.2-3b"},
                                                        {"llama3.3", "llama3.3-70b"}}) {
    ASSERT_NE(FindInCatalogue(other), nullptr) << other;
    EXPECT_EQ(FindInCatalogue(other)->name, name);
  }
}

TEST(Catalogue, EstimatesAreNearWhatPublishersState) {
  for (const CatalogueEntry& entry : Catalogue()) {
    const auto estimate = static_cast<double>(EstimatedBytes(entry));
    EXPECT_GT(estimate, 1e8) << entry.name;
    if (entry.about_bytes == 0) continue;
    EXPECT_NEAR(estimate / static_cast<double>(entry.about_bytes), 1, 0.1) << entry.name;
  }
}

TEST(Catalogue, MemoryIsMoreThanTheFile) {
  EXPECT_EQ(MemoryFor(0), 0u);
  EXPECT_EQ(MemoryFor(8'000'000'000), 9'000'000'000u);
}

}  // namespace
}  // namespace hearth
