// SPDX-License-Identifier: Apache-2.0
#include "store/model_store.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "platform/file.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

Manifest Example(const std::string& name) {
  return {.name = name, .repo = "a/b", .is_complete = true, .files = {{"m.gguf", 4, ""}}};
}

TEST(ModelStore, ListsWhatWasWritten) {
  const TempDir dir;
  const ModelStore store(dir.Path("deep/models"));
  EXPECT_TRUE(store.List().empty());
  for (const char* name : {"b", "a"}) {
    ASSERT_TRUE(store.MakeFolder(name).ok());
    ASSERT_TRUE(store.Write(Example(name)).ok());
  }
  std::vector<std::string> problems;
  const std::vector<Manifest> found = store.List(&problems);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "a");
  EXPECT_EQ(store.PathOf(found[0]), dir.Path("deep/models/a/m.gguf"));
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(store.Read("c").status().code(), Code::kNotFound);
}

TEST(ModelStore, DamagedManifestsAreTold) {
  const TempDir dir;
  dir.Write("a/hearth.json", "junk").Write("b/hearth.json", WriteManifest(Example("other")));
  dir.Write("c/other", "").Write("loose-file", "");
  std::vector<std::string> problems;
  EXPECT_TRUE(ModelStore(dir.path()).List(&problems).empty());
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].find("a/hearth.json"), std::string::npos);
  EXPECT_NE(problems[1].find("other"), std::string::npos);
}

TEST(ModelStore, RemovesTheModelAndNothingBehindSymlinks) {
  const TempDir dir, other;
  other.Write("precious", "x");
  const ModelStore store(dir.path());
  ASSERT_TRUE(store.MakeFolder("m").ok());
  ASSERT_TRUE(store.Write(Example("m")).ok());
  dir.Write("m/m.gguf", "GGUF");
  fs::create_directory_symlink(other.path(), dir.Path("m/link"));
  fs::create_directory_symlink(other.path(), dir.Path("linked"));
  ASSERT_TRUE(store.Remove("m").ok());
  EXPECT_FALSE(fs::exists(dir.Path("m")));
  EXPECT_EQ(store.Remove("m").code(), Code::kNotFound);
  EXPECT_EQ(store.Remove("linked").code(), Code::kNotFound);
  EXPECT_TRUE(fs::exists(other.Path("precious")));
  EXPECT_FALSE(store.MakeFolder("linked").ok());
}

TEST(ModelStore, ALockIsHeldOnce) {
  const TempDir dir;
  const ModelStore store(dir.path());
  ASSERT_TRUE(store.MakeFolder("m").ok());
  {
    Result<ModelLock> lock = store.TryLock("m");
    ASSERT_TRUE(lock.ok());
    EXPECT_EQ(store.TryLock("m").status().code(), Code::kExhausted);
    EXPECT_EQ(store.Remove("m").code(), Code::kExhausted);
    EXPECT_TRUE(store.TryLock("n").ok());
    EXPECT_TRUE(fs::exists(dir.Path("m")));
    ASSERT_TRUE(store.Remove("m", *lock).ok());
    EXPECT_FALSE(fs::exists(dir.Path("m")));
  }
  EXPECT_TRUE(store.TryLock("m").ok());
}

TEST(ModelStore, CountsBytesOnTheDisk) {
  const TempDir dir;
  dir.Write("m/x", std::string(1 << 20, 'x'));
  fs::resize_file(dir.Path("m/x"), uint64_t{1} << 30);  // a hole takes no space
  const uint64_t held = ModelStore(dir.path()).BytesHeld("m");
  EXPECT_GE(held, uint64_t{1} << 20);
  EXPECT_LT(held, uint64_t{1} << 24);
}

TEST(ModelStore, FreeSpaceIsKnownBeforeTheFolderExists) {
  const TempDir dir;
  Result<uint64_t> free = FreeDiskBytes(dir.Path("not/yet/there"));
  ASSERT_TRUE(free.ok());
  EXPECT_GT(*free, 0u);
  EXPECT_TRUE(FreeDiskBytes("relative/not/there").ok());
}

TEST(ModelStore, ADirectoryIsOpenedAsAWhole) {
  const ModelStore store("/models");
  Manifest manifest = Example("m");
  EXPECT_EQ(store.PathOf(manifest), "/models/m/m.gguf");
  manifest.is_directory = true;
  EXPECT_EQ(store.PathOf(manifest), "/models/m");
}

TEST(ModelStore, WhatCannotBeWrittenIsNamed) {
  const TempDir dir;
  dir.Write("file", "");
  const ModelStore below_a_file(dir.Path("file/models"));
  const Status folder = below_a_file.MakeFolder("m");
  EXPECT_EQ(folder.code(), Code::kIo);
  EXPECT_NE(folder.message().find("HEARTH_MODELS"), std::string::npos) << folder.message();
  EXPECT_EQ(below_a_file.TryLock("m").status().code(), Code::kIo);
  EXPECT_FALSE(FreeDiskBytes(dir.Path("file/models")).ok());
  const ModelStore store(dir.path());
  EXPECT_FALSE(store.Write(Example("no-folder-yet")).ok());
  EXPECT_FALSE(store.MakeFolder("file").ok()) << "a file stands in its place";
  EXPECT_EQ(*ReadTextFile(dir.Path("file"), 10), "");
}

TEST(ModelStore, LinksAreNotFollowed) {
  const TempDir dir, other;
  other.Write("m/hearth.json", WriteManifest(Example("m"))).Write("lock", "precious");
  fs::create_directory_symlink(other.Path("m"), dir.Path("m"));
  const ModelStore store(dir.path());
  EXPECT_EQ(store.Read("m").status().code(), Code::kNotFound);
  EXPECT_TRUE(store.List().empty());
  fs::create_directories(dir.Path(".locks"));
  fs::create_symlink(other.Path("lock"), dir.Path(".locks/n"));
  EXPECT_EQ(store.TryLock("n").status().code(), Code::kIo);
}

TEST(ModelStore, AManifestCanBeReplaced) {
  const TempDir dir;
  const ModelStore store(dir.path());
  ASSERT_TRUE(store.MakeFolder("m").ok() && store.MakeFolder("m").ok());
  Manifest manifest = Example("m");
  manifest.is_complete = false;
  ASSERT_TRUE(store.Write(manifest).ok());
  EXPECT_FALSE(store.Read("m")->is_complete);
  manifest.is_complete = true;
  ASSERT_TRUE(store.Write(manifest).ok());
  EXPECT_TRUE(store.Read("m")->is_complete);
  EXPECT_EQ(store.BytesHeld("absent"), 0u);
}

}  // namespace
}  // namespace hearth
