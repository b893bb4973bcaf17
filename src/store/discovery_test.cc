// SPDX-License-Identifier: Apache-2.0
#include "store/discovery.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <random>

#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

const std::string kHex(64, 'a');
const std::string kCommit(40, 'c');

std::string OllamaManifest(const std::string& digest) {
  return R"({"schemaVersion": 2, "config": {"digest": "sha256:x"}, "layers": [
    {"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:)" +
         std::string(64, 'b') + R"(", "size": 3},
    {"mediaType": "application/vnd.ollama.image.model", "digest": ")" +
         digest + R"(", "size": 4}]})";
}

std::vector<std::string> NamesOf(const std::vector<StoredModel>& models) {
  std::vector<std::string> names;
  for (const StoredModel& model : models) names.push_back(model.name);
  return names;
}

TEST(Discovery, Ollama) {
  const TempDir dir;
  const std::string manifests = "manifests/registry.ollama.ai/";
  dir.Write("blobs/sha256-" + kHex, "GGUF")
      .Write(manifests + "library/qwen3/8b", OllamaManifest("sha256:" + kHex))
      .Write(manifests + "someone/tuned/latest", OllamaManifest("sha256:" + kHex))
      .Write("manifests/hf.co/a/b/Q8_0", OllamaManifest("sha256:" + kHex))
      .Write(manifests + "library/gone/1b", OllamaManifest("sha256:" + std::string(64, 'd')))
      .Write(manifests + "library/evil/1", OllamaManifest("sha256:../../../etc/passwd"))
      .Write(manifests + "library/evil/2", OllamaManifest("sha256:" + std::string(63, 'a') + "/"))
      .Write(manifests + "library/evil/3", R"({"layers": [7, {"mediaType": 1}, {}]})")
      .Write(manifests + "library/evil/4", "junk");
  const std::vector<StoredModel> found = FindOllamaModels(dir.path());
  EXPECT_EQ(NamesOf(found),
            (std::vector<std::string>{"hf.co/a/b:Q8_0", "qwen3:8b", "someone/tuned:latest"}));
  EXPECT_EQ(found[1].path, dir.Path("blobs/sha256-" + kHex));
  EXPECT_EQ(found[1].bytes, 4u);
  EXPECT_TRUE(FindOllamaModels(dir.Path("absent")).empty());
}

TEST(Discovery, OllamaBlobsThatLeadOutAreNotListed) {
  const TempDir dir, other;
  other.Write("secret", "x");
  dir.Write("manifests/registry.ollama.ai/library/m/1", OllamaManifest("sha256:" + kHex));
  fs::create_directories(dir.Path("blobs"));
  fs::create_symlink(other.Path("secret"), dir.Path("blobs/sha256-" + kHex));
  EXPECT_TRUE(FindOllamaModels(dir.path()).empty());
}

// A snapshot's file is a symlink to its blob.
void Link(const TempDir& dir, const std::string& repo, const std::string& commit,
          const std::string& file, const std::string& content) {
  const std::string blob =
      repo + "/blobs/" + std::to_string(std::hash<std::string>()(file + commit));
  dir.Write(blob, content);
  const fs::path link = dir.Path(repo + "/snapshots/" + commit + "/" + file);
  fs::create_directories(link.parent_path());
  fs::create_symlink(dir.Path(blob), link);
}

TEST(Discovery, HuggingFace) {
  const TempDir dir;
  const std::string repo = "models--bartowski--Tiny-GGUF";
  Link(dir, repo, kCommit, "Tiny-Q4_K_M.gguf", "GGUF1");
  Link(dir, repo, kCommit, "big/Tiny-Q8_0-00001-of-00002.gguf", "GGUF22");
  Link(dir, repo, kCommit, "big/Tiny-Q8_0-00002-of-00002.gguf", "GGUF22");
  Link(dir, repo, kCommit, "half-F16-00001-of-00002.gguf", "GGUF");
  Link(dir, repo, std::string(40, 'd'), "Tiny-Q2_K.gguf", "GGUF");
  dir.Write(repo + "/refs/main", kCommit + "\n");
  const std::string tensors = "models--a--tensors";
  for (const char* file : {"config.json", "model.safetensors", "tokenizer.json"}) {
    Link(dir, tensors, kCommit, file, "{}");
  }
  dir.Write("datasets--a--b/refs/main", kCommit).Write("models--broken/refs/main", "x");
  dir.Write("models--a--empty/refs/main", "../../../etc");
  const std::vector<StoredModel> found = FindHuggingFaceModels(dir.path());
  EXPECT_EQ(NamesOf(found), (std::vector<std::string>{"a/tensors", "bartowski/Tiny-GGUF:Q4_K_M",
                                                      "bartowski/Tiny-GGUF:Q8_0"}));
  EXPECT_EQ(found[0].path, dir.Path(tensors + "/snapshots/" + kCommit));
  EXPECT_EQ(found[0].revision, kCommit);
  EXPECT_EQ(found[1].path, dir.Path(repo + "/snapshots/" + kCommit + "/Tiny-Q4_K_M.gguf"));
  EXPECT_EQ(found[2].bytes, 12u);
}

