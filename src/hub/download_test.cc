// SPDX-License-Identifier: Apache-2.0
#include "hub/download.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>

#include "platform/file.h"
#include "testing/fake_transport.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::FakeTransport;
using testing::Fault;
using testing::TempDir;

class Notes final : public DownloadWatcher {
 public:
  void OnProgress(uint64_t bytes_here) override { last = bytes_here; }
  void OnNote(const std::string& note) override { text += note + "\n"; }
  uint64_t last = 0;
  std::string text;
};

std::string RandomText(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

Digest Sha256(std::string_view text) {
  Digester digester(DigestKind::kSha256, text.size());
  digester.Add(std::as_bytes(std::span(text.data(), text.size())));
  return digester.Finish();
}

// A file of nine parts and a bit, on a server that does what the test says.
class DownloadTest : public ::testing::Test {
 protected:
  DownloadTest() {
    transport_.files["u"] = content_;
    task_ = {
        .url = "u", .path = dir_.Path("m"), .size = content_.size(), .digest = Sha256(content_)};
    policy_ = {.num_connections = 3, .part_bytes = 10000, .stall_time = milliseconds(30)};
    policy_.retry = {
        .max_retries = 4, .first_wait = milliseconds(1), .longest_wait = milliseconds(2)};
  }
  Status Run() { return DownloadFile(transport_, task_, policy_, notes_); }
  void ExpectWhole() {
    const Status status = Run();
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(*ReadTextFile(dir_.Path("m"), 1 << 20) == content_);
    EXPECT_EQ(notes_.last, content_.size());
    EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path()), fs::directory_iterator()), 1);
  }
  // Every request but every third fails like this.
  void MostlyFail(const Fault& fault) {
    transport_.fault = [fault](int number, const HttpFetch&) {
      return number % 3 == 2 ? Fault() : fault;
    };
  }

  const std::string content_ = RandomText(95000, 1);
  TempDir dir_;
  FakeTransport transport_;
  DownloadTask task_;
  DownloadPolicy policy_;
  Notes notes_;
};

TEST_F(DownloadTest, EveryByteOnceInParts) {
  task_.token = "secret";
  ExpectWhole();
  EXPECT_EQ(transport_.requests.size(), 10u);
  EXPECT_EQ(transport_.bytes_sent, content_.size());
  std::set<uint64_t> firsts;
  for (const HttpFetch& fetch : transport_.requests) {
    firsts.insert(*fetch.first);
    EXPECT_EQ(fetch.token, "secret");
  }
  EXPECT_EQ(firsts.size(), 10u);
}

TEST_F(DownloadTest, DropsGoOnWhereTheyBroke) {
  MostlyFail({.drop_after = 3000});
  ExpectWhole();
  EXPECT_EQ(transport_.bytes_sent, content_.size());  // no byte twice
}

TEST_F(DownloadTest, StallsAreCutOff) {
  MostlyFail({.stalls = true});
  ExpectWhole();
}

TEST_F(DownloadTest, OverloadAndIllnessPass) {
  MostlyFail({.status = 503});
  ExpectWhole();
}

TEST_F(DownloadTest, FewerConnectionsAfter429) {
  transport_.fault = [](int number, const HttpFetch&) {
    return number < 3 ? Fault{.status = 429, .retry_after = "0"} : Fault();
  };
  ExpectWhole();
}

TEST_F(DownloadTest, WrongAnswersAreNotWritten) {
  for (const Fault& fault : {Fault{.resize = 1}, Fault{.shift = 1}, Fault{.shift = -1},
                             Fault{.extra = 500}, Fault{.cut = 4000}}) {
    transport_.requests.clear();
    MostlyFail(fault);
    ExpectWhole();
    EXPECT_EQ(notes_.text.find("checksum"), std::string::npos) << notes_.text;
    fs::remove(dir_.Path("m"));
  }
}

TEST_F(DownloadTest, AFileOfAnotherLengthIsNamed) {
  transport_.fault = [](int, const HttpFetch&) { return Fault{.resize = 1}; };
  const Status status = Run();
  EXPECT_NE(status.message().find("has 95001 bytes, expected 95000"), std::string::npos)
      << status.message();
  EXPECT_EQ(transport_.bytes_sent, 0u);
}

TEST_F(DownloadTest, ServersWithoutRanges) {
  transport_.fault = [](int, const HttpFetch&) { return Fault{.ignores_range = true}; };
  ExpectWhole();
  EXPECT_NE(notes_.text.find("in one piece"), std::string::npos);
  EXPECT_LE(transport_.bytes_sent, 2 * content_.size());
}

TEST_F(DownloadTest, ServersWithoutRangesThatDrop) {
  transport_.fault = [](int number, const HttpFetch&) {
    return Fault{.drop_after = number < 6 ? 30000 + number * 10000 : -1, .ignores_range = true};
  };
  ExpectWhole();
}

