// SPDX-License-Identifier: Apache-2.0
// A supervisor in a child of the test, over workers that are shell scripts.
#include "supervise/supervisor.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "supervise/worker_seat.h"

namespace hearth {
namespace {

// The pipe is the seat's second descriptor; the worker says on it that it is ready.
constexpr const char* kReady = "pipe=$(echo $HEARTH_WORKER | cut -d, -f2); echo READY=1 >&$pipe; ";

class SupervisorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "supervise" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // A supervisor whose worker runs `script`; `$F` is a folder of this test's own.
  pid_t Begin(const std::string& script, double stall_s = 60) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::setenv("F", folder_.c_str(), 1);
    SupervisorOptions options;
    options.stall_s = stall_s;
    options.program = "/bin/bash";
    options.arguments = {"bash", "-c", script};
    Result<WorkerEnd> end = Supervise(options);
    if (!end.ok()) ::_exit(99);
    EndLike(*end);
  }
  static int EndOf(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }
  std::string Text(const std::string& name) const {
    std::ifstream in(folder_ + "/" + name);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
  bool Eventually(const std::function<bool()>& is) const {
    for (int i = 0; i < 2000 && !is(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return is();
  }
  std::string folder_;
};

TEST_F(SupervisorTest, AStartErrorEndsWithItsCode) {
  const int status = EndOf(Begin("exit 7"));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

TEST_F(SupervisorTest, ACleanEndIsTheEnd) {
  const int status = EndOf(Begin(std::string(kReady) + "exit 0"));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(SupervisorTest, AWorkerThatDiesIsReplacedUntilOneEndsWell) {
  const int status =
      EndOf(Begin(std::string(kReady) + "echo x >> $F/starts; "
                                        "[ $(wc -l < $F/starts) -lt 4 ] && kill -SEGV $$; exit 0"));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(Text("starts"), "x\nx\nx\nx\n");
}

TEST_F(SupervisorTest, SignalsArePassedOnAndTheEndIsTheWorkers) {
  const pid_t child =
      Begin(std::string(kReady) +
            "trap 'echo hup >> $F/said' HUP; trap 'echo term >> $F/said; exit 5' TERM; "
            "echo up > $F/up; while true; do sleep 0.02; done");
  ASSERT_TRUE(Eventually([&] { return Text("up") == "up\n"; }));
  ::kill(child, SIGHUP);
  EXPECT_TRUE(Eventually([&] { return Text("said") == "hup\n"; }));
  ::kill(child, SIGTERM);
  const int status = EndOf(child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 5) << status;
  EXPECT_EQ(Text("said"), "hup\nterm\n");
}

TEST_F(SupervisorTest, ADeathBySignalIsPassedOn) {
  const pid_t child = Begin(std::string(kReady) + "echo up > $F/up; sleep 60");
  ASSERT_TRUE(Eventually([&] { return Text("up") == "up\n"; }));
  ::kill(child, SIGINT);
  const int status = EndOf(child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
}

TEST_F(SupervisorTest, SilenceIsDeath) {
  // The first worker never beats; the second ends well before anybody misses it.
  const int status =
      EndOf(Begin(std::string(kReady) + "echo x >> $F/starts; "
                                        "[ $(wc -l < $F/starts) -lt 2 ] && sleep 60; exit 0",
                  0.3));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(Text("starts"), "x\nx\n");
}

TEST_F(SupervisorTest, AWorkerDoesNotOutliveItsSupervisor) {
  const pid_t child =
      Begin(std::string(kReady) + "echo $$ > $F/pid; while true; do sleep 0.02; done");
  ASSERT_TRUE(Eventually([&] { return !Text("pid").empty(); }));
  const pid_t worker = std::stoi(Text("pid"));
  ::kill(child, SIGKILL);
  EndOf(child);
  EXPECT_TRUE(Eventually([&] { return ::kill(worker, 0) != 0; }));
}

TEST_F(SupervisorTest, KeysOfTheTerminalAreForTheSupervisorAlone) {
  const pid_t child = Begin(std::string(kReady) + "echo $$ > $F/pid; sleep 60");
  ASSERT_TRUE(Eventually([&] { return !Text("pid").empty(); }));
  const pid_t worker = std::stoi(Text("pid"));
  EXPECT_EQ(::getpgid(worker), worker);
  ::kill(child, SIGTERM);
  EndOf(child);
}

TEST(WorkerSeat, ItsTextIsReadBackAndNothingElse) {
  const std::string text = WorkerSeat::AsText({3, 4, {5, -1}});
  EXPECT_EQ(text, "3,4,5,-1");
  Result<WorkerSeat::Descriptors> back = WorkerSeat::FromText(text);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->page, 3);
  EXPECT_EQ(back->pipe, 4);
  EXPECT_EQ(back->listeners, (std::vector<int>{5, -1}));
  for (const char* bad : {"", "3", "3,", "3,x", "3,4 ", "-2,3", "3,4,99999999999"}) {
    EXPECT_FALSE(WorkerSeat::FromText(bad).ok()) << bad;
  }
}

TEST(OwnArguments, AreThoseOfThisProcess) {
  ASSERT_FALSE(OwnArguments().empty());
  EXPECT_NE(OwnArguments()[0].find("supervise_test"), std::string::npos);
}

}  // namespace
}  // namespace hearth
