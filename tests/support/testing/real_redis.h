// SPDX-License-Identifier: Apache-2.0
// A redis-server of a test's own.
#pragma once
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hearth::testing {

inline bool Until(const std::function<bool()>& is_true) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!is_true()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// A server on a unix socket, without files.
class RealRedis {
 public:
  RealRedis(std::string socket, std::vector<std::string> more = {})
      : socket_(std::move(socket)), more_(std::move(more)) {
    Start();
  }
  ~RealRedis() { Stop(); }
  void Start() {
    std::vector<std::string> words = {
        "redis-server", "--port", "0",           "--unixsocket", socket_,      "--save", "",
        "--appendonly", "no",     "--daemonize", "no",           "--loglevel", "warning"};
    words.insert(words.end(), more_.begin(), more_.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1, 0);
    ASSERT_EQ(posix_spawnp(&pid_, "redis-server", &actions, nullptr, arguments.data(), environ), 0)
        << "redis-server is not installed: ./dev setup";
    posix_spawn_file_actions_destroy(&actions);
    ASSERT_TRUE(Until([&] { return access(socket_.c_str(), F_OK) == 0; }));
  }
  void Stop() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    unlink(socket_.c_str());
    pid_ = 0;
  }
  void Signal(int number) { kill(pid_, number); }

 private:
  const std::string socket_;
  const std::vector<std::string> more_;
  pid_t pid_ = 0;
};

}  // namespace hearth::testing