TEST(Discovery, HuggingFaceLinksThatLeadOutAreNotListed) {
  const TempDir dir, other;
  other.Write("secret", "GGUF");
  const std::string snapshot = "models--a--b/snapshots/" + kCommit;
  fs::create_directories(dir.Path(snapshot));
  fs::create_symlink(other.Path("secret"), dir.Path(snapshot + "/x-Q8_0.gguf"));
  EXPECT_TRUE(FindHuggingFaceModels(dir.path()).empty());
}

TEST(Discovery, LmStudio) {
  const TempDir dir;
  dir.Write("owner/repo/m-Q4_K_M.gguf", "GGUF").Write("owner/repo/mmproj-m-f16.gguf", "GGUF");
  dir.Write("owner/two/x-Q8_0.gguf", "GGUF").Write("owner/two/y-Q8_0.gguf", "GGUF");
  dir.Write("loose.gguf", "GGUF");
  const std::vector<StoredModel> found = FindLmStudioModels(dir.path());
  EXPECT_EQ(NamesOf(found), (std::vector<std::string>{"owner/repo:Q4_K_M", "owner/two:x-Q8_0.gguf",
                                                      "owner/two:y-Q8_0.gguf"}));
  EXPECT_EQ(found[0].origin, Origin::kLmStudio);
  EXPECT_EQ(found[0].repo, "owner/repo");
}

TEST(Discovery, DamagedManifestsNeverCrash) {
  std::mt19937 random(5);
  const TempDir dir;
  dir.Write("blobs/sha256-" + kHex, "GGUF");
  const std::string good = OllamaManifest("sha256:" + kHex);
  int listed = 0;
  for (int i = 0; i < 300; ++i) {
    std::string text = good;
    for (int n = 0; n < 4; ++n) text[random() % text.size()] = static_cast<char>(random());
    dir.Write("manifests/registry.ollama.ai/library/m/1", text);
    for (const StoredModel& model : FindOllamaModels(dir.path())) {
      ++listed;
      EXPECT_EQ(model.path, dir.Path("blobs/sha256-" + kHex));
    }
  }
  EXPECT_LT(listed, 300);
}

TEST(Discovery, WithoutMainTheLatestSnapshotCounts) {
  const TempDir dir;
  const std::string repo = "models--a--b", older(40, 'e'), newer(40, 'd');
  Link(dir, repo, older, "m-Q8_0.gguf", "GGUF");
  Link(dir, repo, newer, "m-Q4_0.gguf", "GGUF");
  dir.Write(repo + "/snapshots/not-a-commit/m-F16.gguf", "GGUF");
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(dir.Path(repo + "/snapshots/" + older), now - std::chrono::hours(2));
  fs::last_write_time(dir.Path(repo + "/snapshots/" + newer), now - std::chrono::hours(1));
  EXPECT_EQ(NamesOf(FindHuggingFaceModels(dir.path())), (std::vector<std::string>{"a/b:Q4_0"}));
  // A reference to a commit that is not here, or to none, is passed over.
  for (const std::string& main : {std::string(40, 'f'), std::string("../../x"), std::string()}) {
    dir.Write(repo + "/refs/main", main);
    EXPECT_EQ(FindHuggingFaceModels(dir.path())[0].revision, newer) << main;
  }
  dir.Write(repo + "/refs/main", older);
  EXPECT_EQ(FindHuggingFaceModels(dir.path())[0].revision, older);
}

TEST(Discovery, FoldersOfTheCacheThatAreNoModels) {
  const TempDir dir;
  for (const char* name :
       {"models--x", "models----x", "models--x--", "spaces--a--b", "version.txt"}) {
    Link(dir, name, kCommit, "m-Q8_0.gguf", "GGUF");
  }
  EXPECT_TRUE(FindHuggingFaceModels(dir.path()).empty());
  EXPECT_TRUE(FindHuggingFaceModels("").empty()) << "no home is known";
  Link(dir, "models--a--b--c", kCommit, "m-Q8_0.gguf", "GGUF");
  EXPECT_EQ(NamesOf(FindHuggingFaceModels(dir.path())), (std::vector<std::string>{"a/b--c:Q8_0"}));
}

TEST(Discovery, OriginsHaveNames) {
  EXPECT_STREQ(NameOf(Origin::kOwn), "Hearth");
  EXPECT_STREQ(NameOf(Origin::kOllama), "Ollama");
  EXPECT_STREQ(NameOf(Origin::kHuggingFace), "Hugging Face");
  EXPECT_STREQ(NameOf(Origin::kLmStudio), "LM Studio");
}

}  // namespace
}  // namespace hearth
