// SPDX-License-Identifier: Apache-2.0
#include "app/secret_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hearth {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SecretFiles, ModesThatOthersCanReadAre) {
  for (const mode_t mode : {0600U, 0400U, 0700U, 0200U}) {
    EXPECT_EQ(WhoElseReads(mode, 1000), "") << mode;
    EXPECT_EQ(WhoElseReads(mode, 0), "") << mode;
  }
  for (const mode_t mode : {0604U, 0602U, 0601U, 0644U, 0666U, 0777U}) {
    EXPECT_THAT(WhoElseReads(mode, 1000), HasSubstr("other users")) << mode;
    EXPECT_THAT(WhoElseReads(mode, 0), HasSubstr("other users")) << mode;
  }
  // Given to a group by root, who alone can change it; otherwise a group is others.
  EXPECT_EQ(WhoElseReads(0640, 0), "");
  EXPECT_EQ(WhoElseReads(0440, 0), "");
  EXPECT_THAT(WhoElseReads(0640, 1000), HasSubstr("group"));
  EXPECT_THAT(WhoElseReads(0660, 0), HasSubstr("group"));
  EXPECT_THAT(WhoElseReads(0610, 0), HasSubstr("group"));
}

Setting From(Rank rank, const std::string& value, const std::string& origin) {
  return {rank, {value}, origin};
}

TEST(SecretFiles, AFileWithAPasswordIsOne) {
  Settings settings;
  settings.values["HEARTH_SERVE_CACHE_REDIS"] =
      From(Rank::kSystemFile, "redis://:hunter2@h", "/etc/hearth/hearth.toml:3");
  settings.values["HEARTH_SERVE_BATCHES"] =
      From(Rank::kSystemFile, "postgresql://a:hunter2@h", "/etc/hearth/hearth.toml:4");
  settings.values["HEARTH_TOP_URL"] = From(Rank::kUserFile, "http://h", "/srv/ada/hearth.toml:1");
  settings.values["HEARTH_RUN_SERVER"] = From(Rank::kVariable, "http://a:b@h", "HEARTH_RUN_SERVER");
  settings.values["HEARTH_SERVE_KEYS"] = From(Rank::kVariable, "/k.json", "HEARTH_SERVE_KEYS");
  const std::vector<SecretFile> with = FilesWithPasswords(settings);
  ASSERT_EQ(with.size(), 1u) << "once, and no variable is a file";
  EXPECT_EQ(with[0].path, "/etc/hearth/hearth.toml");
  const std::vector<SecretFile> all = SecretFilesOf(settings);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].path, "/k.json");
  EXPECT_EQ(all[0].origin, "HEARTH_SERVE_KEYS");
}

TEST(SecretFiles, WarnsOfThoseThatOthersCanRead) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("hearth-secret-" + std::to_string(::getpid()));
  std::ofstream(path) << "secret";
  const auto warned = [&](mode_t mode) {
    ::chmod(path.c_str(), mode);
    ::testing::internal::CaptureStderr();
    WarnOfExposed({{path, "API keys", ""}, {"", "nothing", ""}, {path + "-gone", "nothing", ""}});
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warned(0600), IsEmpty());
  EXPECT_THAT(warned(0644),
              HasSubstr("holds API keys and can be read by other users; run: chmod 600"));
  EXPECT_FALSE(ExposureOf({path, "", ""}).is_missing);
  EXPECT_TRUE(ExposureOf({path + "-gone", "", ""}).is_missing);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace hearth
