// SPDX-License-Identifier: Apache-2.0
#include "app/confine_serve.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "testing/temp_dir.h"

namespace hearth {
namespace {

bool Has(const std::vector<FileRule>& rules, const std::string& path, FileUse use) {
  return std::any_of(rules.begin(), rules.end(),
                     [&](const FileRule& rule) { return rule.path == path && rule.use == use; });
}
bool Names(const std::vector<FileRule>& rules, const std::string& path) {
  return std::any_of(rules.begin(), rules.end(),
                     [&](const FileRule& rule) { return rule.path == path; });
}

TEST(ServeFileRules, AModelFileOpensItsPartsAndNotItsFolder) {
  const testing::TempDir dir;
  dir.Write("m-00001-of-00002.gguf", "").Write("m-00002-of-00002.gguf", "").Write("id_rsa", "");
  dir.Write("other.gguf", "").Write("mm-00002-of-00002.gguf", "").Write("notes.txt", "");
  const auto rules = ServeFileRules({.models = {dir.Path("m-00001-of-00002.gguf")}});
  EXPECT_TRUE(Has(rules, dir.Path("m-00001-of-00002.gguf"), FileUse::kRead));
  EXPECT_TRUE(Has(rules, dir.Path("m-00002-of-00002.gguf"), FileUse::kRead));
  for (const char* other : {"id_rsa", "other.gguf", "mm-00002-of-00002.gguf", "notes.txt"}) {
    EXPECT_FALSE(Names(rules, dir.Path(other))) << other;
  }
  EXPECT_FALSE(Names(rules, dir.path()));
  EXPECT_FALSE(Names(rules, "/etc"));
  EXPECT_FALSE(Names(rules, "/"));
}

TEST(ServeFileRules, AModelFolderIsListedAndItsModelsFilesAreRead) {
  const testing::TempDir dir;
  dir.Write("blobs/abc", "").Write("model/config.json", "").Write("model/other.gguf", "");
  std::filesystem::create_symlink(dir.Path("blobs/abc"), dir.Path("model/model.safetensors"));
  const auto rules = ServeFileRules({.models = {dir.Path("model")}});
  EXPECT_TRUE(Has(rules, dir.Path("model"), FileUse::kList));
  EXPECT_FALSE(Has(rules, dir.Path("model"), FileUse::kRead));
  EXPECT_TRUE(Has(rules, dir.Path("model/config.json"), FileUse::kRead));
  EXPECT_TRUE(Has(rules, dir.Path("model/model.safetensors"), FileUse::kRead)) << "a link's target";
  EXPECT_FALSE(Names(rules, dir.Path("model/other.gguf")));
}

TEST(ServeFileRules, FilesThatAreReplacedOpenTheirFolders) {
  const testing::TempDir dir;
  dir.Write("archive/chain1.pem", "").Write("live/x", "");
  std::filesystem::create_symlink(dir.Path("archive/chain1.pem"), dir.Path("live/chain.pem"));
  const auto rules = ServeFileRules({.keys = dir.Path("keys/keys.json"),
                                     .certificate = dir.Path("live/chain.pem"),
                                     .responses = dir.Path("state/r.db"),
                                     .log = dir.Path("log/log"),
                                     .unix_socket = dir.Path("run/s")});
  EXPECT_TRUE(Has(rules, dir.Path("keys"), FileUse::kRead));
  EXPECT_TRUE(Has(rules, dir.Path("live"), FileUse::kRead));
  EXPECT_TRUE(Has(rules, dir.Path("archive"), FileUse::kRead)) << "where the link leads";
  EXPECT_TRUE(Has(rules, dir.Path("state"), FileUse::kWrite));
  EXPECT_TRUE(Has(rules, dir.Path("log"), FileUse::kAppend));
  EXPECT_TRUE(Has(rules, dir.Path("run"), FileUse::kSocket));
}

TEST(ServeFileRules, APathWithoutAFolderIsInThisOne) {
  EXPECT_TRUE(Has(ServeFileRules({.log = "log"}), ".", FileUse::kAppend));
  EXPECT_FALSE(Names(ServeFileRules({.log = "-"}), "."));
  EXPECT_TRUE(Has(ServeFileRules({.folders = {"/models"}, .state = {"/cache"}}), "/models",
                  FileUse::kRead));
  EXPECT_TRUE(Has(ServeFileRules({.state = {"/cache"}}), "/cache", FileUse::kWrite));
}

TEST(Confine, CanBeTurnedOff) {
  EXPECT_TRUE(HideServer(ConfineMode::kOff).ok());
  EXPECT_TRUE(ConfineFiles(ConfineMode::kOff, {}).ok());
  EXPECT_TRUE(ConfineCalls(ConfineMode::kOff).ok());
  EXPECT_TRUE(ConfineSupervisor(ConfineMode::kOff).ok());
}

TEST(Confine, TellsRootWhyAFileWasRefused) {
  const Status refused = Error(Code::kIo, "keys: %s", std::strerror(EACCES));
  const Status other = Error(Code::kIo, "keys: %s", std::strerror(ENOENT));
  const auto told = [](ConfineMode mode, const Status& failed) {
    return ExplainRefusedFile(mode, failed).message();
  };
  const bool is_root = ::geteuid() == 0;
  EXPECT_EQ(told(ConfineMode::kAuto, refused).find("--confine off") != std::string::npos, is_root);
  EXPECT_EQ(told(ConfineMode::kOff, refused), refused.message());
  EXPECT_EQ(told(ConfineMode::kAuto, other), other.message());
  EXPECT_TRUE(ExplainRefusedFile(ConfineMode::kAuto, Status()).ok());
}

}  // namespace
}  // namespace hearth
