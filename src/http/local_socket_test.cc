// SPDX-License-Identifier: Apache-2.0
#include "http/local_socket.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

#include "http/http_server.h"
#include "testing/socket_client.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

Result<std::unique_ptr<HttpServer>> ListenAt(const std::string& path) {
  HttpOptions options;
  options.unix_path = path;
  return HttpServer::Listen(options, Router());
}

TEST(LocalSocket, IsNotTakenFromALiveServer) {
  const testing::TempDir dir;
  const std::string path = dir.Path("s");
  auto first = ListenAt(path);
  ASSERT_TRUE(first.ok()) << first.status().message();
  const Status second = ListenAt(path).status();
  EXPECT_EQ(second.code(), Code::kInvalid);
  EXPECT_NE(second.message().find("another server"), std::string::npos) << second.message();
  const testing::SocketClient client(path);  // the first one's, who must still be reachable
  EXPECT_EQ(::access(path.c_str(), F_OK), 0);
}

TEST(LocalSocket, IsTakenFromTheDead) {
  const testing::TempDir dir;
  const std::string path = dir.Path("s");
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, path.data(), path.size());
  const int dead = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(dead, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  ::close(dead);
  ASSERT_EQ(::access(path.c_str(), F_OK), 0) << "as after a kill";
  auto server = ListenAt(path);
  EXPECT_TRUE(server.ok()) << server.status().message();
  const testing::SocketClient client(path);
}

TEST(LocalSocket, LeavesFilesAlone) {
  const testing::TempDir dir;
  std::ofstream(dir.Path("s")) << "mine";
  EXPECT_EQ(ListenAt(dir.Path("s")).status().code(), Code::kIo);
  std::string text;
  std::ifstream(dir.Path("s")) >> text;
  EXPECT_EQ(text, "mine");
}

TEST(LocalSocket, OneOfManyWhoStartTogetherGetsIt) {
  const testing::TempDir dir;
  for (int round = 0; round < 20; ++round) {
    const std::string path = dir.Path(std::to_string(round));
    std::vector<Result<std::unique_ptr<HttpServer>>> all;
    for (int i = 0; i < 4; ++i) all.push_back(Error(Code::kIo, "not tried"));
    std::vector<std::thread> threads;
    for (auto& one : all) threads.emplace_back([&one, &path] { one = ListenAt(path); });
    for (std::thread& thread : threads) thread.join();
    int served = 0;
    for (auto& one : all) served += one.ok() ? 1 : 0;
    EXPECT_EQ(served, 1);
  }
}

TEST(LocalSocket, OneThatDrainsDoesNotRemoveItsSuccessors) {
  const testing::TempDir dir;
  const std::string path = dir.Path("s");
  auto first = ListenAt(path);
  ASSERT_TRUE(first.ok());
  (*first)->Drain();
  auto second = ListenAt(path);
  ASSERT_TRUE(second.ok()) << second.status().message();
  *first = nullptr;
  EXPECT_EQ(::access(path.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace hearth