TEST_F(DownloadTest, OneFlippedByteIsFoundAndTheRestIsKept) {
  transport_.fault = [](int number, const HttpFetch&) {
    return number == 1 ? Fault{.flip = 77} : Fault();
  };
  ExpectWhole();
  EXPECT_NE(notes_.text.find("checksum"), std::string::npos);
  // Parts 0 to 2 are fetched again together, and with the second of them the sum is right.
  EXPECT_EQ(transport_.requests.size(), 13u);
}

TEST_F(DownloadTest, PartsThatGaveTroubleAreSuspectedFirst) {
  transport_.fault = [](int, const HttpFetch& fetch) {
    static int visits = 0;
    const bool is_eighth = *fetch.first / 10000 == 8;
    if (is_eighth && visits++ == 0) return Fault{.drop_after = 0, .flip = 3};
    if (is_eighth && visits++ == 2) return Fault{.flip = 3};
    return Fault();
  };
  ExpectWhole();
  EXPECT_LE(transport_.requests.size(), 14u);
}

TEST_F(DownloadTest, AFileThatStaysWrongIsNotKept) {
  transport_.fault = [](int, const HttpFetch& fetch) {
    return *fetch.first == 20000 ? Fault{.flip = 5} : Fault();
  };
  const Status status = Run();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.message().find(task_.digest.hex), std::string::npos);
  EXPECT_TRUE(fs::is_empty(dir_.path()));
}

TEST_F(DownloadTest, GivingUpKeepsWhatArrived) {
  transport_.fault = [](int number, const HttpFetch&) {
    return number < 5 ? Fault() : Fault{.trouble = FetchTrouble::kNoConnection};
  };
  const Status status = Run();
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(status.message().find("kept"), std::string::npos);
  EXPECT_FALSE(fs::exists(dir_.Path("m")));
  const uint64_t before = transport_.bytes_sent;
  EXPECT_EQ(before, 50000u);
  transport_.fault = nullptr;
  ExpectWhole();
  EXPECT_EQ(transport_.bytes_sent, content_.size());
  EXPECT_NE(notes_.text.find("resuming: 53 %"), std::string::npos) << notes_.text;
}

TEST_F(DownloadTest, WhatWillNotPassIsToldAtOnce) {
  for (const long status : {401, 404, 416}) {
    transport_.requests.clear();
    transport_.fault = [status](int, const HttpFetch&) { return Fault{.status = status}; };
    EXPECT_FALSE(Run().ok());
    EXPECT_LE(transport_.requests.size(), 3u);
  }
}

TEST_F(DownloadTest, ADribblingServerDoesNotHoldUsForEver) {
  transport_.fault = [](int, const HttpFetch&) { return Fault{.drop_after = 1}; };
  EXPECT_EQ(Run().code(), Code::kIo);
  EXPECT_LE(transport_.requests.size(), 30u);
}

TEST_F(DownloadTest, WithoutADigestTheLengthIsChecked) {
  task_.digest = {};
  ExpectWhole();
}

TEST_F(DownloadTest, AnEmptyFile) {
  transport_.files["u"] = "";
  task_.size = 0;
  task_.digest = Sha256("");
  EXPECT_TRUE(Run().ok());
  EXPECT_EQ(fs::file_size(dir_.Path("m")), 0u);
}

TEST_F(DownloadTest, ManyRandomFaults) {
  std::mt19937 random(11);
  const std::vector<Fault> faults = {{},
                                     {},
                                     {},
                                     {.status = 500},
                                     {.status = 429, .retry_after = "0"},
                                     {.drop_after = 0},
                                     {.drop_after = 2500},
                                     {.drop_after = 9000},
                                     {.resize = -1},
                                     {.shift = 3},
                                     {.extra = 9},
                                     {.cut = 100},
                                     {.trouble = FetchTrouble::kInterrupted},
                                     {.flip = 40}};
  policy_.retry.max_retries = 30;
  int num_whole = 0;
  for (int i = 0; i < 10; ++i) {
    transport_.requests.clear();
    transport_.fault = [&](int number, const HttpFetch&) {
      if (number > 60) return Fault();
      Fault fault = faults[random() % faults.size()];
      // Elsewhere each time: the same wrong byte twice would be the server's own.
      if (fault.flip >= 0) fault.flip = static_cast<int64_t>(random() % 9000);
      return fault;
    };
    const Status status = Run();
    // A verified file or a clear message, and never anything else at the path.
    EXPECT_EQ(fs::exists(dir_.Path("m")), status.ok());
    EXPECT_TRUE(status.ok() || !status.message().empty());
    if (!status.ok()) continue;
    ++num_whole;
    EXPECT_TRUE(*ReadTextFile(dir_.Path("m"), 1 << 20) == content_);
    fs::remove(dir_.Path("m"));
  }
  EXPECT_GE(num_whole, 9);
}

}  // namespace
}  // namespace hearth
