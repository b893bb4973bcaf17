// SPDX-License-Identifier: Apache-2.0
#include "server/observe/log.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "testing/temp_dir.h"

namespace hearth {
namespace {

TurnOutcome Some() {
  TurnOutcome outcome;
  outcome.dialect = "chat";
  outcome.request_id = "abc";
  outcome.key_id = "anna\n{}";
  outcome.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  outcome.records.emplace_back();
  outcome.records[0].finish = Finish::kStop;
  outcome.records[0].num_prompt = 7;
  outcome.records[0].arrived_us = 1'000;
  outcome.records[0].first_token_us = 3'500;
  return outcome;
}

TEST(RequestLog, SaysSizesAndTimes) {
  const Json line = OutcomeAsJson(Some(), 1'700'000'000'123);
  EXPECT_EQ(*line.Find("time")->string(), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(*line.Find("traceparent")->string(), Some().traceparent);
  const Json& choice = line.Find("choices")->array()->front();
  EXPECT_EQ(*choice.Find("finish")->string(), "stop");
  EXPECT_EQ(choice.Find("prompt_tokens")->integer(), 7);
  EXPECT_EQ(choice.Find("first_token_ms")->number(), 2.5);
  EXPECT_EQ(choice.Find("wait_ms")->number(), 0) << "it never started";
  EXPECT_EQ(line.Find("ignored_fields"), nullptr);
  TurnOutcome ignoring = Some();
  ignoring.ignored_fields = "top_a";
  EXPECT_EQ(*OutcomeAsJson(ignoring, 0).Find("ignored_fields"), Json("top_a"));
}

class LocalTime : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    tzset();
  }
};

TEST_F(LocalTime, ALineForPeopleIsShort) {
  TurnOutcome outcome = Some();
  outcome.seconds = 1.5;
  RequestRecord& record = outcome.records[0];
  record.num_prompt = 1234;
  record.num_cached = 1024;
  record.num_generated = 11;
  record.first_token_us = 1'000'000;
  record.ended_us = 3'000'000;
  EXPECT_EQ(OutcomeAsLine(outcome, 1'700'000'000'123),
            "22:13:20 chat 200  1234 prompt (1024 cached) + 11 reply tokens, 5.0 tok/s, 1.50 s");
  // Two choices of one prompt: it counts once, what they say twice.
  outcome.records.push_back(record);
  outcome.choices_per_prompt = 2;
  EXPECT_EQ(OutcomeAsLine(outcome, 1'700'000'000'123),
            "22:13:20 chat 200  1234 prompt (1024 cached) + 22 reply tokens, 10.0 tok/s, 1.50 s");
  // Nothing was said: there is no rate.
  outcome.records.resize(1);
  outcome.records[0].num_generated = 0;
  outcome.records[0].first_token_us = 0;
  EXPECT_EQ(OutcomeAsLine(outcome, 1'700'000'000'123),
            "22:13:20 chat 200  1234 prompt (1024 cached) + 0 reply tokens, 1.50 s");
}

TEST_F(LocalTime, ALineSaysWhatWentWrong) {
  TurnOutcome outcome;
  outcome.dialect = "responses";
  outcome.status = 400;
  outcome.error_code = "unknown_parameter";
  outcome.seconds = 0.004;
  EXPECT_EQ(OutcomeAsLine(outcome, 0), "00:00:00 responses 400 unknown_parameter  0.00 s");
}

TEST(RequestLog, WritesShortLinesWhereTheyAreWanted) {
  const testing::TempDir dir;
  {
    auto log = RequestLog::Open(dir.Path("log"), RequestLog::Form::kLine);
    ASSERT_TRUE(log.ok()) << log.status().message();
    (*log)->OnEnd(Some());
  }
  std::ifstream file(dir.Path("log"));
  std::string text;
  ASSERT_TRUE(std::getline(file, text));
  EXPECT_NE(text.find(" chat 200  7 prompt"), std::string::npos) << text;
  EXPECT_EQ(text.find("anna"), std::string::npos) << "a key is named only where it was asked for";
}

TEST(RequestLog, WritesALinePerRequest) {
  const testing::TempDir dir;
  {
    auto log = RequestLog::Open(dir.Path("log"));
    ASSERT_TRUE(log.ok()) << log.status().message();
    for (int i = 0; i < 100; ++i) (*log)->OnEnd(Some());
  }
  std::ifstream file(dir.Path("log"));
  int lines = 0;
  for (std::string text; std::getline(file, text); ++lines) {
    Result<Json> line = ParseJson(text);
    ASSERT_TRUE(line.ok()) << text;
    EXPECT_EQ(*line->Find("key")->string(), "anna\n{}");
  }
  EXPECT_EQ(lines, 100);
  EXPECT_FALSE(RequestLog::Open(dir.Path("log/under/a/file")).ok());
}

TEST(RequestLog, AReaderThatHasGoneCostsLinesAndNothingElse) {
  ::signal(SIGPIPE, SIG_IGN);
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const int stderr_before = ::dup(STDERR_FILENO);
  ::dup2(pipe[1], STDERR_FILENO);
  ::close(pipe[1]);
  ::close(pipe[0]);
  auto log = RequestLog::Open("-");
  ASSERT_TRUE(log.ok());
  for (int i = 0; i < 3; ++i) (*log)->OnEnd(Some());
  for (int i = 0; i < 5000 && (*log)->num_lost() < 3; ++i) ::usleep(1000);
  const uint64_t num_lost = (*log)->num_lost();
  ::dup2(stderr_before, STDERR_FILENO);
  ::close(stderr_before);
  EXPECT_EQ(num_lost, 3u);
}

TEST(RequestLog, TellsOfTheProcessBefore) {
  const testing::TempDir dir;
  {
    auto log = RequestLog::Open(dir.Path("log"));
    ASSERT_TRUE(log.ok());
    (*log)->TellRestart({true, 2, "killed by signal 9 (Killed)", 1'700'000'000});
  }
  std::ifstream file(dir.Path("log"));
  std::string text;
  ASSERT_TRUE(std::getline(file, text));
  Result<Json> line = ParseJson(text);
  ASSERT_TRUE(line.ok()) << text;
  EXPECT_EQ(*line->Find("event")->string(), "restart");
  const Json& worker = *line->Find("worker");
  EXPECT_EQ(worker.Find("restarts")->integer(), 2);
  EXPECT_EQ(*worker.Find("last_end")->string(), "killed by signal 9 (Killed)");
  EXPECT_EQ(*worker.Find("last_end_time")->string(), "2023-11-14T22:13:20.000Z");
}

TEST(WorkerFacts, AreALineOnlyAfterARestart) {
  EXPECT_EQ(AsLine({}), "");
  EXPECT_EQ(AsLine({true, 1, "exit code 70", 1'700'000'000}),
            "restarted 1 time; last at 2023-11-14T22:13:20.000Z: exit code 70");
}

int64_t LinesOf(const std::string& path) {
  std::ifstream file(path);
  return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

TEST(RequestLog, GoesOnInANewFileWhenTheOldOneWasMovedAway) {
  const testing::TempDir dir;
  auto log = RequestLog::Open(dir.Path("log"));
  ASSERT_TRUE(log.ok()) << log.status().message();
  for (int i = 0; i < 10; ++i) (*log)->OnEnd(Some());
  ASSERT_EQ(std::rename(dir.Path("log").c_str(), dir.Path("log.1").c_str()), 0);
  ASSERT_TRUE((*log)->Reopen().ok());
  for (int i = 0; i < 10; ++i) (*log)->OnEnd(Some());
  *log = nullptr;  // writes what is queued
  EXPECT_GE(LinesOf(dir.Path("log")), 10);
  EXPECT_EQ(LinesOf(dir.Path("log")) + LinesOf(dir.Path("log.1")), 20) << "each in one of them";
}

TEST(RequestLog, StaysWhereItIsWhenThereIsNoNewFile) {
  const testing::TempDir dir;
  std::filesystem::create_directory(dir.Path("folder"));
  auto log = RequestLog::Open(dir.Path("folder/log"));
  ASSERT_TRUE(log.ok()) << log.status().message();
  std::filesystem::rename(dir.Path("folder"), dir.Path("moved"));
  EXPECT_EQ((*log)->Reopen().code(), Code::kIo);
  (*log)->OnEnd(Some());
  *log = nullptr;
  EXPECT_EQ(LinesOf(dir.Path("moved/log")), 1);
  auto screen = RequestLog::Open("-");
  ASSERT_TRUE(screen.ok());
  EXPECT_TRUE((*screen)->Reopen().ok()) << "standard error is nobody's to move";
}

TEST(RequestLog, IsItsOwnersAlone) {
  const testing::TempDir dir;
  const mode_t before = ::umask(0);
  auto log = RequestLog::Open(dir.Path("log"));
  ::umask(before);
  struct stat info{};
  ASSERT_EQ(::stat(dir.Path("log").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

}  // namespace
}  // namespace hearth
