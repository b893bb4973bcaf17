// SPDX-License-Identifier: Apache-2.0
// What tests/server/doctor_test.py cannot break from outside.
#include "app/doctor_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "app/redact.h"
#include "testing/temp_dir.h"
#include "testing/tiny_models.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;

Finding Of(const std::vector<Check>& checks, const std::string& name) {
  for (const Check& check : checks) {
    if (check.name == name) return check.look();
  }
  ADD_FAILURE() << "no check " << name;
  return {};
}

TEST(Doctor, SlowMemoryIsFound) {
  EXPECT_EQ(JudgeBandwidth(20e9, 0).verdict, Verdict::kGood) << "nothing to compare with";
  EXPECT_EQ(JudgeBandwidth(45e9, 89.6e9).verdict, Verdict::kGood);
  const Finding slow = JudgeBandwidth(30e9, 89.6e9);
  EXPECT_EQ(slow.verdict, Verdict::kWarning);
  EXPECT_EQ(slow.found, "30.0 GB/s of 89.6 or more");
  EXPECT_THAT(slow.advice, HasSubstr("memory modules"));
}

TEST(Doctor, TheInnermostMountDecides) {
  const testing::TempDir dir;
  dir.Write("proc/self/mountinfo",
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
            "23 22 0:5 / /data rw shared:1 - nfs4 box:/data rw\n"
            "24 22 0:6 / /datastore rw - tmpfs tmpfs rw\n"
            "broken line\n");
  const SystemFiles files(dir.path());
  EXPECT_EQ(FilesystemOf(files, "/var/models"), "ext4");
  EXPECT_EQ(FilesystemOf(files, "/data/ada/models"), "nfs4");
  EXPECT_EQ(FilesystemOf(files, "/datastore"), "tmpfs");
  EXPECT_EQ(FilesystemOf(SystemFiles(dir.Path("nothing")), "/"), "");
}

TEST(Doctor, ModelsOnNetworkDisksAndInMemoryAreNamed) {
  for (const auto& [type, verdict] :
       {std::pair("nfs4", Verdict::kNote), std::pair("tmpfs", Verdict::kWarning),
        std::pair("xfs", Verdict::kGood)}) {
    const testing::TempDir dir;
    dir.Write("proc/self/mountinfo", std::string("22 1 8:1 / / rw - ") + type + " source rw\n");
    const SystemFiles files(dir.path());
    std::vector<Check> checks;
    const auto environment = [&](const char* name) {
      return std::string(name) == "HOME" ? dir.path() : "";
    };
    AddStoreChecks(files, environment, checks);
    EXPECT_EQ(Of(checks, "store.file-system").verdict, verdict) << type;
  }
}

TEST(Doctor, AModelThatDoesNotFitIsAFault) {
  const testing::TempDir dir;
  dir.Write("tiny.gguf", testing::TinyModel("llama").Build());
  const auto fits = [&](uint64_t memory_bytes) {
    std::vector<Check> checks;
    AddModelChecks(dir.Path("tiny.gguf"), ProcessEnvironment(), memory_bytes, false, checks);
    return Of(checks, "model.fits");
  };
  EXPECT_LT(fits(uint64_t{1} << 40).verdict, Verdict::kWarning);
  const Finding finding = fits(1000);
  EXPECT_EQ(finding.verdict, Verdict::kFault) << finding.found;
  EXPECT_THAT(finding.advice, HasSubstr("smaller model"));
}

TEST(Doctor, AModelIsOpenedOnce) {
  const testing::TempDir dir;
  dir.Write("tiny.gguf", testing::TinyModel("llama").Build());
  std::vector<Check> checks;
  AddModelChecks(dir.Path("tiny.gguf"), ProcessEnvironment(), uint64_t{1} << 40, false, checks);
  EXPECT_EQ(Of(checks, "model.opens").verdict, Verdict::kGood);
  ASSERT_EQ(::unlink(dir.Path("tiny.gguf").c_str()), 0);
  EXPECT_NE(Of(checks, "model.fits").verdict, Verdict::kUnknown) << "it is open already";
  EXPECT_EQ(Of(checks, "model.opens").verdict, Verdict::kGood);
}

TEST(Doctor, CertificatesExpire) {
  const int64_t now = 1'800'000'000, day = 86'400;
  const auto judged = [&](int64_t begins, int64_t ends) {
    return JudgeCertificate({now + begins * day, now + ends * day}, now);
  };
  EXPECT_EQ(judged(-1, 90).verdict, Verdict::kGood);
  EXPECT_EQ(judged(-1, 90).found, "valid for another 90 days");
  EXPECT_EQ(judged(-60, 21).verdict, Verdict::kGood);
  EXPECT_EQ(judged(-60, 20).verdict, Verdict::kWarning);
  EXPECT_THAT(judged(-60, 20).advice, HasSubstr("renew"));
  EXPECT_EQ(judged(-60, 0).verdict, Verdict::kFault) << "its last second is over";
  EXPECT_THAT(judged(-60, -3).found, HasSubstr("expired 3 days ago"));
  EXPECT_EQ(judged(2, 90).verdict, Verdict::kFault);
  EXPECT_THAT(judged(2, 90).advice, HasSubstr("clock"));
}

TEST(Doctor, SlowDisksAreFound) {
  EXPECT_EQ(JudgeDiskRate(2e9).verdict, Verdict::kGood);
  EXPECT_EQ(JudgeDiskRate(2e9).found, "2.00 GB/s: a model of 12 GB is read in 6 s");
  EXPECT_EQ(JudgeDiskRate(120e6).verdict, Verdict::kWarning);
  EXPECT_THAT(JudgeDiskRate(120e6).advice, HasSubstr("SSD"));
}

TEST(Doctor, ARateNeedsAFileOfSomeLength) {
  const testing::TempDir dir;
  dir.Write("short", "four");
  EXPECT_FALSE(DiskReadRate(dir.Path("short")).ok());
  EXPECT_FALSE(DiskReadRate(dir.Path("nothing")).ok());
}

TEST(Redact, PrivateWordsGoWherever) {
  const std::vector<PrivateWord> words = {{"/data/ada", "~"}, {"ada", "USER"}, {"x", "HOST"}};
  EXPECT_EQ(Redacted("/data/ada/models by ada, not adam or x", words),
            "~/models by USER, not adam or x");
  EXPECT_EQ(Redacted("ada", words), "USER");
  EXPECT_EQ(Redacted("", words), "");
}

}  // namespace
}  // namespace hearth
