// SPDX-License-Identifier: Apache-2.0
// HTTP: the code that serves a client's connection, fed any bytes in any pieces over a socket pair.
// Requests must reach their handler exactly as the slow twin reads them, each gets one answer in
// turn, the first that is refused is the last, and how the bytes were cut makes no difference.
#include "fuzz/http_twin.h"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "http/connection.h"

namespace hearth {
namespace {

using http_twin::Reading;
using http_twin::Taken;

constexpr HttpLimits kLimits{.max_head_bytes = 512,
                             .max_target_bytes = 64,
                             .max_headers = 8,
                             .max_body_bytes = 256,
                             .max_chunks = 8};

[[noreturn]] void Report(const char* wrong, const std::string& detail) {
  std::fprintf(stderr, "http_fuzz: %s: %s\n", wrong, detail.c_str());
  std::abort();
}

// A server without listeners: what a connection shares, and the requests that came through it.
struct House {
  LaneShared lane;  // outlives what `io` runs
  boost::asio::io_context io{1};
  // Without it a loop that has run out of work refuses to run again.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  HttpShared shared;
  std::vector<Taken> heard;

  House() {
    const auto answer = [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
      std::string target = request.path;
      if (!request.query.empty()) target += "?" + request.query;
      heard.push_back({request.method, target, request.body, true});
      reply->Send(200, {}, "ok");
    };
    shared.options.limits = kLimits;
    for (const char* method : {"GET", "POST"}) {
      shared.router.Add(method, "/e", Auth::kPublic, answer);
    }
  }
};

struct Answers {
  std::vector<int> statuses;
  bool is_closed = false;  // by the server
  bool operator==(const Answers&) const = default;
};

// Responses one after the other, each with the body that its head promises.
Answers Split(std::string bytes, const std::vector<Taken>& heard) {
  Answers answers;
  size_t final_ones = 0;
  while (!bytes.empty()) {
    const size_t end = bytes.find("\r\n\r\n");
    if (bytes.rfind("HTTP/1.1 ", 0) != 0 || end == std::string::npos)
      Report("not an answer", bytes);
    const int status = std::atoi(bytes.c_str() + 9);
    const std::string head = bytes.substr(0, end + 2);
    bytes.erase(0, end + 4);
    answers.statuses.push_back(status);
    if (status == 100) continue;
    if (answers.is_closed) Report("an answer after the last one", head);
    const size_t at = head.find("content-length: ");
    if (at == std::string::npos) Report("an answer without a length", head);
    const size_t length = std::stoul(head.substr(at + 16));
    const bool is_head = final_ones < heard.size() && heard[final_ones].method == "HEAD";
    if (!is_head && length > bytes.size()) Report("half an answer", head + bytes);
    if (!is_head) bytes.erase(0, length);
    if (head.find("connection: close") != std::string::npos) answers.is_closed = true;
    ++final_ones;
  }
  return answers;
}

void Collect(int fd, std::string& out) {
  char buffer[4096];
  for (int resets = 0; resets < 2;) {
    const ssize_t n = ::recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n > 0) out.append(buffer, static_cast<size_t>(n));
    if (n == 0) return;
    if (n < 0) ++resets;  // nothing there, or a reset that stands before what is there
  }
}

// One connection that is sent `bytes`, cut where the bits of `cuts` say.
Answers Exchange(House& house, const std::string& bytes, uint64_t cuts) {
  house.heard.clear();
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) std::abort();
  bool is_done = false;
  {
    boost::asio::local::stream_protocol::socket socket(house.io);
    socket.assign(boost::asio::local::stream_protocol(), pair[0]);
    boost::asio::co_spawn(house.io,
                          Serve(LocalStream(std::move(socket)), house.shared, house.lane, "fuzz"),
                          [&is_done](std::exception_ptr error) {
                            if (error) Report("it threw", "");
                            is_done = true;
                          });
  }
  std::string got;
  size_t at = 0;
  while (at < bytes.size()) {
    size_t piece = bytes.size() - at;
    if (cuts != 0) piece = std::min(piece, 1 + (cuts & 0xff) % (bytes.size() / 2 + 1));
    cuts >>= 8;
    const ssize_t n = ::send(pair[1], bytes.data() + at, piece, MSG_NOSIGNAL);
    if (n <= 0) break;  // closed
    at += static_cast<size_t>(n);
    while (house.io.poll() > 0) {
    }
    Collect(pair[1], got);
  }
  while (house.io.poll() > 0) {
  }
  Collect(pair[1], got);
  ::close(pair[1]);
  while (house.io.poll() > 0) {
  }
  if (!is_done) Report("a connection outlives its client", bytes);
  return Split(std::move(got), house.heard);
}

void Compare(const Reading& want, const std::vector<Taken>& heard, const Answers& answers) {
  std::vector<int> finals;
  for (const int status : answers.statuses) {
    if (status != 100) finals.push_back(status);
  }
  const bool is_open = want.end == Reading::End::kEither;
  if (heard.size() < want.taken.size()) Report("a good request was not taken", "");
  if (heard.size() > want.taken.size() && !is_open) Report("a bad request was taken", "");
  for (size_t i = 0; i < want.taken.size(); ++i) {
    Taken taken = heard[i];
    taken.keeps = want.taken[i].keeps;
    if (taken != want.taken[i]) Report("a request was read differently", taken.body);
  }
  const size_t refusals = finals.size() - heard.size();
  if (finals.size() < heard.size() || refusals > 1) Report("not one answer for each request", "");
  for (size_t i = 0; i < finals.size(); ++i) {
    const bool is_refusal = finals[i] >= 400 && finals[i] != 500;
    if (i < heard.size() ? finals[i] != 200 : !is_refusal) Report("a wrong status", "");
  }
  if (refusals > 0 && !answers.is_closed) Report("a refusal that goes on", "");
  if (is_open) return;
  if ((refusals > 0) != (want.end == Reading::End::kRefuses)) Report("the end is another one", "");
  if (answers.is_closed != (want.end != Reading::End::kWaits)) Report("the end stays open", "");
}

}  // namespace
}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hearth;
  static House house;
  if (size < 8) return 0;
  uint64_t cuts = 0;
  for (size_t i = 0; i < 8; ++i) cuts = cuts << 8 | data[i];
  const std::string bytes(reinterpret_cast<const char*>(data) + 8, size - 8);
  const Reading want = http_twin::Reader(bytes, kLimits).Read();
  const Answers answers = Exchange(house, bytes, cuts);
  Compare(want, house.heard, answers);
  if (want.end == Reading::End::kEither && cuts != 0) {
    const std::vector<Taken> heard = house.heard;
    if (Exchange(house, bytes, 0) != answers || house.heard != heard) {
      Report("cutting the bytes made a difference", bytes);
    }
  }
  return 0;
}
