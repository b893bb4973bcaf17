// SPDX-License-Identifier: Apache-2.0
#include "store/manifest.h"

#include <gtest/gtest.h>

#include <random>

namespace hearth {
namespace {

Manifest Example() {
  return {.name = "m",
          .repo = "a/b",
          .revision = "c0ffee",
          .selector = "Q8_0",
          .licence = "mit",
          .is_complete = true,
          .files = {{"m.gguf", 12, "sha256:00"}, {"n.gguf", 30, ""}}};
}

TEST(Manifest, ReadsWhatItWrote) {
  const std::string text = WriteManifest(Example());
  Result<Manifest> again = ParseManifest(text);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(WriteManifest(*again), text);
  EXPECT_TRUE(again->is_complete);
  EXPECT_FALSE(again->is_directory);
  EXPECT_EQ(again->files[1].bytes, 30u);
  EXPECT_EQ(again->bytes(), 42u);
  EXPECT_EQ(again->source(), "a/b@c0ffee:Q8_0");
}

TEST(Manifest, SourceOfAUrl) {
  const Manifest manifest{.name = "m", .url = "https://x/y.gguf"};
  EXPECT_EQ(manifest.source(), "https://x/y.gguf");
}

TEST(Manifest, WhatLeadsElsewhereIsRefused) {
  for (const char* name : {"../x", "a/b", "", "..", ".x.part"}) {
    Manifest manifest = Example();
    manifest.files[0].name = name;
    EXPECT_EQ(ParseManifest(WriteManifest(manifest)).status().code(), Code::kCorrupt) << name;
  }
  Manifest manifest = Example();
  manifest.name = "../m";
  EXPECT_EQ(ParseManifest(WriteManifest(manifest)).status().code(), Code::kCorrupt);
  manifest = Example();
  manifest.files.clear();
  EXPECT_EQ(ParseManifest(WriteManifest(manifest)).status().code(), Code::kCorrupt);
  EXPECT_FALSE(ParseManifest("{}").ok());
  EXPECT_FALSE(ParseManifest(R"({"format": 2, "name": "m", "files": []})").ok());
}

TEST(Manifest, SizesThatWrapAreNotSmall) {
  Manifest manifest = Example();
  manifest.files[0].bytes = UINT64_MAX;
  EXPECT_EQ(manifest.bytes(), UINT64_MAX);
}

TEST(Manifest, DamagedTextNeverCrashes) {
  std::mt19937 random(3);
  const std::string good = WriteManifest(Example());
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    for (int n = 0; n < 3; ++n) text[random() % text.size()] = static_cast<char>(random());
    Result<Manifest> manifest = ParseManifest(text);
    refused += manifest.ok() ? 0 : 1;
    if (!manifest.ok()) continue;
    EXPECT_EQ(manifest->files[0].name.find('/'), std::string::npos);
  }
  EXPECT_GT(refused, 1000);
}

TEST(Manifest, MembersOfTheWrongKindAreNone) {
  const auto parsed = [](const std::string& members) {
    return ParseManifest(R"({"format": 1, "name": "m", )" + members + "}");
  };
  const std::string files = R"("files": [{"name": "a.gguf", "bytes": 1}])";
  Result<Manifest> plain = parsed(files + R"(, "repo": 3, "complete": "yes", "directory": 1)");
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_EQ(plain->repo, "");
  EXPECT_FALSE(plain->is_complete || plain->is_directory);
  EXPECT_EQ(plain->files[0].digest, "");
  for (const char* wrong :
       {R"("files": [{"name": "a.gguf"}])", R"("files": [{"name": "a.gguf", "bytes": -1}])",
        R"("files": [{"name": "a.gguf", "bytes": "1"}])", R"("files": [{"bytes": 1}])",
        R"("files": [7])", R"("files": {})"}) {
    EXPECT_EQ(parsed(wrong).status().code(), Code::kCorrupt) << wrong;
  }
  EXPECT_FALSE(ParseManifest(R"({"format": "1", "name": "m", )" + files + "}").ok());
}

TEST(Manifest, DirectoriesStayDirectories) {
  Manifest manifest = Example();
  manifest.is_directory = true;
  EXPECT_TRUE(ParseManifest(WriteManifest(manifest))->is_directory);
  manifest.revision = manifest.selector = "";
  EXPECT_EQ(manifest.source(), "a/b");
}

}  // namespace
}  // namespace hearth
