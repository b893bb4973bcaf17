// SPDX-License-Identifier: Apache-2.0
// A server of the loopback that answers one question after the other with what a test wrote down,
// whatever is asked, and keeps the questions. For clients of HTTP.
#pragma once
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
namespace hearth::testing {

inline std::string HttpAnswer(int status, std::string_view body, std::string_view headers = "") {
  return "HTTP/1.1 " + std::to_string(status) +
         " x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + std::string(headers) +
         "\r\n" + std::string(body);
}

// Connections are served one after the other. An answer with "Connection: close" ends its
// connection; when the answers are used up, nothing more is said.
class OneServer {
 public:
  explicit OneServer(std::vector<std::string> answers, const std::string& unix_path = "")
      : answers_(std::move(answers)) {
    if (unix_path.empty()) {
      BindLoopback();
    } else {
      BindPath(unix_path);
    }
    EXPECT_EQ(listen(listener_, 8), 0);
    thread_ = std::thread([this] { Serve(); });
  }
  ~OneServer() {
    shutdown(listener_, SHUT_RDWR);
    if (const int client = client_; client >= 0) shutdown(client, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  OneServer(const OneServer&) = delete;
  OneServer& operator=(const OneServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<std::string> questions() const {
    const std::lock_guard lock(mu_);
    return questions_;
  }
  // All of them, for tests that look for words.
  std::string asked() const {
    std::string all;
    for (const std::string& question : questions()) all += question;
    return all;
  }

 private:
  void BindLoopback() {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  void BindPath(const std::string& path) {
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  static bool IsWhole(const std::string& question) {
    const size_t end = question.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    constexpr std::string_view kLength = "Content-Length: ";
    const size_t at = question.find(kLength);
    size_t length = 0;
    if (at < end) {
      std::from_chars(question.data() + at + kLength.size(), question.data() + end, length);
    }
    return question.size() >= end + 4 + length;
  }
  static std::string ReadQuestion(int client) {
    std::string question;
    std::array<char, 65536> bytes;
    while (!IsWhole(question)) {
      const ssize_t got = read(client, bytes.data(), bytes.size());
      if (got <= 0) return "";
      question.append(bytes.data(), static_cast<size_t>(got));
    }
    return question;
  }
  void Serve() {
    size_t next = 0;
    while (true) {
      const int client = accept(listener_, nullptr, nullptr);
      if (client < 0) return;
      client_ = client;
      for (std::string question = ReadQuestion(client); !question.empty();
           question = ReadQuestion(client)) {
        {
          const std::lock_guard lock(mu_);
          questions_.push_back(question);
        }
        if (next >= answers_.size()) continue;
        const std::string& answer = answers_[next++];
        if (send(client, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) break;
        if (answer.find("Connection: close") != std::string::npos) break;
      }
      client_ = -1;
      close(client);
    }
  }

  const std::vector<std::string> answers_;
  int listener_ = -1, port_ = 0;
  std::atomic<int> client_ = -1;
  mutable std::mutex mu_;
  std::vector<std::string> questions_;
  std::thread thread_;
};

}  // namespace hearth::testing
